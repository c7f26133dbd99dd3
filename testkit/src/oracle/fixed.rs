//! Fixed window: how much was admitted in each window aligned to the epoch.

use std::collections::BTreeMap;

use super::figures::OracleLimit;
use super::rule::Rule;

/// The whole history, window by window, by number (`t / W`).
#[derive(Debug, Clone)]
pub(super) struct FixedWindow {
    limit: OracleLimit,
    counts: BTreeMap<u64, u64>,
}

impl FixedWindow {
    pub(super) fn empty(limit: OracleLimit) -> Self {
        FixedWindow { limit, counts: BTreeMap::new() }
    }

    fn number(&self, t: u64) -> u64 {
        t / self.limit.period_us
    }

    /// What was used in the window that holds `t`, under whatever figures.
    fn kept(&self, t: u64) -> u64 {
        self.counts.get(&self.number(t)).copied().unwrap_or(0)
    }

    /// What of it counts.
    fn count(&self, t: u64) -> u64 {
        self.kept(t).min(self.limit.heaviest_count())
    }

    fn set(&mut self, t: u64, count: u64) {
        self.counts.insert(self.number(t), count);
    }

    fn to_window_end(&self, t: u64) -> u128 {
        u128::from(self.limit.period_us - t % self.limit.period_us)
    }
}

impl Rule for FixedWindow {
    fn admits(&self, t: u64, cost: u64) -> bool {
        self.count(t) + cost <= self.limit.capacity
    }

    fn charge(&mut self, t: u64, cost: u64) {
        self.set(t, self.kept(t) + cost);
    }

    fn credit(&mut self, t: u64, n: u64) {
        self.set(t, self.kept(t).saturating_sub(n));
    }

    fn penalize(&mut self, t: u64, n: u64) -> u64 {
        let most = self.limit.capacity + self.limit.debt();
        let applied = n.min(most.saturating_sub(self.count(t)));
        self.set(t, self.kept(t) + applied);
        n - applied
    }

    fn remaining(&self, t: u64) -> u64 {
        self.limit.capacity.saturating_sub(self.count(t))
    }

    fn retry_after(&self, t: u64, cost: u64) -> Option<u128> {
        if self.admits(t, cost) {
            Some(0)
        } else if cost > self.limit.capacity {
            None
        } else {
            Some(self.to_window_end(t))
        }
    }

    fn reset_after(&self, t: u64) -> Option<u128> {
        Some(if self.kept(t) == 0 { 0 } else { self.to_window_end(t) })
    }

    fn grows_after(&self, t: u64) -> Option<u128> {
        (self.remaining(t) < self.limit.capacity).then(|| self.to_window_end(t))
    }

    fn carried_to(&self, new: &OracleLimit, t: u64) -> Box<dyn Rule> {
        let mut carried = FixedWindow { limit: new.clone(), counts: self.counts.clone() };
        if new.period_us != self.limit.period_us {
            carried.counts.clear();
            carried.set(t, self.kept(t));
        }
        Box::new(carried)
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}
