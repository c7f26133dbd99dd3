//! One limit's share in a decision, and the figures that follow from it.
//!
//! A decision keeps what the limit held at the decided instant; waits and counts are divisions, and most
//! callers look at few of them, so each is worked out when it is asked for.

use crate::bucket::{Bucket, Level};
use crate::quantity::{Units, Wait};
use crate::window::{Pair, Window};

/// One limit's share in a decision: what it held when it was decided, and what was asked of it.
#[derive(Debug, Clone, Copy)]
pub struct LimitDecision {
    basis: Basis,
    verdict: Verdict,
    asked: u64,
    taken: Taken,
}

/// What the whole plan did with the cost that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It refused.
    Nothing,
    /// It would have admitted, and was not asked to charge.
    Foreseen,
    /// It admitted and charged.
    Charged,
}

/// Whether one limit alone would admit the cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits,
    Short,
    Exceeds,
}

/// What a limit held at the decided instant, after the charge if there was one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Basis {
    Bucket {
        bucket: Bucket,
        level: Level,
        leaky: bool,
    },
    Fixed {
        limit: u64,
        count: u64,
        ends_in: u64,
    },
    /// The counts as they enter the arithmetic, and whether anything is kept at all.
    Counter {
        window: Window,
        pair: Pair,
        elapsed: u64,
        previous_kept: bool,
        current_kept: bool,
    },
    Log {
        limit: u64,
        used: u64,
        admits_in: u64,
        grows_in: u64,
        reset_after: u64,
    },
    Queued {
        limit: u64,
        admits_in: MaybeNever,
        reset_after: MaybeNever,
    },
    Unknown {
        limit: u64,
    },
}

/// A wait or never, in half the room that an `Option` of a wait takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaybeNever(Wait);

/// Longer than any figures can make a wait.
const NEVER: Wait = Wait::from_micros(u128::MAX);

impl MaybeNever {
    fn get(self) -> Option<Wait> {
        (self.0 != NEVER).then_some(self.0)
    }
}

fn micros(micros: u64) -> Wait {
    Wait::from_micros(u128::from(micros))
}

/// All figures of one limit at once, for reports and for comparing decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The capacity, or the limit per window.
    pub limit: u64,
    /// What is left, rounded down, never below 0.
    pub remaining: u64,
    /// Zero if this limit admits the cost, `None` if it never will.
    pub retry_after: Option<Wait>,
    /// Time until the limit is as new, `None` if never.
    pub reset_after: Option<Wait>,
    /// For a leaky bucket that admitted: how long the work has to wait for its turn.
    pub delay: Wait,
    /// Time until `remaining` grows, `None` if it is at the limit or never grows.
    pub grows_after: Option<Wait>,
}

impl LimitDecision {
    #[inline]
    pub(crate) fn new(basis: Basis, verdict: Verdict, asked: u64, taken: Taken) -> Self {
        LimitDecision { basis, verdict, asked, taken }
    }

    /// A refusal of which only the limit itself is known.
    pub(crate) fn unknown(limit: Units) -> Self {
        Self::new(Basis::Unknown { limit: limit.get() }, Verdict::Short, 0, Taken::Nothing)
    }

    /// An admission that was not counted; only the limit itself is known.
    pub(crate) fn uncounted(limit: Units) -> Self {
        Self::new(Basis::Unknown { limit: limit.get() }, Verdict::Fits, 0, Taken::Nothing)
    }

