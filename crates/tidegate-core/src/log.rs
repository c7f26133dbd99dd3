//! The sliding window log: every admitted cost with its stamp, exact over any window, bounded in entries.

use alloc::collections::VecDeque;

use crate::quantity::Timestamp;

/// The admitted costs of one key under one sliding log, oldest first, same stamps merged.
///
/// Each entry holds the running total up to and including itself, so what has aged out is found by binary
/// search and a refused check costs O(log n) however full the log is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The running total just before the first entry.
    base: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: u64,
    total: u64,
}

/// Running totals are brought back to 0 past this; one charge adds at most 10^12 (2^40).
const REBASE_PAST: u64 = 1 << 62;

impl Log {
    /// A log without entries; allocates nothing.
    pub const fn new() -> Self {
        Log { entries: VecDeque::new(), base: 0 }
    }

    /// Builds a log from (stamp, cost) pairs, oldest first.
    pub fn from_entries(entries: impl IntoIterator<Item = (Timestamp, u64)>) -> Self {
        let mut log = Log::new();
        entries.into_iter().for_each(|(at, cost)| log.push(at, cost));
        log
    }

    /// The entries as (stamp, cost), oldest first.
    pub fn entries(&self) -> impl Iterator<Item = (Timestamp, u64)> + '_ {
        let before = core::iter::once(self.base).chain(self.entries.iter().map(|e| e.total));
        let stamp = |at| Timestamp::saturating_from_micros(at);
        self.entries.iter().zip(before).map(move |(e, before)| (stamp(e.at), e.total - before))
    }

    /// Number of entries kept: at most one a microsecond and one a unit of cost.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// The cost in (at - window, at]. An entry of time s is out at exactly s + window.
    pub(crate) fn used(&self, window: u64, at: Timestamp) -> u64 {
        self.total() - self.total_before(self.first_live(window, at))
    }

    /// Microseconds until at most `room` of what is live at `at` is left.
    pub(crate) fn wait_for(&self, window: u64, at: Timestamp, room: u64) -> u64 {
        // What must have aged out is everything but the newest entries that fit into `room`.
        let keep_above = self.total().saturating_sub(room);
        let first_kept = self.entries.partition_point(|e| e.total < keep_above);
        match self.entries.get(first_kept) {
            Some(last_out) if keep_above > self.total_before(self.first_live(window, at)) => {
                last_out.at + window - at.as_micros()
            }
            _ => 0,
        }
    }

    /// Microseconds until nothing is live any more.
    pub(crate) fn reset_after(&self, window: u64, at: Timestamp) -> u64 {
        match self.entries.back() {
            Some(newest) if newest.at + window > at.as_micros() => newest.at + window - at.as_micros(),
            _ => 0,
        }
    }

    /// Logs `cost` at `at`, which is not older than the newest entry.
    pub(crate) fn push(&mut self, at: Timestamp, cost: u64) {
        if cost == 0 {
            return;
        }
        let total = self.total() + cost;
        match self.entries.back_mut() {
            Some(newest) if newest.at == at.as_micros() => newest.total = total,
            _ => self.entries.push_back(Entry { at: at.as_micros(), total }),
        }
        if total > REBASE_PAST {
            self.entries.iter_mut().for_each(|e| e.total -= self.base);
            self.base = 0;
        }
    }

    /// Forgets what has aged out at `at`, and gives memory back when little is left.
    pub(crate) fn evict(&mut self, window: u64, at: Timestamp) {
        let live = self.first_live(window, at);
        if live == 0 {
            return;
        }
        self.base = self.total_before(live);
        self.entries.drain(..live);
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    /// Takes `units` back from the newest entries.
    pub(crate) fn forget(&mut self, units: u64) {
        let target = self.total().saturating_sub(units).max(self.base);
        while self.entries.back().is_some() {
            let before = self.total_before(self.entries.len() - 1);
            if before < target {
                if let Some(newest) = self.entries.back_mut() {
                    newest.total = target;
                }
                return;
            }
            self.entries.pop_back();
        }
    }

    fn total(&self) -> u64 {
        self.entries.back().map_or(self.base, |newest| newest.total)
    }

    fn total_before(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            Some(before) => self.entries[before].total,
            None => self.base,
        }
    }

    fn first_live(&self, window: u64, at: Timestamp) -> usize {
        // The usual case first: nothing has aged out.
        match self.entries.front() {
            Some(oldest) if oldest.at + window > at.as_micros() => 0,
            _ => self.entries.partition_point(|e| e.at + window <= at.as_micros()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros).unwrap()
    }

    fn log(entries: &[(u64, u64)]) -> Log {
        Log::from_entries(entries.iter().map(|&(micros, cost)| (at(micros), cost)))
    }

    #[test]
    fn an_entry_is_out_at_exactly_its_time_plus_the_window() {
        let log = log(&[(5, 1), (7, 2), (7, 3)]);
        assert_eq!(log.len(), 2);
        assert_eq!(log.used(10, at(14)), 6);
        assert_eq!(log.used(10, at(15)), 5);
        assert_eq!(log.used(10, at(16)), 5);
        assert_eq!(log.used(10, at(17)), 0);
    }

    #[test]
    fn waits_for_just_enough_to_age_out() {
        let log = log(&[(5, 1), (7, 5), (9, 2)]);
        assert_eq!(log.wait_for(10, at(9), 8), 0);
        assert_eq!(log.wait_for(10, at(9), 7), 6);
        assert_eq!(log.wait_for(10, at(9), 6), 8);
        assert_eq!(log.wait_for(10, at(9), 2), 8);
        assert_eq!(log.wait_for(10, at(9), 1), 10);
        assert_eq!(log.wait_for(10, at(17), 2), 0);
        assert_eq!(log.reset_after(10, at(9)), 10);
        assert_eq!(log.reset_after(10, at(19)), 0);
    }

    #[test]
    fn forgets_the_newest_first_and_evicts_the_oldest() {
        let mut log = log(&[(5, 1), (7, 5), (9, 2)]);
        log.forget(3);
        assert_eq!(log.entries().collect::<alloc::vec::Vec<_>>(), [(at(5), 1), (at(7), 4)]);
        log.evict(10, at(15));
        assert_eq!(log.entries().collect::<alloc::vec::Vec<_>>(), [(at(7), 4)]);
        log.forget(100);
        assert!(log.is_empty());
        log.push(at(20), 2);
        assert_eq!(log.used(10, at(20)), 2);
    }
}
