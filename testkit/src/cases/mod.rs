//! Faults reported against other rate limiters, and the worked examples, as traces with the right answers.
//!
//! The files are in `testkit/cases`, one JSON object a line; `testkit/cases/README.md` is the format.
//! Cases that wait for what is not built yet are listed in `testkit/cases/WAITING.md`, what only a door or a
//! clock can be asked in `testkit/cases/DOORS.md`.
//!
//! ```
//! let cases = tidegate_testkit::cases::load();
//! assert!(cases.iter().any(|case| case.id == "sub-second-wait-is-not-zero"));
//! ```

mod expect;
mod file;
mod run;
#[cfg(test)]
mod tests;

pub use expect::{Expected, ExpectedFigures};
pub use run::{Ran, run, try_run};

use crate::oracle::{Kind, OracleLimit, OraclePolicy};

/// A trace under one policy with what must come of each step.
#[derive(Debug, Clone)]
pub struct Case {
    /// A name to find it by.
    pub id: String,
    /// What must hold, in one line.
    pub about: String,
    /// Where the fault was reported, if it was.
    pub source: Option<String>,
    /// The limits in force at first.
    pub limits: Vec<LimitSpec>,
    /// Whether these limits must be refused when they are built; then there are no steps.
    pub refused: bool,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One limit, named and with its figures, as a subject has to build it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// The name in the policy; `limit0`, `limit1` by position unless given.
    #[serde(default)]
    pub name: String,
    /// The rule.
    pub kind: Kind,
    /// Capacity of a bucket, burst of GCRA, limit of a window.
    pub capacity: u64,
    /// Units that come back each period; windows have none.
    #[serde(default)]
    pub amount: u64,
    /// The period, or the window, in microseconds.
    pub period_us: u64,
    /// How far forced charges may overdraw it; as much as the capacity when absent.
    #[serde(default)]
    pub debt: Option<u64>,
}

impl LimitSpec {
    /// The figures in the oracle's words.
    pub fn for_oracle(&self) -> OracleLimit {
        let LimitSpec { kind, capacity, amount, period_us, debt, .. } = *self;
        OracleLimit { kind, capacity, amount, period_us, debt }
    }
}

/// These limits in the oracle's words.
pub fn policy_for_oracle(limits: &[LimitSpec]) -> OraclePolicy {
    OraclePolicy { limits: limits.iter().map(LimitSpec::for_oracle).collect() }
}

/// One thing that happens, and what must come of it.
#[derive(Debug, Clone)]
pub struct Step {
    /// The stamp it comes with, in microseconds since the epoch.
    pub at_us: u64,
    /// The key it concerns.
    pub key: String,
    /// What is done.
    pub action: Action,
    /// What is stated of the answer.
    pub expected: Expected,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Action {
    /// A check; of cost 0, a peek.
    Check {
        /// Units asked for.
        cost: u64,
    },
    /// A check that takes what is there.
    CheckUpTo {
        /// Units asked for at most.
        max: u64,
        /// Units that must be taken.
        taken: u64,
    },
    /// A credit.
    Credit {
        /// Units given back.
        n: u64,
    },
    /// A forced charge.
    Penalize {
        /// Units charged.
        n: u64,
        /// What each limit must cut, in the policy's order.
        cut: Vec<u64>,
    },
    /// Forgets the key.
    Reset,
    /// Puts other limits in force from the step's stamp on.
    Reload {
        /// The new limits.
        limits: Vec<LimitSpec>,
    },
}

const FILES: [(&str, &str); 14] = [
    ("worked-examples", include_str!("../../cases/worked-examples.jsonl")),
    ("bursts", include_str!("../../cases/bursts.jsonl")),
    ("charges", include_str!("../../cases/charges.jsonl")),
    ("clocks", include_str!("../../cases/clocks.jsonl")),
    ("costs", include_str!("../../cases/costs.jsonl")),
    ("forced", include_str!("../../cases/forced.jsonl")),
    ("policies", include_str!("../../cases/policies.jsonl")),
    ("precision", include_str!("../../cases/precision.jsonl")),
    ("ranges", include_str!("../../cases/ranges.jsonl")),
    ("rates", include_str!("../../cases/rates.jsonl")),
    ("reloads", include_str!("../../cases/reloads.jsonl")),
    ("shown", include_str!("../../cases/shown.jsonl")),
    ("waits", include_str!("../../cases/waits.jsonl")),
    ("windows", include_str!("../../cases/windows.jsonl")),
];

/// Every case of every file.
///
/// # Panics
/// If a line does not have the format: the files are part of the source.
pub fn load() -> Vec<Case> {
    FILES.iter().flat_map(|(name, text)| file::parse(name, text)).collect()
}

/// The worked examples alone.
pub fn worked_examples() -> Vec<Case> {
    let (name, text) = FILES[0];
    file::parse(name, text)
}
