//! `tidegate compare`: one trace through all six algorithms with the same nominal limit.

mod args;
mod axes;
mod curve;
mod explain;
mod measure;
mod nominal;
mod plot;
mod report;
mod run;
mod scenario;

use tidegate::store::StoreError;
use tidegate::{Algorithm, Decision, LimitError, PolicyError, Timestamp};
use tidegate_redis::RedisStoreBuilder;

pub use args::CompareArgs;
pub use curve::Curve;
pub use explain::explain;
pub use measure::{CurvesByKey, Figures, MOST_KEYS_APART, Measure};
pub use nominal::{Nominal, NominalError};
pub use plot::plot;
pub use report::{json, report};
pub use run::run;
pub use scenario::{Arrival, Scenario};

use crate::replay::{NoSuchPolicy, Replayer};
use crate::trace::{Pace, TraceCheck};

/// What the six algorithms make of one trace.
#[derive(Debug)]
pub struct Comparison {
    nominal: Nominal,
    replayer: Replayer,
    measures: Vec<Measure>,
    /// What was decided last, each check under each algorithm; kept for its room.
    decisions: Vec<Decision>,
    left_out: Vec<(Algorithm, LimitError)>,
    asked: CurvesByKey,
    checks: u64,
    span: Option<(Timestamp, Timestamp)>,
}

/// A comparison that cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A policy could not be built; not seen, since algorithms have legal and different names.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A policy could not be found; not seen either.
    #[error(transparent)]
    Name(#[from] NoSuchPolicy),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Comparison {
    /// Nothing decided yet; state is kept in `store`, apart from all that is there, else in memory.
    ///
    /// # Errors
    /// A store that cannot be opened.
    pub fn new(nominal: Nominal, store: Option<RedisStoreBuilder>) -> Result<Self, SetupError> {
        let (policies, left_out) = nominal.policies()?;
        let algorithms = policies.iter().map(|policy| policy.plan().limits()[0].algorithm());
        let measures = algorithms.map(|algorithm| Measure::new(algorithm, nominal.window())).collect();
        let replayer = match store {
            Some(store) => Replayer::shared(policies, None, store)??,
            None => Replayer::new(policies, None)?,
        };
        let (asked, decisions) = (CurvesByKey::default(), Vec::new());
        Ok(Comparison { nominal, replayer, measures, decisions, left_out, asked, checks: 0, span: None })
    }

    /// Puts a built-in scenario to every algorithm.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn decide_scenario(&mut self, scenario: Scenario) -> Result<(), StoreError> {
        let arrivals = scenario.arrivals(&self.nominal).into_iter();
        let check =
            |Arrival { at, key, cost }| TraceCheck { at, key: key.as_bytes().into(), cost, policy: 0 };
        let checks: Vec<_> = arrivals.map(check).collect();
        checks.chunks(self.at_once()).try_for_each(|checks| self.decide(checks))
    }

    /// So many checks are best put together.
    pub fn at_once(&self) -> usize {
        self.replayer.at_once()
    }

    /// How fast it decides.
    pub fn pace(&self) -> Pace {
        self.replayer.pace()
    }

    /// Puts checks to every algorithm, whatever policy they name.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn decide(&mut self, checks: &[TraceCheck]) -> Result<(), StoreError> {
        for check in checks {
            self.checks += 1;
            let (first, last) = self.span.unwrap_or((check.at, check.at));
            self.span = Some((first.min(check.at), last.max(check.at)));
            self.asked.add(&check.key, check.at, check.cost.get());
        }
        let algorithms = self.measures.len();
        let each = || checks.iter().flat_map(|check| (0..algorithms).map(move |place| (place, check)));
        self.decisions.clear();
        self.replayer.decide(each(), &mut self.decisions)?;
        for ((place, check), decision) in each().zip(&self.decisions) {
            self.measures[place].count(check, decision);
        }
        Ok(())
    }

    /// The figures of each algorithm.
    pub fn figures(&self) -> impl Iterator<Item = &Figures> {
        self.measures.iter().map(Measure::figures)
    }

    /// The figures of one algorithm, if it could hold the nominal limit.
    pub fn figures_of(&self, algorithm: Algorithm) -> Option<&Figures> {
        self.figures().find(|figures| figures.algorithm == algorithm)
    }

    /// The keys, if there are few, with the units each asked for and was admitted by each algorithm.
    pub fn by_key(&self) -> Option<Vec<KeyShare<'_>>> {
        let share = |key| KeyShare {
            key,
            asked: self.asked.of(key).map_or(0, Curve::total),
            admitted: self.measures.iter().map(|measure| measure.admitted_to(key)).collect(),
        };
        Some(self.asked.keys()?.into_iter().map(share).collect())
    }
}

/// What one key asked for and got.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyShare<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Units it asked for.
    pub asked: u128,
    /// Units each algorithm admitted, in the order of [`Comparison::figures`].
    pub admitted: Vec<u128>,
}
