//! What of the store's troubles is told in the log, so that it neither floods nor leaves out what an operator has to know.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tidegate::Timestamp;
use tidegate::store::{StoreError, StoreErrorKind};

/// Each is told once in so many microseconds.
const SECOND: u64 = 1_000_000;

/// So many lines of a kind are told in a second at most.
const MOST_LINES: usize = 64;

/// What was told within the last second.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// One line a second is enough, whatever each call met.
    outages: Mutex<Lately<1>>,
    /// Each names a record or a policy that an operator has to mend, so each is told.
    damaged: Mutex<Lately<MOST_LINES>>,
    others: Mutex<Lately<MOST_LINES>>,
}

impl Told {
    /// Whether this error, met at `now`, is to be told.
    pub(super) fn is_due(&self, now: Timestamp, error: &StoreError) -> bool {
        match error.kind {
            StoreErrorKind::Outage => tell(&self.outages, now, ""),
            StoreErrorKind::Damaged => tell(&self.damaged, now, &error.reason),
            _ => tell(&self.others, now, &error.reason),
        }
    }
}

fn tell<const MOST: usize>(lately: &Mutex<Lately<MOST>>, now: Timestamp, what: &str) -> bool {
    // Each line is whole, whoever panicked.
    lately.lock().unwrap_or_else(PoisonError::into_inner).tell(now.as_micros(), what)
}

/// The lines of the last second, oldest first, `MOST` at most: what was told before that may be told again.
#[derive(Debug, Default)]
struct Lately<const MOST: usize>(VecDeque<(u64, Box<str>)>);

impl<const MOST: usize> Lately<MOST> {
    fn tell(&mut self, now: u64, what: &str) -> bool {
        while self.0.front().is_some_and(|(told, _)| now >= told.saturating_add(SECOND)) {
            self.0.pop_front();
        }
        let is_due = self.0.len() < MOST && self.0.iter().all(|(_, known)| **known != *what);
        if is_due {
            self.0.push_back((now, what.into()));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use StoreErrorKind::{Damaged, Outage, Unfit};

    use super::*;

    /// How often each error is told that is met every millisecond of these seconds, all of them one after the other.
    fn lines(told: &Told, seconds: Range<u64>, met: &[(StoreErrorKind, &str)]) -> Vec<u64> {
        let mut lines = vec![0; met.len()];
        for millis in seconds.start * 1_000..seconds.end * 1_000 {
            let now = Timestamp::from_micros(1_700_000_000_000_000 + millis * 1_000).unwrap();
            for (line, (kind, reason)) in lines.iter_mut().zip(met) {
                *line += u64::from(told.is_due(now, &StoreError::new(*kind, "redis://x", *reason)));
            }
        }
        lines
    }

    #[test]
    fn each_damaged_record_and_each_unfit_policy_is_named_once_a_second() {
        let met = [(Damaged, "record a"), (Outage, "x"), (Damaged, "record b"), (Unfit, "p"), (Unfit, "q")];
        assert_eq!(lines(&Told::default(), 0..1, &met), [1; 5]);
        assert_eq!(lines(&Told::default(), 0..7, &met), [7; 5]);
    }

    #[test]
    fn outages_share_one_line_a_second_and_take_no_other_kind_s() {
        let met = [(Outage, "no answer"), (Outage, "no room"), (Unfit, "no room"), (Damaged, "no room")];
        assert_eq!(lines(&Told::default(), 0..5, &met), [5, 0, 5, 5]);
    }

    #[test]
    fn many_records_are_told_so_many_a_second_and_those_left_over_when_others_are_mended() {
        let names: Vec<String> = (0..1_000).map(|nth| format!("record {nth}")).collect();
        let all: Vec<_> = names.iter().map(|name| (Damaged, name.as_str())).collect();
        let told = Told::default();
        let named = lines(&told, 0..3, &all);
        assert!(named[..MOST_LINES].iter().all(|lines| *lines == 3), "{named:?}");
        assert!(named[MOST_LINES..].iter().all(|lines| *lines == 0), "{named:?}");
        // Those that were named are mended; a second after they were told, there is room for the next.
        let named = lines(&told, 3..4, &all[MOST_LINES..]);
        assert!(named[..MOST_LINES].iter().all(|lines| *lines == 1), "{named:?}");
        assert_eq!(named.iter().sum::<u64>(), MOST_LINES as u64);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut lately = Lately::<MOST_LINES>::default();
        for micros in 0..5_000_000_u64 {
            lately.tell(micros, &micros.to_string());
            assert!(lately.0.len() <= MOST_LINES);
        }
    }
}
