//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const LEAST: Duration = Duration::from_millis(10);
const MOST: Duration = Duration::from_secs(1);

/// Waits that double, and of which no two clients have the same: else all that lost a server at the same moment would
/// come back at the same moments.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    random: RandomState,
    drawn: u64,
}

impl Backoff {
    pub fn new() -> Self {
        Self { next: LEAST, random: RandomState::new(), drawn: 0 }
    }

    /// The wait before the next attempt: between a half and the whole of a bound that doubles, up to a second.
    pub fn next(&mut self) -> Duration {
        let bound = self.next;
        self.next = (bound * 2).min(MOST);
        self.drawn += 1;
        let part = self.random.hash_one(self.drawn) as u32;
        bound / 2 + (bound / 2).mul_f64(f64::from(part) / f64::from(u32::MAX))
    }

    /// After success: short waits again.
    pub fn reset(&mut self) {
        self.next = LEAST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_second_and_differ() {
        let (mut one, mut other) = (Backoff::new(), Backoff::new());
        let mut bound = LEAST;
        let mut same = 0;
        for _ in 0..100 {
            let (a, b) = (one.next(), other.next());
            for wait in [a, b] {
                assert!(bound / 2 <= wait && wait <= bound, "{wait:?} of {bound:?}");
            }
            same += u32::from(a == b);
            bound = (bound * 2).min(MOST);
        }
        assert!(same < 5, "{same} of 100 the same");
        one.reset();
        assert!(one.next() <= LEAST);
    }
}
