//! The answer to a check: cheap to copy, its figures worked out only when somebody asks.

use crate::figures::LimitDecision;
use crate::quantity::{Units, Wait};

/// A policy has at most this many limits.
pub const MAX_LIMITS: usize = 8;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Admitted, and charged to every limit.
    Allowed,
    /// Refused for now; nothing was charged.
    Denied,
    /// Refused for good: the cost is above what a limit can ever hold. Nothing was charged.
    CostExceedsCapacity,
    /// Refused because the store holds as many keys as it may and this one is new.
    Overloaded,
}

impl Outcome {
    /// The word used on every wire and in every report.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Allowed => "allowed",
            Outcome::Denied => "denied",
            Outcome::CostExceedsCapacity => "cost_exceeds_capacity",
            Outcome::Overloaded => "overloaded",
        }
    }
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The answer to one check of one key under one policy.
///
/// A refusal is a decision like any other, never an error. The headline figures are those of the binding
/// limit: on a refusal the refusing limit with the longest wait, on admission the one with least left.
///
/// ```
/// use tidegate_core::{Cost, KeyState, Limit, Plan, Rate, Timestamp};
/// let plan = Plan::single(Limit::token_bucket(1, Rate::per_second(5)));
/// let mut key = KeyState::new(&plan);
/// assert!(plan.check(&mut key, Timestamp::EPOCH, Cost::ONE).is_allowed());
/// let refused = plan.check(&mut key, Timestamp::EPOCH, Cost::ONE);
/// assert_eq!(refused.retry_after().unwrap().as_micros(), 200_000);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Decision {
    outcome: Outcome,
    bound_by: u8,
    degraded: bool,
    limits: Limits,
}

/// One limit is the usual case, and then nothing else is written.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "boxing would put an allocation on the way of every check")]
enum Limits {
    One(LimitDecision),
    Many(u8, [LimitDecision; MAX_LIMITS]),
}

impl Decision {
    /// The decision of a policy with several limits, of which the first `count` of `limits` count.
    pub(crate) fn of_many(count: usize, limits: [LimitDecision; MAX_LIMITS]) -> Self {
        let used = &limits[..count];
        let outcome = if used.iter().all(LimitDecision::admits) {
            Outcome::Allowed
        } else if used.iter().any(LimitDecision::is_exceeded) {
            Outcome::CostExceedsCapacity
        } else {
            Outcome::Denied
        };
        let bound_by = match outcome {
            Outcome::Allowed => least_left(used),
            _ => longest_wait(used),
        };
        Decision { outcome, bound_by, degraded: false, limits: Limits::Many(count as u8, limits) }
    }

    /// The answer to a new key when the store may hold no more: nothing is known of it and nothing was charged.
    pub fn overloaded(capacity: Units) -> Self {
        let limits = Limits::One(LimitDecision::unknown(capacity));
        Decision { outcome: Outcome::Overloaded, bound_by: 0, degraded: false, limits }
    }

    /// The answer to a check whose store did not answer, under a policy that then lets everything pass: admitted and
    /// not counted, so [`is_metered`](Self::is_metered) is false and nothing is known of any limit.
    pub fn unmetered(capacity: Units) -> Self {
        let limits = Limits::One(LimitDecision::uncounted(capacity));
        Decision { outcome: Outcome::Allowed, bound_by: 0, degraded: true, limits }
    }

    /// This decision, made without the store that all instances share: its figures are one instance's own.
    #[must_use]
    pub fn degraded(mut self) -> Self {
        self.degraded = true;
        self
    }

    /// This decision, with what was refused for good refused for now instead: the capacity it was held against is not
    /// the whole one. There is still no wait to tell.
    #[must_use]
    pub fn for_now(mut self) -> Self {
        if self.outcome == Outcome::CostExceedsCapacity {
            self.outcome = Outcome::Denied;
        }
        self
    }

    /// Whether it was made without the store that all instances share.
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Whether it was counted: only what was let pass while the store did not answer is not. Its `remaining` and the
    /// like are then not to be shown to anybody.
    pub fn is_metered(&self) -> bool {
        !(self.is_allowed() && self.binding().is_unknown())
    }

