//! The suite put to the oracle, and to subjects that are wrong on purpose: a suite that cannot fail proves nothing.

#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::cases::LimitSpec;
use crate::oracle::{OracleFigures, Outcome};

#[test]
fn the_oracle_passes_the_worked_examples() {
    worked_examples(&mut OracleSubject::default());
}

#[test]
fn the_oracle_passes_every_case() {
    cases(&mut OracleSubject::default());
}

#[test]
fn the_oracle_passes_its_own_random_traces() {
    random_traces(&mut OracleSubject::default(), 128);
}

#[test]
fn the_oracle_waits_honestly() {
    edges(&mut OracleSubject::default(), 256);
}

#[test]
fn the_oracle_keeps_the_bounds() {
    bound(&mut OracleSubject::default(), 512);
}

#[test]
fn the_oracle_keeps_keys_apart() {
    keys_apart(&mut OracleSubject::default());
}

/// The oracle, bent.
struct Bent {
    oracle: OracleSubject,
    limits: Vec<LimitSpec>,
    bend: Bend,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bend {
    /// Straight, but shows milliseconds, and no clock of its own goes back.
    Coarse,
    /// Straight, with the headers of an HTTP door.
    Headers,
    HeaderWaitRoundedDown,
    HeaderTwice,
    WaitTooShort,
    WaitTooLong,
    ChargesRefusals,
    LetsOneMoreThrough,
    BindsTheFirst,
    SharesKeys,
    AcceptsAnything,
    ForgetsToReload,
    RefillsOnReload,
}

impl Bent {
    fn new(bend: Bend) -> Self {
        Bent { oracle: OracleSubject::default(), limits: Vec::new(), bend }
    }

    fn bent(&self, mut answer: SubjectAnswer) -> SubjectAnswer {
        let each = |answer: &mut SubjectAnswer, change: &dyn Fn(&mut OracleFigures)| {
            change(&mut answer.headline);
            answer.limits.iter_mut().for_each(change);
        };
        match self.bend {
            Bend::Coarse => each(&mut answer, &|figures| {
                let coarse = |us: &mut u128| *us = us.div_ceil(1_000) * 1_000;
                figures.retry_after_us.iter_mut().for_each(coarse);
                figures.reset_after_us.iter_mut().for_each(coarse);
                coarse(&mut figures.delay_us);
                figures.grows_after_us = None;
            }),
            Bend::WaitTooShort => each(&mut answer, &|figures| {
                figures.retry_after_us = figures.retry_after_us.map(|us| us.saturating_sub(1));
            }),
            Bend::WaitTooLong => each(&mut answer, &|figures| {
                figures.retry_after_us = figures.retry_after_us.map(|us| us + us.min(1));
            }),
            Bend::BindsTheFirst => answer.bound_by = 0,
            Bend::Headers | Bend::HeaderWaitRoundedDown | Bend::HeaderTwice => {
                answer.headers = Some(sent(&answer, &self.limits, self.bend));
            }
            _ => {}
        }
        answer
    }
}

fn sent(answer: &SubjectAnswer, limits: &[LimitSpec], bend: Bend) -> Vec<(String, String)> {
    let seconds = |us: u128| us.div_ceil(1_000_000).to_string();
    let mut headers = Vec::new();
    let mut send = |name: &str, value: String| headers.push((name.to_owned(), value));
    let headline = &answer.headline;
    send("x-ratelimit-limit", headline.limit.to_string());
    send("x-ratelimit-remaining", headline.remaining.to_string());
    if let Some(reset) = headline.reset_after_us {
        send("x-ratelimit-reset", seconds(reset));
    }
    if let (Some(wait), true) = (headline.retry_after_us, answer.outcome != Outcome::Allowed) {
        let down = bend == Bend::HeaderWaitRoundedDown;
        send("retry-after", if down { (wait / 1_000_000).to_string() } else { seconds(wait) });
    }
    // An integer of a structured field has fifteen digits at the most.
    let field_seconds = |us: u128| us.div_ceil(1_000_000).min(999_999_999_999_999).to_string();
    let parameter =
        |name: &str, value: Option<String>| value.map_or(String::new(), |v| format!(";{name}={v}"));
    let quoted = |name: &str| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let policy = limits.iter().map(|limit| {
        let micros = u128::from(limit.capacity) * u128::from(limit.period_us);
        let window = match (limit.kind.is_bucket(), limit.amount) {
            (true, 0) => None,
            (true, amount) => Some(field_seconds(micros.div_ceil(amount.into()))),
            (false, _) => Some(field_seconds(limit.period_us.into())),
        };
        format!("{};q={}{}", quoted(&limit.name), limit.capacity, parameter("w", window))
    });
    send("ratelimit-policy", policy.collect::<Vec<_>>().join(", "));
    let state = format!("{};r={}", quoted(&limits[answer.bound_by].name), headline.remaining);
    let state = state + &parameter("t", headline.grows_after_us.map(field_seconds));
    if bend == Bend::HeaderTwice {
        send("ratelimit", state.clone());
    }
    send("ratelimit", state);
    headers
}

impl Subject for Bent {
    fn offers(&self) -> Offers {
        match self.bend {
            Bend::Coarse => Offers {
                resolution: Resolution::Millis,
                steps_back: StepsBack::Never,
                grows_after: false,
                check_up_to: false,
                forced: false,
                reload: false,
                ..Offers::default()
            },
            _ => Offers::default(),
        }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        self.limits = limits.to_vec();
        let more = u64::from(self.bend == Bend::LetsOneMoreThrough);
        let bent: Vec<LimitSpec> = limits
            .iter()
            .map(|limit| LimitSpec { capacity: limit.capacity + more, ..limit.clone() })
            .collect();
        match self.oracle.install(&bent) {
            Err(_) if self.bend == Bend::AcceptsAnything => Ok(()),
            other => other,
        }
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let key = if self.bend == Bend::SharesKeys { &key[..key.len().min(64)] } else { key };
        let answer = self.oracle.check(at_us, key, cost);
        if self.bend == Bend::ChargesRefusals && answer.outcome == Outcome::Denied {
            self.oracle.penalize(at_us, key, 1);
        }
        self.bent(answer)
    }

