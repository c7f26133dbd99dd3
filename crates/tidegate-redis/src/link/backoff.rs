//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Waits that double, and of which no two clients have the same: else all that lost a server at the same moment would
/// come back at the same moments.
#[derive(Debug)]
pub(super) struct Backoff {
    least: Duration,
    most: Duration,
    next: Duration,
    random: RandomState,
    drawn: u64,
}

impl Backoff {
    /// Waits that begin at no more than `least` and end at no more than `most`.
    pub fn between(least: Duration, most: Duration) -> Self {
        Self { least, most, next: least, random: RandomState::new(), drawn: 0 }
    }

    /// The wait before the next attempt: between a half and the whole of a bound that doubles each time.
    pub fn next(&mut self) -> Duration {
        let bound = self.next;
        self.next = (bound * 2).min(self.most);
        self.drawn += 1;
        let part = self.random.hash_one(self.drawn) as u32;
        bound / 2 + (bound / 2).mul_f64(f64::from(part) / f64::from(u32::MAX))
    }

    /// After success: short waits again.
    pub fn reset(&mut self) {
        self.next = self.least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(10);
    const MOST: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_a_bound_and_differ() {
        let (mut one, mut other) = (Backoff::between(LEAST, MOST), Backoff::between(LEAST, MOST));
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
