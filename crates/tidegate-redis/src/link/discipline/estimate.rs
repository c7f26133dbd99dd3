//! What time it is, by what servers said over a network.
//!
//! A server that was asked at `before` and whose answer was here at `after` said its time somewhere in between: in
//! the middle, give or take half the round trip. So an answer that was quick says more than a slow one, for as long
//! as the clocks have not drifted further apart than that.

use std::collections::BTreeMap;

use tidegate_core::Timestamp;

use crate::link::Reading;

/// Clocks drift apart by no more than this part: 100 us in a second. Quartz does by a third of it.
const DRIFT: u64 = 10_000;
/// So many estimates of a server are kept, the latest.
const KEPT: usize = 16;
/// And none for longer, in nanoseconds: a server that has not answered for a minute may be gone.
const FORGOTTEN_AFTER: u64 = 60_000_000_000;

/// A server's time at an instant of the node's ticks. All in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Estimate {
    at: u64,
    time: u64,
    /// It is wrong by no more than this.
    error: u64,
}

impl Estimate {
    fn of(reading: &Reading) -> Self {
        let took = reading.after.saturating_sub(reading.before);
        // The server cut its time to whole microseconds: it was half of one later on average.
        let time = reading.time.saturating_mul(1000).saturating_add(500);
        Self { at: reading.before + took / 2, time, error: took / 2 + 500 }
    }

    fn time_at(&self, at: u64) -> u64 {
        if at >= self.at {
            self.time.saturating_add(at - self.at)
        } else {
            self.time.saturating_sub(self.at - at)
        }
    }

    fn error_at(&self, at: u64) -> u64 {
        self.error + at.abs_diff(self.at) / DRIFT
    }

    /// Whether both can be right.
    fn agrees_with(&self, other: &Self) -> bool {
        self.time.abs_diff(other.time_at(self.at)) <= self.error + other.error_at(self.at)
    }
}

/// What servers said lately.
#[derive(Debug, Default)]
pub(super) struct Estimates(BTreeMap<String, Vec<Estimate>>);

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreed {
    pub time: Timestamp,
    /// Nanoseconds by which it may be wrong.
    pub error: u64,
}

impl Estimates {
    /// Takes note of what servers said.
    pub fn take(&mut self, readings: Vec<Reading>) {
        let Some(now) = readings.iter().map(|reading| reading.after).max() else { return };
        for reading in readings {
            let new = Estimate::of(&reading);
            let of_server = self.0.entry(reading.server).or_default();
            // Somebody set the server's clock: what it said before is worth nothing.
            of_server.retain(|old| new.agrees_with(old));
            of_server.push(new);
            let surplus = of_server.len().saturating_sub(KEPT);
            of_server.drain(..surplus);
        }
        self.0.retain(|_, of_server| {
            of_server.retain(|old| now.saturating_sub(old.at) <= FORGOTTEN_AFTER);
            !of_server.is_empty()
        });
    }

