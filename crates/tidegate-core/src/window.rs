//! Fixed windows and the sliding window counter: counts in windows aligned to multiples of W since the epoch.

use crate::bucket::{divide, divide_up};
use crate::quantity::{Period, Timestamp, Units, Wait};

/// `limit` per `window`, and the highest count that enters the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    limit: u64,
    length: u64,
}

/// What a sliding counter knows at one instant: the two counts and how far into the current window it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) previous: u64,
    pub(crate) current: u64,
}

impl Window {
    pub(crate) fn new(limit: Units, window: Period) -> Self {
        Window { limit: limit.get(), length: window.as_micros() }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Microseconds since the window holding `at` began.
    pub(crate) fn elapsed(&self, at: Timestamp) -> u64 {
        at.as_micros() % self.length
    }

    /// Microseconds until the window holding `at` ends: 1 to W.
    pub(crate) fn ends_in(&self, at: Timestamp) -> u64 {
        self.length - self.elapsed(at)
    }

    /// The count of the window holding `at`, given the count of the window holding `last`.
    pub(crate) fn count_at(&self, count: u64, last: Timestamp, at: Timestamp) -> u64 {
        let began = at.as_micros() - self.elapsed(at);
        if last.as_micros() >= began { count } else { 0 }
    }

    /// Both counts as of `at`, given the ones as of `last`.
    pub(crate) fn pair_at(&self, pair: Pair, last: Timestamp, at: Timestamp) -> Pair {
        let began = at.as_micros() - self.elapsed(at);
        if last.as_micros() >= began {
            pair
        } else if last.as_micros() + self.length >= began {
            Pair { previous: pair.current, current: 0 }
        } else {
            Pair { previous: 0, current: 0 }
        }
    }

    /// prev * (W - e) / W + cur, rounded up: the cost that counts as used at `elapsed` into the window.
    pub(crate) fn estimate(&self, pair: Pair, elapsed: u64) -> u64 {
        self.weighted(pair.previous, elapsed) + pair.current
    }

    /// prev * (W - e) / W, rounded up. `previous` is below 2^42 and W below 2^45, so the result fits.
    fn weighted(&self, previous: u64, elapsed: u64) -> u64 {
        divide_up(u128::from(previous) * u128::from(self.length - elapsed), self.length) as u64
    }

    /// Least wait until a sliding counter that stands at `pair` admits `cost`, nothing else happening; the
    /// caller has seen to it that `cost` is at most the limit.
    pub(crate) fn counter_wait(&self, pair: Pair, elapsed: u64, cost: u64) -> Wait {
        if self.estimate(pair, elapsed) + cost <= self.limit {
            return Wait::ZERO;
        }
        let room = self.limit - cost;
        let micros = match room.checked_sub(pair.current) {
            Some(room) => self.falls_to(pair.previous, room) - elapsed,
            // The current count alone is too much: it has to become the previous one and fall.
            None => self.length - elapsed + self.falls_to(pair.current, room),
        };
        Wait::from_micros(u128::from(micros))
    }

    /// How far into a window `previous` has lost enough weight to count at most `room`: 0 to W.
    fn falls_to(&self, previous: u64, room: u64) -> u64 {
        if previous <= room {
            return 0;
        }
        // previous * (W - e) <= room * W  <=>  W - e <= floor(room * W / previous), which is below W here.
        self.length - divide(u128::from(room) * u128::from(self.length), previous) as u64
    }

    /// Time until a sliding counter is as new, by which of its two counts are above zero.
    pub(crate) fn counter_reset(&self, previous: bool, current: bool, elapsed: u64) -> Wait {
        let micros = match (previous, current) {
            (false, false) => 0,
            (true, false) => self.length - elapsed,
            (_, true) => 2 * self.length - elapsed,
        };
        Wait::from_micros(u128::from(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(limit: u32, millis: u64) -> Window {
        Window::new(Units::from(limit), Period::from_micros(millis * 1_000).unwrap())
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000).unwrap()
    }

    #[test]
    fn windows_are_aligned_to_the_epoch() {
        let minute = window(2, 60_000);
        assert_eq!(minute.ends_in(at(59_999)), 1_000);
        assert_eq!(minute.ends_in(at(60_000)), 60_000_000);
        assert_eq!(minute.count_at(2, at(0), at(59_999)), 2);
        assert_eq!(minute.count_at(2, at(59_999), at(60_000)), 0);
    }

    #[test]
    fn the_counter_rotates_once_and_then_forgets() {
        let minute = window(40, 60_000);
        let pair = Pair { previous: 3, current: 20 };
        assert_eq!(minute.pair_at(pair, at(1_000), at(59_000)), pair);
        assert_eq!(minute.pair_at(pair, at(1_000), at(60_000)), Pair { previous: 20, current: 0 });
        assert_eq!(minute.pair_at(pair, at(1_000), at(119_999)), Pair { previous: 20, current: 0 });
        assert_eq!(minute.pair_at(pair, at(1_000), at(120_000)), Pair { previous: 0, current: 0 });
    }

    #[test]
    fn the_counter_waits_into_the_next_window_when_it_must() {
        let minute = window(10, 60_000);
        let pair = Pair { previous: 0, current: 8 };
        assert_eq!(minute.counter_wait(pair, 1_000_000, 5), Wait::from_micros(81_500_000));
        assert_eq!(minute.counter_wait(pair, 1_000_000, 2), Wait::ZERO);
        let later = Pair { previous: 9, current: 0 };
        assert_eq!(minute.estimate(later, 22_500_000), 6);
        assert_eq!(minute.counter_wait(later, 22_500_000, 5), Wait::from_micros(4_166_667));
    }

    #[test]
    fn the_counter_is_as_new_only_when_both_counts_are_gone() {
        let minute = window(10, 60_000);
        assert_eq!(minute.counter_reset(false, true, 1).as_micros(), 119_999_999);
        assert_eq!(minute.counter_reset(true, false, 1).as_micros(), 59_999_999);
        assert_eq!(minute.counter_reset(false, false, 1), Wait::ZERO);
    }
}
