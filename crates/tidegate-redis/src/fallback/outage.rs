//! Whether the store is out, and when that is told.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::Timestamp;

/// An outage is told of once in so many microseconds, and is over after as long without a failure.
const SECOND: u64 = 1_000_000;

/// An outage, if there is one. Some calls may succeed while others do not: there is no room for what writes, or the user
/// may not touch some keys. That is one outage for as long as it goes on.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// When it was told of last, in microseconds; 0 while there is none.
    told: AtomicU64,
    /// The latest instant of a call that failed, in microseconds.
    failed: AtomicU64,
}

impl Outage {
    /// A call asked at `now` had no answer. Whether that is to be told: once a second at most.
    pub(super) fn failed(&self, now: Timestamp) -> bool {
        let now = now.as_micros().max(1);
        // Calls come back in another order than they went out in.
        self.failed.fetch_max(now, Ordering::Relaxed);
        let told = self.told.load(Ordering::Relaxed);
        let is_due = told == 0 || now >= told.saturating_add(SECOND);
        is_due && self.told.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// A call asked at `now` was answered. Whether an outage that was told of is over by that, which is true once.
    pub(super) fn answered(&self, now: Timestamp) -> bool {
        self.told.load(Ordering::Relaxed) != 0
            && self.is_over(now)
            && self.told.swap(0, Ordering::Relaxed) != 0
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.as_micros() >= self.failed.load(Ordering::Relaxed).saturating_add(SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000_000;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(START + micros).unwrap()
    }

    /// What is told of calls every millisecond for so many seconds, by whether each fails: the instants of outages, and
    /// of their ends.
    fn told(outage: &Outage, from: u64, seconds: u64, fails: impl Fn(u64) -> bool) -> (Vec<u64>, Vec<u64>) {
        let (mut outages, mut ends) = (Vec::new(), Vec::new());
        for micros in (from..from + seconds * SECOND).step_by(1_000) {
            match fails(micros) {
                true if outage.failed(at(micros)) => outages.push(micros),
                false if outage.answered(at(micros)) => ends.push(micros),
                _ => {}
            }
        }
        (outages, ends)
    }

    #[test]
    fn where_some_calls_fail_and_others_do_not_one_line_a_second_is_told() {
        let outage = Outage::default();
        let every_other = |micros: u64| micros.is_multiple_of(2_000);
        let seconds: Vec<u64> = (0..10).map(|second| second * SECOND).collect();
        assert_eq!(told(&outage, 0, 10, every_other), (seconds, vec![]));
        // The last one failed at 9.998 s, and the end is told once.
        assert_eq!(told(&outage, 10 * SECOND, 10, |_| false), (vec![], vec![10_998_000]));
        // Once in 900 ms is no end; once in 1.5 s is one each time.
        let rarely = told(&outage, 20 * SECOND, 9, |micros| micros.is_multiple_of(900_000));
        assert_eq!((rarely.0.len(), rarely.1), (5, vec![]));
        told(&outage, 29 * SECOND, 2, |_| false);
        let apart = told(&outage, 31 * SECOND, 9, |micros| micros.is_multiple_of(1_500_000));
        assert_eq!(apart.0, (21..=25).map(|nth| nth * 1_500_000).chain([39_000_000]).collect::<Vec<_>>());
        assert_eq!(apart.1.len(), 5);
    }

    #[test]
    fn an_outage_of_all_is_told_once_a_second_and_its_end_once() {
        let outage = Outage::default();
        assert_eq!(told(&outage, 0, 3, |_| false), (vec![], vec![]));
        assert_eq!(told(&outage, 3 * SECOND, 3, |_| true).0, [3_000_000, 4_000_000, 5_000_000]);
        assert_eq!(told(&outage, 6 * SECOND, 3, |_| false), (vec![], vec![6_999_000]));
        assert!(outage.failed(at(9 * SECOND)), "the next one is told at once");
    }

    /// Some failures are known at once, others after their timeout.
    #[test]
    fn failures_that_come_back_late_tell_nothing_more() {
        let outage = Outage::default();
        let mut lines = 0;
        for micros in (0..10 * SECOND).step_by(1_000) {
            lines += u32::from(outage.failed(at(3 * SECOND + micros)));
            lines += u32::from(outage.failed(at(micros)));
        }
        assert_eq!(lines, 10);
        assert!(!outage.answered(at(13 * SECOND)), "less than a second after the last");
        assert!(outage.answered(at(14 * SECOND)));
        assert!(!outage.answered(at(14 * SECOND)));
    }

    /// The first instant there is counts as one, too.
    #[test]
    fn threads_tell_of_one_outage_once() {
        let outage = Outage::default();
        let tellers = |tell: &(dyn Fn() -> bool + Sync)| {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(tell)).collect();
                threads.into_iter().map(|it| it.join().unwrap()).filter(|told| *told).count()
            })
        };
        let (zero, second) =
            (Timestamp::from_micros(0).unwrap(), Timestamp::from_micros(SECOND + 1).unwrap());
        assert_eq!(tellers(&|| outage.failed(zero)), 1);
        assert_eq!(tellers(&|| outage.answered(second)), 1);
    }
}
