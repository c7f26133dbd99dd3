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

use tidegate::{Algorithm, LimitError, PolicyError, Timestamp};

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
use crate::trace::TraceCheck;

/// What the six algorithms make of one trace.
#[derive(Debug)]
pub struct Comparison {
    nominal: Nominal,
    replayer: Replayer,
    measures: Vec<Measure>,
    left_out: Vec<(Algorithm, LimitError)>,
    asked: CurvesByKey,
    checks: u64,
    span: Option<(Timestamp, Timestamp)>,
}

/// A comparison that cannot begin; not seen, since algorithms have legal and different names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A policy could not be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A policy could not be found.
    #[error(transparent)]
    Name(#[from] NoSuchPolicy),
}

impl Comparison {
    /// Nothing decided yet.
    ///
    /// # Errors
    /// None that was seen.
    pub fn new(nominal: Nominal) -> Result<Self, SetupError> {
        let (policies, left_out) = nominal.policies()?;
        let algorithms = policies.iter().map(|policy| policy.plan().limits()[0].algorithm());
        let measures = algorithms.map(|algorithm| Measure::new(algorithm, nominal.window())).collect();
        let replayer = Replayer::new(policies, None)?;
        let asked = CurvesByKey::default();
        Ok(Comparison { nominal, replayer, measures, left_out, asked, checks: 0, span: None })
    }

    /// A built-in scenario, whole.
    ///
    /// # Errors
    /// None that was seen.
    pub fn of(scenario: Scenario, nominal: Nominal) -> Result<Self, SetupError> {
        let mut comparison = Self::new(nominal)?;
        for Arrival { at, key, cost } in scenario.arrivals(&nominal) {
            comparison.decide(TraceCheck { at, key: key.as_bytes().into(), cost, policy: 0 });
        }
        Ok(comparison)
    }

    /// Puts one check to every algorithm.
    pub fn decide(&mut self, mut check: TraceCheck) {
        self.checks += 1;
        let (first, last) = self.span.unwrap_or((check.at, check.at));
        self.span = Some((first.min(check.at), last.max(check.at)));
        self.asked.add(&check.key, check.at, check.cost.get());
        for (place, measure) in self.measures.iter_mut().enumerate() {
            check.policy = place;
            // It is in memory, which always answers.
            let Ok(decision) = self.replayer.decide(&check) else { continue };
            measure.count(&check, &decision);
        }
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