    /// The median of what the servers' clocks say at this instant, each by the best estimate of it: one clock that is
    /// wrong counts for nothing among three.
    pub fn agreed(&self, at: u64) -> Option<Agreed> {
        let best = |of_server: &Vec<Estimate>| of_server.iter().min_by_key(|it| it.error_at(at)).copied();
        let mut said: Vec<(u64, u64)> =
            self.0.values().filter_map(best).map(|it| (it.time_at(at), it.error_at(at))).collect();
        said.sort_unstable();
        let (low, high) = (said.get(said.len().checked_sub(1)? / 2)?, said.get(said.len() / 2)?);
        let time = low.0 + (high.0 - low.0) / 2;
        Some(Agreed { time: Timestamp::saturating_from_micros(time / 1000), error: low.1.max(high.1) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;
    const HOUR: u64 = 3600 * SECOND;
    /// Some day in 2023, in nanoseconds.
    const START: u64 = 1_700_000_000 * SECOND;

    /// A server whose clock is `ahead` of `START` plus the ticks, asked at `at`, its answer underway both ways.
    fn reading(server: &str, ahead: u64, at: u64, there: u64, back: u64) -> Reading {
        let time = (START + ahead + at + there) / 1000;
        Reading { server: server.to_owned(), before: at, time, after: at + there + back }
    }

    fn nanos(agreed: Option<Agreed>) -> u64 {
        agreed.unwrap().time.as_micros() * 1000
    }

    #[test]
    fn the_quickest_answer_counts_for_as_long_as_clocks_agree() {
        let mut estimates = Estimates::default();
        assert_eq!(estimates.agreed(0), None);
        estimates.take(vec![]);
        assert_eq!(estimates.agreed(0), None);
        // 40 ms lost on the way back: up to 20 ms wrong.
        estimates.take(vec![reading("a", 0, SECOND, 0, 40 * MS)]);
        assert_eq!(estimates.agreed(2 * SECOND).unwrap().error, 20 * MS + 500 + 98_000);
        assert_eq!(nanos(estimates.agreed(2 * SECOND)), START + 2 * SECOND - 20 * MS);
        estimates.take(vec![reading("a", 0, 2 * SECOND, MS, MS)]);
        assert_eq!(nanos(estimates.agreed(2 * SECOND)), START + 2 * SECOND);
        // Slow answers afterwards spoil nothing.
        for second in 3..20 {
            estimates.take(vec![reading("a", 0, second * SECOND, 30 * MS, 0)]);
        }
        assert!(nanos(estimates.agreed(20 * SECOND)).abs_diff(START + 20 * SECOND) <= 15 * MS);
    }

    #[test]
    fn a_server_whose_clock_is_set_is_believed_at_once() {
        let mut estimates = Estimates::default();
        estimates.take(vec![reading("a", 2 * HOUR, SECOND, MS / 10, MS / 10)]);
        estimates.take(vec![reading("a", HOUR, 2 * SECOND, 3 * MS, 3 * MS)]);
        assert_eq!(nanos(estimates.agreed(2 * SECOND)), START + HOUR + 2 * SECOND);
    }

    #[test]
    fn of_three_clocks_one_that_is_wrong_does_not_count() {
        let mut estimates = Estimates::default();
        let ask = |ahead: [u64; 3], at| {
            let of = |(name, ahead)| reading(name, ahead, at, MS, MS);
            ["a", "b", "c"].into_iter().zip(ahead).map(of).collect::<Vec<_>>()
        };
        estimates.take(ask([0, HOUR, 10 * MS], SECOND));
        assert_eq!(nanos(estimates.agreed(SECOND)), START + SECOND + 10 * MS);
        // Of two, it is halfway.
        estimates.take(ask([0, HOUR, 10 * MS], 100 * SECOND)[..2].to_vec());
        assert_eq!(nanos(estimates.agreed(100 * SECOND)), START + HOUR / 2 + 100 * SECOND);
        // And who is gone is forgotten.
        estimates.take(ask([0, HOUR, 10 * MS], 200 * SECOND)[..1].to_vec());
        assert_eq!(nanos(estimates.agreed(200 * SECOND)), START + 200 * SECOND);
    }

    proptest! {
        /// Over a network with any delays, to a clock that drifts: never more wrong than it says.
        #[test]
        fn the_error_is_never_more_than_stated(
            drift in -90_i64..90,
            asked in prop::collection::vec((0..10 * SECOND, 0..200 * MS, 0..200 * MS), 1..60),
        ) {
            let server = |at: u64| START.saturating_add_signed(at as i64 + at as i64 / 1_000_000 * drift);
            let (mut estimates, mut at) = (Estimates::default(), 0);
            for (pause, there, back) in asked {
                at += pause;
                let time = server(at + there) / 1000;
                let after = at + there + back;
                estimates.take(vec![Reading { server: "a".to_owned(), before: at, time, after }]);
                at = after;
                let agreed = estimates.agreed(at).unwrap();
                let wrong = (agreed.time.as_micros() * 1000).abs_diff(server(at));
                prop_assert!(wrong <= agreed.error + 1000, "{wrong} of {}", agreed.error);
            }
        }
    }
}