    /// Whether nothing but the limit itself is known.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.basis, Basis::Unknown { .. })
    }

    /// This limit as somebody sees it who stands in line for `ahead` first.
    pub(crate) fn queued(&self, ahead: Wait) -> Self {
        let after = |wait: Option<Wait>| MaybeNever(wait.map_or(NEVER, |wait| wait.plus(ahead)));
        let verdict = match self.verdict {
            Verdict::Exceeds => Verdict::Exceeds,
            _ => Verdict::Short,
        };
        let basis = Basis::Queued {
            limit: self.limit().get(),
            admits_in: after(self.retry_after()),
            reset_after: after(self.reset_after()),
        };
        Self::new(basis, verdict, self.asked, Taken::Nothing)
    }

    /// Whether this limit alone would have admitted the cost.
    #[inline]
    pub fn admits(&self) -> bool {
        self.verdict == Verdict::Fits
    }

    /// Whether the cost is above what this limit can ever hold.
    #[inline]
    pub fn is_exceeded(&self) -> bool {
        self.verdict == Verdict::Exceeds
    }

    /// The capacity, or the limit per window.
    pub fn limit(&self) -> Units {
        let limit = match &self.basis {
            Basis::Bucket { bucket, .. } => bucket.capacity(),
            Basis::Counter { window, .. } => window.limit(),
            Basis::Fixed { limit, .. }
            | Basis::Log { limit, .. }
            | Basis::Queued { limit, .. }
            | Basis::Unknown { limit } => *limit,
        };
        // Taken from a `Limit`, so it is in range.
        Units::new(limit).unwrap_or(Units::MAX)
    }

    /// What is left, rounded down, never below 0.
    pub fn remaining(&self) -> u64 {
        match &self.basis {
            Basis::Bucket { bucket, level, .. } => bucket.whole(*level),
            Basis::Fixed { limit, count, .. } => limit.saturating_sub(*count),
            Basis::Counter { window, pair, elapsed, .. } => {
                window.limit().saturating_sub(window.estimate(*pair, *elapsed))
            }
            Basis::Log { limit, used, .. } => limit.saturating_sub(*used),
            Basis::Queued { .. } | Basis::Unknown { .. } => 0,
        }
    }

    /// Least wait until this limit admits the cost, nothing else happening: zero if it did, `None` if never.
    pub fn retry_after(&self) -> Option<Wait> {
        match self.verdict {
            Verdict::Fits => Some(Wait::ZERO),
            Verdict::Short => self.admits_in(self.asked),
            Verdict::Exceeds => None,
        }
    }

    /// Time until the limit is as new (a full bucket, an empty window): zero if it is, `None` if never.
    pub fn reset_after(&self) -> Option<Wait> {
        match &self.basis {
            Basis::Bucket { bucket, level, .. } => bucket.wait_for(*level, bucket.full()),
            Basis::Fixed { count: 0, .. } => Some(Wait::ZERO),
            Basis::Fixed { ends_in, .. } => Some(micros(*ends_in)),
            Basis::Counter { window, elapsed, previous_kept, current_kept, .. } => {
                Some(window.counter_reset(*previous_kept, *current_kept, *elapsed))
            }
            Basis::Log { reset_after, .. } => Some(micros(*reset_after)),
            Basis::Queued { reset_after, .. } => reset_after.get(),
            Basis::Unknown { .. } => None,
        }
    }

    /// Time until [`remaining`](Self::remaining) grows: `None` if it is at the limit or never grows.
    pub fn grows_after(&self) -> Option<Wait> {
        let next = self.remaining() + 1;
        if next > self.limit().get() {
            return None;
        }
        match &self.basis {
            Basis::Log { grows_in, .. } => Some(micros(*grows_in)),
            _ => self.admits_in(next),
        }
    }

    /// For a leaky bucket that admitted: how long until the work admitted before has leaked out.
    pub fn delay(&self) -> Wait {
        match (&self.basis, self.taken) {
            (Basis::Bucket { bucket, level, leaky: true }, Taken::Foreseen | Taken::Charged) => {
                let before = *level + bucket.level_of(self.charged());
                bucket.wait_for(before, bucket.full()).unwrap_or(Wait::ZERO)
            }
            _ => Wait::ZERO,
        }
    }

    /// What was charged to this limit.
    pub fn charged(&self) -> u64 {
        if self.taken == Taken::Charged { self.asked } else { 0 }
    }

    /// All figures at once.
    pub fn figures(&self) -> Figures {
        Figures {
            limit: self.limit().get(),
            remaining: self.remaining(),
            retry_after: self.retry_after(),
            reset_after: self.reset_after(),
            delay: self.delay(),
            grows_after: self.grows_after(),
        }
    }

    fn admits_in(&self, cost: u64) -> Option<Wait> {
        match &self.basis {
            Basis::Bucket { bucket, level, .. } => bucket.wait_for(*level, bucket.level_of(cost)),
            Basis::Fixed { ends_in, .. } => Some(micros(*ends_in)),
            Basis::Counter { window, pair, elapsed, .. } => Some(window.counter_wait(*pair, *elapsed, cost)),
            Basis::Log { admits_in, .. } => Some(micros(*admits_in)),
            Basis::Queued { admits_in, .. } => admits_in.get(),
            Basis::Unknown { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limits_share_stays_small() {
        assert!(size_of::<LimitDecision>() <= 64, "{}", size_of::<LimitDecision>());
    }
}
