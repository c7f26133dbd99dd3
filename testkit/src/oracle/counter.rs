//! Sliding window counter: the count of the current aligned window, and of the one before it weighted by the
//! part of that window still in view.

use std::collections::BTreeMap;

use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};

use super::figures::OracleLimit;
use super::rule::{Rule, wait_up, whole};

/// The whole history, window by window, by number (`t / W`).
#[derive(Debug, Clone)]
pub(super) struct SlidingCounter {
    limit: OracleLimit,
    counts: BTreeMap<u64, u64>,
}

/// The two windows in view at an instant, and how far the current one has run.
struct View {
    previous: u64,
    current: u64,
    elapsed: u64,
}

impl SlidingCounter {
    pub(super) fn empty(limit: OracleLimit) -> Self {
        SlidingCounter { limit, counts: BTreeMap::new() }
    }

    fn window(&self) -> u64 {
        self.limit.period_us
    }

    /// What was used in the two windows in view, under whatever figures.
    fn kept(&self, t: u64) -> View {
        let number = t / self.window();
        let count =
            |number: Option<u64>| number.and_then(|number| self.counts.get(&number)).copied().unwrap_or(0);
        let (previous, current) = (count(number.checked_sub(1)), count(Some(number)));
        View { previous, current, elapsed: t % self.window() }
    }

    /// What of it counts.
    fn view(&self, t: u64) -> View {
        let kept = self.kept(t);
        let most = self.limit.heaviest_count();
        View { previous: kept.previous.min(most), current: kept.current.min(most), ..kept }
    }

    fn set_current(&mut self, t: u64, count: u64) {
        self.counts.insert(t / self.window(), count);
    }

    /// `prev * (W - e) / W`.
    fn weighted_previous(&self, view: &View) -> BigRational {
        BigRational::new(view.previous.into(), self.window().into()) * whole(self.window() - view.elapsed)
    }

    fn estimate(&self, t: u64) -> BigRational {
        let view = self.view(t);
        self.weighted_previous(&view) + whole(view.current)
    }

    /// The least wait until the estimate, with nothing more charged, is `target` or less.
    ///
    /// It falls along a straight line to the end of the current window, where it is `cur`, and along another
    /// to the end of the next, where it is 0.
    fn wait_until_at_most(&self, t: u64, target: &BigRational) -> Option<u128> {
        if target.is_negative() {
            return None;
        }
        if self.estimate(t) <= *target {
            return Some(0);
        }
        let view = self.view(t);
        let window = whole(self.window());
        let (from_window_start, count, room) = if whole(view.current) <= *target {
            (whole(0), view.previous, target - whole(view.current))
        } else {
            (window.clone(), view.current, target.clone())
        };
        // count * (W - e) / W <= room, solved for e; the count is above 0, else the estimate were low enough.
        let elapsed = &window - room * &window / whole(count);
        Some(wait_up(&(from_window_start + elapsed - whole(view.elapsed))))
    }
}

impl Rule for SlidingCounter {
    fn admits(&self, t: u64, cost: u64) -> bool {
        self.estimate(t) + whole(cost) <= whole(self.limit.capacity)
    }

    fn charge(&mut self, t: u64, cost: u64) {
        self.set_current(t, self.kept(t).current + cost);
    }

    fn credit(&mut self, t: u64, n: u64) {
        self.set_current(t, self.kept(t).current.saturating_sub(n));
    }

    fn penalize(&mut self, t: u64, n: u64) -> u64 {
        let most = whole(self.limit.capacity) + whole(self.limit.debt());
        let room = (most - self.estimate(t)).floor().to_integer().to_u64().unwrap_or(0);
        let applied = n.min(room);
        self.set_current(t, self.kept(t).current + applied);
        n - applied
    }

    fn remaining(&self, t: u64) -> u64 {
        (whole(self.limit.capacity) - self.estimate(t)).floor().to_integer().to_u64().unwrap_or(0)
    }

    fn retry_after(&self, t: u64, cost: u64) -> Option<u128> {
        self.wait_until_at_most(t, &(whole(self.limit.capacity) - whole(cost)))
    }

    fn reset_after(&self, t: u64) -> Option<u128> {
        let view = self.kept(t);
        let to_end = u128::from(self.window() - view.elapsed);
        Some(match (view.current, view.previous) {
            (0, 0) => 0,
            (0, _) => to_end,
            _ => to_end + u128::from(self.window()),
        })
    }

    fn grows_after(&self, t: u64) -> Option<u128> {
        self.wait_until_at_most(t, &(whole(self.limit.capacity) - whole(self.remaining(t)) - whole(1)))
    }

    fn carried_to(&self, new: &OracleLimit, t: u64) -> Box<dyn Rule> {
        let mut carried = SlidingCounter { limit: new.clone(), counts: self.counts.clone() };
        if new.period_us != self.limit.period_us {
            carried.counts.clear();
            let estimate = self.estimate(t).ceil().to_integer().to_u64();
            carried.set_current(t, estimate.unwrap_or(u64::MAX));
        }
        Box::new(carried)
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}