    fn check_up_to(&mut self, at_us: u64, key: &[u8], max: u64) -> (u64, SubjectAnswer) {
        let (taken, answer) = self.oracle.check_up_to(at_us, key, max);
        (taken, self.bent(answer))
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        self.oracle.credit(at_us, key, n);
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        self.oracle.penalize(at_us, key, n)
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        self.oracle.reset(at_us, key);
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        self.limits = limits.to_vec();
        match self.bend {
            Bend::ForgetsToReload => {}
            Bend::RefillsOnReload => self.oracle.install(limits).unwrap(),
            _ => self.oracle.reload(limits, since_us),
        }
    }
}

fn fails(theme: impl FnOnce(&mut dyn Subject), bend: Bend) {
    let outcome = catch_unwind(AssertUnwindSafe(|| theme(&mut Bent::new(bend))));
    assert!(outcome.is_err(), "{bend:?} was not found out");
}

#[test]
fn a_subject_that_shows_less_passes() {
    let mut coarse = Bent::new(Bend::Coarse);
    worked_examples(&mut coarse);
    cases(&mut coarse);
    random_traces(&mut coarse, 64);
    edges(&mut coarse, 64);
    bound(&mut coarse, 64);
}

#[test]
fn right_headers_pass_and_are_those_the_cases_state() {
    let mut door = Bent::new(Bend::Headers);
    cases(&mut door);
    random_traces(&mut door, 64);
}

#[test]
fn wrong_headers_are_found() {
    fails(cases, Bend::HeaderWaitRoundedDown);
    fails(worked_examples, Bend::HeaderTwice);
}

#[test]
fn a_dishonest_wait_is_found() {
    for bend in [Bend::WaitTooShort, Bend::WaitTooLong] {
        fails(worked_examples, bend);
        fails(|subject| random_traces(subject, 64), bend);
        fails(|subject| edges(subject, 64), bend);
    }
}

#[test]
fn wrong_charges_are_found() {
    fails(cases, Bend::ChargesRefusals);
    fails(|subject| random_traces(subject, 64), Bend::ChargesRefusals);
    fails(|subject| bound(subject, 256), Bend::LetsOneMoreThrough);
    fails(worked_examples, Bend::LetsOneMoreThrough);
}

#[test]
fn what_else_may_be_wrong_is_found() {
    fails(cases, Bend::BindsTheFirst);
    fails(keys_apart, Bend::SharesKeys);
    fails(cases, Bend::AcceptsAnything);
    fails(cases, Bend::ForgetsToReload);
    fails(cases, Bend::RefillsOnReload);
    fails(|subject| random_traces(subject, 64), Bend::RefillsOnReload);
}