    /// The answer to a check that finds others waiting in line: refused, `ahead` being the time until the last
    /// of them is served and `then` what would be decided at that instant. Nothing was charged.
    pub fn behind_waiters(then: &Decision, ahead: Wait) -> Self {
        let mut decision = *then;
        decision.outcome = match then.outcome {
            Outcome::Allowed => Outcome::Denied,
            other => other,
        };
        match &mut decision.limits {
            Limits::One(limit) => *limit = limit.queued(ahead),
            Limits::Many(count, limits) => {
                limits[..usize::from(*count)].iter_mut().for_each(|limit| *limit = limit.queued(ahead));
                decision.bound_by = longest_wait(&limits[..usize::from(*count)]);
            }
        }
        decision
    }

    /// How the check ended.
    #[inline]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the work may go ahead.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.outcome == Outcome::Allowed
    }

    /// The binding limit's place in the policy.
    pub fn bound_by(&self) -> usize {
        usize::from(self.bound_by)
    }

    /// The binding limit's own figures.
    pub fn binding(&self) -> &LimitDecision {
        &self.limits()[self.bound_by()]
    }

    /// Every limit's own figures, in the order of the policy.
    pub fn limits(&self) -> &[LimitDecision] {
        match &self.limits {
            Limits::One(limit) => core::slice::from_ref(limit),
            Limits::Many(count, limits) => &limits[..usize::from(*count)],
        }
    }

    /// The binding limit's capacity, or limit per window.
    pub fn limit(&self) -> Units {
        self.binding().limit()
    }

    /// What is left of the binding limit, rounded down.
    pub fn remaining(&self) -> u64 {
        self.binding().remaining()
    }

    /// Least wait until the same check is admitted, nothing else happening: zero if it was, `None` if never.
    pub fn retry_after(&self) -> Option<Wait> {
        self.binding().retry_after()
    }

    /// Time until the binding limit is as new: zero if it is, `None` if never.
    pub fn reset_after(&self) -> Option<Wait> {
        self.binding().reset_after()
    }

    /// How long admitted work should wait so that it leaves evenly spaced: the largest of any limit, zero
    /// unless a leaky bucket is among them.
    pub fn delay(&self) -> Wait {
        self.limits().iter().map(LimitDecision::delay).max().unwrap_or(Wait::ZERO)
    }

    /// What was charged to every limit: the cost of an admitted check, else 0.
    pub fn charged(&self) -> u64 {
        self.limits().first().map_or(0, LimitDecision::charged)
    }
}

impl From<LimitDecision> for Decision {
    /// The decision of a policy with one limit, made of that limit's share.
    #[inline]
    fn from(limit: LimitDecision) -> Self {
        let outcome = match (limit.admits(), limit.is_exceeded()) {
            (true, _) => Outcome::Allowed,
            (_, true) => Outcome::CostExceedsCapacity,
            _ => Outcome::Denied,
        };
        Decision { outcome, bound_by: 0, degraded: false, limits: Limits::One(limit) }
    }
}

/// Of an admission: smallest remaining, then longest reset (never outranks), then the order of the policy.
fn least_left(limits: &[LimitDecision]) -> u8 {
    let rank =
        |limit: &LimitDecision| (core::cmp::Reverse(limit.remaining()), never_last(limit.reset_after()));
    first_greatest(limits, rank)
}

/// Of a refusal: longest wait (never outranks, for good outranks never), then longest reset, then the order.
fn longest_wait(limits: &[LimitDecision]) -> u8 {
    let rank = |limit: &LimitDecision| {
        let wait = (!limit.admits()).then(|| (never_last(limit.retry_after()), limit.is_exceeded()));
        (wait, never_last(limit.reset_after()))
    };
    first_greatest(limits, rank)
}

/// Puts `None`, which stands for never, above every wait.
fn never_last(wait: Option<Wait>) -> (bool, Wait) {
    (wait.is_none(), wait.unwrap_or(Wait::ZERO))
}

fn first_greatest<K: Ord>(limits: &[LimitDecision], rank: impl Fn(&LimitDecision) -> K) -> u8 {
    let ranks = limits.iter().map(rank).enumerate();
    let best = ranks.reduce(|best, next| if next.1 > best.1 { next } else { best });
    // At most MAX_LIMITS of them.
    best.map_or(0, |(index, _)| index as u8)
}
