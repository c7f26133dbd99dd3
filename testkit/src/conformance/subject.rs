//! What a store or door has to implement to be judged.

use crate::cases::LimitSpec;
use crate::oracle::{OracleDecision, OracleFigures, Outcome};

/// A store or front door under judgement: one policy, any number of keys, virtual time.
///
/// Every stamp is in microseconds since the epoch and below 2^53; a door with a clock of its own sets it to the
/// stamp. An answer that is an error, and not a decision, is a panic with its text.
pub trait Subject {
    /// What it can do and how finely it shows it. Everything, unless said otherwise.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Starts over with `limits` as the only policy and no key known.
    ///
    /// # Errors
    /// The reason, if these limits are refused.
    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String>;

    /// A check; of cost 0, a peek.
    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer;

    /// A check that takes what is there, at most `max`: the units taken, and the answer.
    fn check_up_to(&mut self, _at_us: u64, _key: &[u8], _max: u64) -> (u64, SubjectAnswer) {
        unreachable!("not offered, so not asked for")
    }

    /// Gives `n` units back.
    fn credit(&mut self, _at_us: u64, _key: &[u8], _n: u64) {
        unreachable!("not offered, so not asked for")
    }

    /// Charges `n` units by force; what each limit cut, in the policy's order.
    fn penalize(&mut self, _at_us: u64, _key: &[u8], _n: u64) -> Vec<u64> {
        unreachable!("not offered, so not asked for")
    }

    /// Forgets the key.
    fn reset(&mut self, _at_us: u64, _key: &[u8]) {
        unreachable!("not offered, so not asked for")
    }

    /// Puts `limits` in force from `since_us` on, for every key.
    fn reload(&mut self, _limits: &[LimitSpec], _since_us: u64) {
        unreachable!("not offered, so not asked for")
    }
}

/// What a subject can do, and how finely it shows it. What is not offered is not asked for.
#[derive(Debug, Clone, Copy)]
pub struct Offers {
    /// The grain of the times it shows.
    pub resolution: Resolution,
    /// How far a stamp may lie behind the newest one it has seen.
    pub steps_back: StepsBack,
    /// Whether answers hold each limit's own figures, not the headline alone.
    pub each_limit: bool,
    /// Whether figures hold `grows_after_us`.
    pub grows_after: bool,
    /// `check_up_to`.
    pub check_up_to: bool,
    /// `credit` and `penalize`.
    pub forced: bool,
    /// `reset`.
    pub reset: bool,
    /// `reload`.
    pub reload: bool,
    /// Whether a key goes through every change of figures, also through those that came and went between two
    /// of its touches.
    pub every_change: bool,
}

impl Default for Offers {
    fn default() -> Self {
        Offers {
            resolution: Resolution::Micros,
            steps_back: StepsBack::Any,
            each_limit: true,
            grows_after: true,
            check_up_to: true,
            forced: true,
            reset: true,
            reload: true,
            every_change: true,
        }
    }
}

/// The grain in which a subject shows times. Times are given to the suite in microseconds all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Exact.
    Micros,
    /// Whole milliseconds, rounded up.
    Millis,
    /// Whole seconds, rounded up.
    Seconds,
}

impl Resolution {
    /// The grain in microseconds.
    pub fn unit_us(self) -> u128 {
        match self {
            Resolution::Micros => 1,
            Resolution::Millis => 1_000,
            Resolution::Seconds => 1_000_000,
        }
    }

    pub(super) fn shows(self, exact_us: u128) -> u128 {
        exact_us.div_ceil(self.unit_us()) * self.unit_us()
    }
}

/// How far a stamp may lie behind the newest one a subject has seen for any key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepsBack {
    /// As far as one likes.
    Any,
    /// So many microseconds: it drops keys that are as new.
    AtMost(u64),
    /// Not at all: its clock does not go back.
    Never,
}

impl StepsBack {
    /// The oldest stamp that may follow `newest`.
    pub fn oldest_after(self, newest: u64) -> u64 {
        match self {
            StepsBack::Any => 0,
            StepsBack::AtMost(us) => newest.saturating_sub(us),
            StepsBack::Never => newest,
        }
    }
}

/// Everything a subject shows of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectAnswer {
    /// How the check ended.
    pub outcome: Outcome,
    /// The position of the binding limit.
    pub bound_by: usize,
    /// The headline figures; its delay is the largest of any limit.
    pub headline: OracleFigures,
    /// Every limit's own figures, in the policy's order.
    pub limits: Vec<OracleFigures>,
    /// The headers of an HTTP door: lower-case name and value, each as often as it was sent.
    pub headers: Option<Vec<(String, String)>>,
}

impl SubjectAnswer {
    /// The answer of a subject that shows no headline apart from its limits' figures, and no headers.
    pub fn of_limits(outcome: Outcome, bound_by: usize, limits: Vec<OracleFigures>) -> Self {
        let delay_us = limits.iter().map(|figures| figures.delay_us).max().unwrap_or(0);
        let headline = OracleFigures { delay_us, ..limits[bound_by].clone() };
        SubjectAnswer { outcome, bound_by, headline, limits, headers: None }
    }
}

impl From<OracleDecision> for SubjectAnswer {
    fn from(decision: OracleDecision) -> Self {
        SubjectAnswer::of_limits(decision.outcome, decision.bound_by, decision.limits)
    }
}
