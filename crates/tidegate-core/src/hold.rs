//! The rule of each algorithm, at one instant: what a limit holds, what it admits, what a charge leaves.

use crate::bucket::Level;
use crate::decision::MAX_LIMITS;
use crate::figures::{Basis, LimitDecision, Taken, Verdict};
use crate::limit::{Algorithm, Limit, Shape};
use crate::log::Log;
use crate::quantity::{Timestamp, Wait};
use crate::state::{Cells, State};
use crate::window::Pair;

/// What a limit holds at the decided instant: its kept state brought up to it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    Bucket(Level),
    Fixed(u64),
    Counter(Pair),
    Log(u64),
}

/// Room for the holdings of every limit of a plan.
pub(crate) type AllHeld = [Held; MAX_LIMITS];

impl Limit {
    /// Brings what was kept as of `last` up to `at`, which is not earlier.
    #[inline(always)]
    pub(crate) fn hold(&self, kept: State<'_>, last: Timestamp, at: Timestamp) -> Held {
        match (&self.shape, kept) {
            (Shape::Bucket(bucket), State::Bucket(level)) => {
                Held::Bucket(bucket.advance(level, at.micros_since(last)))
            }
            (Shape::Fixed(window), State::Count(count)) => Held::Fixed(window.count_at(count, last, at)),
            (Shape::Counter(window), State::Pair { previous, current }) => {
                Held::Counter(window.pair_at(Pair { previous, current }, last, at))
            }
            (Shape::Log(window), State::Log(log)) => Held::Log(log.used(window.length(), at)),
            // A store that hands over another kind of state kept nothing for this one.
            _ => self.untouched(),
        }
    }

    /// What a key never seen holds.
    pub(crate) fn untouched(&self) -> Held {
        match &self.shape {
            Shape::Bucket(bucket) => Held::Bucket(bucket.full()),
            Shape::Fixed(_) => Held::Fixed(0),
            Shape::Counter(_) => Held::Counter(Pair { previous: 0, current: 0 }),
            Shape::Log(_) => Held::Log(0),
        }
    }

    /// Whether `cost` is admitted by what is held.
    #[inline(always)]
    pub(crate) fn verdict(&self, held: Held, at: Timestamp, cost: u64) -> Verdict {
        let (fits, exceeds) = match (&self.shape, held) {
            (Shape::Bucket(bucket), Held::Bucket(level)) => {
                (level >= bucket.level_of(cost), cost > bucket.capacity())
            }
            (Shape::Counter(window), Held::Counter(pair)) => {
                let used = window.estimate(self.counted(pair), window.elapsed(at));
                (used + cost <= window.limit(), cost > window.limit())
            }
            (Shape::Fixed(window) | Shape::Log(window), Held::Fixed(used) | Held::Log(used)) => {
                (used.min(self.most_counted(window)) + cost <= window.limit(), cost > window.limit())
            }
            _ => (false, false),
        };
        match (fits, exceeds) {
            (_, true) => Verdict::Exceeds,
            (true, _) => Verdict::Fits,
            _ => Verdict::Short,
        }
    }

    /// Whole units that would be admitted now.
    pub(crate) fn room(&self, held: Held, at: Timestamp) -> u64 {
        match (&self.shape, held) {
            (Shape::Bucket(bucket), Held::Bucket(level)) => bucket.whole(level),
            (Shape::Counter(window), Held::Counter(pair)) => {
                window.limit().saturating_sub(window.estimate(self.counted(pair), window.elapsed(at)))
            }
            (Shape::Fixed(window) | Shape::Log(window), Held::Fixed(used) | Held::Log(used)) => {
                window.limit().saturating_sub(used)
            }
            _ => 0,
        }
    }

    /// What is held after a charge that was found to fit.
    #[inline(always)]
    pub(crate) fn charge(&self, held: Held, cost: u64) -> Held {
        match (&self.shape, held) {
            (Shape::Bucket(bucket), Held::Bucket(level)) => Held::Bucket(level - bucket.level_of(cost)),
            (_, Held::Fixed(count)) => Held::Fixed(count + cost),
            (_, Held::Counter(pair)) => Held::Counter(Pair { current: pair.current + cost, ..pair }),
            (_, Held::Log(used)) => Held::Log(used + cost),
            (_, other) => other,
        }
    }

