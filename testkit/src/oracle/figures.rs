//! What goes into the oracle and what comes out of it: plain values, no methods that decide anything.

/// Which of the six rules a limit follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Starts full, refills evenly, each admission takes tokens.
    TokenBucket,
    /// The same rule under the name and figures of the generic cell rate algorithm.
    Gcra,
    /// The same rule again; admitted work is also told how long to wait so that it leaves evenly.
    LeakyBucket,
    /// A count per window aligned to the epoch.
    FixedWindow,
    /// Every admission is remembered until it is exactly one window old.
    SlidingWindowLog,
    /// Two aligned counts, the older one weighted by the part of it still in view.
    SlidingWindowCounter,
}

impl Kind {
    /// Every kind, in the order of the table that defines them.
    pub const ALL: [Kind; 6] = [
        Kind::TokenBucket,
        Kind::Gcra,
        Kind::LeakyBucket,
        Kind::FixedWindow,
        Kind::SlidingWindowLog,
        Kind::SlidingWindowCounter,
    ];

    /// Whether the limit is a level that refills, and not a count in a window.
    pub fn is_bucket(self) -> bool {
        matches!(self, Kind::TokenBucket | Kind::Gcra | Kind::LeakyBucket)
    }
}

/// One limit's figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleLimit {
    /// The rule.
    pub kind: Kind,
    /// `C` of a bucket, `L` of a window.
    pub capacity: u64,
    /// `R`, the units that come back each period. Windows have none; theirs is 0.
    pub amount: u64,
    /// `P` of a bucket, `W` of a window, in microseconds.
    pub period_us: u64,
    /// How far forced charges may overdraw the limit; as much as its capacity when absent.
    pub debt: Option<u64>,
}

impl OracleLimit {
    /// A bucket of `capacity` that gets `amount` units back each `period_us` microseconds.
    pub fn bucket(kind: Kind, capacity: u64, amount: u64, period_us: u64) -> Self {
        OracleLimit { kind, capacity, amount, period_us, debt: None }
    }

    /// A window of `window_us` microseconds that admits `limit` units.
    pub fn window(kind: Kind, limit: u64, window_us: u64) -> Self {
        OracleLimit { kind, capacity: limit, amount: 0, period_us: window_us, debt: None }
    }

    pub(super) fn debt(&self) -> u64 {
        self.debt.unwrap_or(self.capacity)
    }

    /// The most a kept count may weigh, however much was charged under figures now gone.
    pub(super) fn heaviest_count(&self) -> u64 {
        self.capacity + self.capacity.max(self.debt())
    }
}

/// Limits checked together, all or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OraclePolicy {
    /// The limits, in the order the policy names them.
    pub limits: Vec<OracleLimit>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Admitted, and charged to every limit.
    Allowed,
    /// Refused for now; nothing was charged.
    Denied,
    /// Refused for ever: the cost is above some limit's capacity. Nothing was charged.
    CostExceedsCapacity,
}

/// One limit's part in a decision. After an admission the figures are those with the cost charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleFigures {
    /// The capacity of a bucket, the limit of a window.
    pub limit: u64,
    /// Whole units that could be taken now; never below 0.
    pub remaining: u64,
    /// Microseconds until this limit alone would admit the cost: 0 if it does, absent if it never will.
    pub retry_after_us: Option<u128>,
    /// Microseconds until the limit is as new: 0 if it is, absent if it never will be.
    pub reset_after_us: Option<u128>,
    /// Microseconds an admitted caller of a leaky bucket should hold its work back.
    pub delay_us: u128,
    /// Microseconds until `remaining` grows, absent if it never will.
    pub grows_after_us: Option<u128>,
}

/// The whole answer to a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleDecision {
    /// How it ended.
    pub outcome: Outcome,
    /// The position of the limit the headline figures come from.
    pub bound_by: usize,
    /// Every limit's own figures, in the order of the policy.
    pub limits: Vec<OracleFigures>,
}

impl OracleDecision {
    /// The binding limit's figures.
    pub fn headline(&self) -> &OracleFigures {
        &self.limits[self.bound_by]
    }

    /// The largest delay any limit asks for, in microseconds.
    pub fn delay_us(&self) -> u128 {
        self.limits.iter().map(|figures| figures.delay_us).max().unwrap_or(0)
    }
}

/// The answer to a check that takes what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleTaken {
    /// The units charged.
    pub taken: u64,
    /// The decision on them.
    pub decision: OracleDecision,
}
