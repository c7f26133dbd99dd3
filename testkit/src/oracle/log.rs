//! Sliding window log: every admission, remembered until it is exactly `W` old.

use super::figures::OracleLimit;
use super::rule::Rule;

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u64,
    cost: u64,
}

/// All that was admitted, oldest first.
#[derive(Debug, Clone)]
pub(super) struct SlidingLog {
    limit: OracleLimit,
    entries: Vec<Entry>,
}

impl SlidingLog {
    pub(super) fn empty(limit: OracleLimit) -> Self {
        SlidingLog { limit, entries: Vec::new() }
    }

    fn expires(&self, entry: &Entry) -> u128 {
        u128::from(entry.at) + u128::from(self.limit.period_us)
    }

    /// The cost admitted in `(instant - W, instant]`.
    fn sum(&self, instant: u128) -> u64 {
        let live = self.entries.iter().filter(|entry| instant < self.expires(entry));
        let sum: u64 = live.map(|entry| entry.cost).sum();
        sum.min(self.limit.heaviest_count())
    }

    /// The first wait, 0 included, after which `enough` holds of the sum.
    fn first_wait(&self, t: u64, enough: impl Fn(u64) -> bool) -> Option<u128> {
        let now = u128::from(t);
        let expiries = self.entries.iter().map(|entry| self.expires(entry)).filter(|at| *at > now);
        std::iter::once(now).chain(expiries).find(|at| enough(self.sum(*at))).map(|at| at - now)
    }
}

impl Rule for SlidingLog {
    fn admits(&self, t: u64, cost: u64) -> bool {
        self.sum(t.into()) + cost <= self.limit.capacity
    }

    fn charge(&mut self, t: u64, cost: u64) {
        self.entries.push(Entry { at: t, cost });
    }

    fn credit(&mut self, t: u64, n: u64) {
        let mut left = n;
        let window = self.limit.period_us;
        for entry in self.entries.iter_mut().rev().filter(|entry| t - entry.at < window) {
            let forgotten = left.min(entry.cost);
            entry.cost -= forgotten;
            left -= forgotten;
        }
        self.entries.retain(|entry| entry.cost > 0);
    }

    fn penalize(&mut self, t: u64, n: u64) -> u64 {
        let most = self.limit.capacity + self.limit.debt();
        let applied = n.min(most.saturating_sub(self.sum(t.into())));
        if applied > 0 {
            self.charge(t, applied);
        }
        n - applied
    }

    fn remaining(&self, t: u64) -> u64 {
        self.limit.capacity.saturating_sub(self.sum(t.into()))
    }

    fn retry_after(&self, t: u64, cost: u64) -> Option<u128> {
        self.first_wait(t, |sum| sum + cost <= self.limit.capacity)
    }

    fn reset_after(&self, t: u64) -> Option<u128> {
        let live_until = self.entries.iter().map(|entry| self.expires(entry)).max().unwrap_or(0);
        Some(live_until.saturating_sub(t.into()))
    }

    fn grows_after(&self, t: u64) -> Option<u128> {
        let remaining = self.remaining(t);
        self.first_wait(t, |sum| self.limit.capacity.saturating_sub(sum) > remaining)
    }

    fn carried_to(&self, new: &OracleLimit, t: u64) -> Box<dyn Rule> {
        let live = |entry: &&Entry| u128::from(t) < self.expires(entry);
        let entries = self.entries.iter().filter(live).copied().collect();
        Box::new(SlidingLog { limit: new.clone(), entries })
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}