    /// What is held after a forced charge, and what of it was cut because it would exceed the debt allowed.
    pub(crate) fn force(&self, held: Held, at: Timestamp, units: u64) -> (Held, u64) {
        let (window, used) = match (&self.shape, held) {
            (Shape::Bucket(bucket), Held::Bucket(level)) => {
                let (level, cut) = bucket.force(level, units, self.debt().get());
                return (Held::Bucket(level), cut);
            }
            (Shape::Counter(window), Held::Counter(pair)) => {
                (window, window.estimate(self.counted(pair), window.elapsed(at)))
            }
            (Shape::Fixed(window) | Shape::Log(window), Held::Fixed(used) | Held::Log(used)) => {
                (window, used)
            }
            _ => return (held, units),
        };
        let applied = units.min((window.limit() + self.debt().get()).saturating_sub(used));
        (self.charge(held, applied), units - applied)
    }

    /// What is held after `units` are given back.
    pub(crate) fn credit(&self, held: Held, units: u64) -> Held {
        match (&self.shape, held) {
            (Shape::Bucket(bucket), Held::Bucket(level)) => {
                Held::Bucket((level + bucket.level_of(units)).min(bucket.full()))
            }
            (_, Held::Fixed(count)) => Held::Fixed(count.saturating_sub(units)),
            (_, Held::Counter(pair)) => {
                Held::Counter(Pair { current: pair.current.saturating_sub(units), ..pair })
            }
            (_, Held::Log(used)) => Held::Log(used.saturating_sub(units)),
            (_, other) => other,
        }
    }

    /// Writes what is held at `at` back; `before` is what was held there before the change.
    #[inline(always)]
    pub(crate) fn keep(&self, index: usize, before: Held, held: Held, at: Timestamp, cells: &mut impl Cells) {
        let state = match held {
            Held::Bucket(level) => State::Bucket(level),
            Held::Fixed(count) => State::Count(count),
            Held::Counter(Pair { previous, current }) => State::Pair { previous, current },
            Held::Log(used) => return self.keep_log(before, used, at, cells.log_mut(index)),
        };
        cells.save(index, self, state);
    }

    fn keep_log(&self, before: Held, used: u64, at: Timestamp, log: &mut Log) {
        let (Shape::Log(window), Held::Log(before)) = (&self.shape, before) else { return };
        log.evict(window.length(), at);
        match used.checked_sub(before) {
            Some(charged) => log.push(at, charged),
            None => log.forget(before - used),
        }
    }

    /// The log kept for this limit, which is at `index`, if it keeps one.
    #[inline(always)]
    pub(crate) fn log_in<'a>(&self, cells: &'a impl Cells, index: usize) -> Option<&'a Log> {
        if !self.keeps_log() {
            return None;
        }
        match cells.load(index, self) {
            State::Log(log) => Some(log),
            _ => None,
        }
    }

    /// Time from `at` until what is held then is as new; `None` if never.
    pub(crate) fn as_new_after(&self, held: Held, log: Option<&Log>, at: Timestamp) -> Option<Wait> {
        self.decided(held, log, at, Verdict::Fits, 0, Taken::Nothing).reset_after()
    }

    /// This limit's share in a decision.
    #[inline(always)]
    pub(crate) fn decided(
        &self,
        held: Held,
        log: Option<&Log>,
        at: Timestamp,
        verdict: Verdict,
        asked: u64,
        taken: Taken,
    ) -> LimitDecision {
        let basis = match (&self.shape, held) {
            (Shape::Bucket(bucket), Held::Bucket(level)) => {
                let leaky = self.algorithm() == Algorithm::LeakyBucket;
                Basis::Bucket { bucket: *bucket, level, leaky }
            }
            (Shape::Fixed(window), Held::Fixed(count)) => {
                Basis::Fixed { limit: window.limit(), count, ends_in: window.ends_in(at) }
            }
            (Shape::Counter(window), Held::Counter(pair)) => Basis::Counter {
                window: *window,
                pair: self.counted(pair),
                elapsed: window.elapsed(at),
                previous_kept: pair.previous > 0,
                current_kept: pair.current > 0,
            },
            (Shape::Log(window), Held::Log(used)) => {
                let limit = window.limit();
                let wait = |cost: u64| match (log, limit.checked_sub(cost)) {
                    (Some(log), Some(room)) => log.wait_for(window.length(), at, room),
                    _ => 0,
                };
                let reset_after = log.map_or(0, |log| log.reset_after(window.length(), at));
                let next = limit.saturating_sub(used) + 1;
                Basis::Log { limit, used, admits_in: wait(asked), grows_in: wait(next), reset_after }
            }
            _ => Basis::Unknown { limit: self.capacity().get() },
        };
        LimitDecision::new(basis, verdict, asked, taken)
    }

    /// A sliding counter's counts as they enter the arithmetic, whatever was counted under other figures.
    #[inline]
    fn counted(&self, pair: Pair) -> Pair {
        match &self.shape {
            Shape::Counter(window) => {
                let most = self.most_counted(window);
                Pair { previous: pair.previous.min(most), current: pair.current.min(most) }
            }
            _ => pair,
        }
    }
}
