//! The compact encoding: a key's state as a few integers below 2^53, for stores that keep it inline.
//!
//! The first word is the key's `last` stamp; then each limit has one word (a bucket of ordinary figures, a
//! fixed window, the handle of a log) or two (a bucket whose units are very fine, a sliding counter). All
//! words stay below 2^53, so the eleven bits above are the store's own.

use crate::limit::{Limit, Shape};
use crate::state::State;

/// Bits of each word that belong to the encoding.
pub const WORD_BITS: u32 = 53;

/// The largest number of words a key's state takes: the stamp and two for each limit.
pub const MAX_WORDS: usize = 1 + 2 * crate::decision::MAX_LIMITS;

impl Limit {
    /// Words this limit's state takes: 1 or 2.
    pub fn packed_words(&self) -> usize {
        if self.is_narrow() { 1 } else { 2 }
    }

    /// The words of `state`, which is not a log; the second counts only if [`packed_words`](Self::packed_words)
    /// is 2.
    #[inline(always)]
    pub fn pack(&self, state: State<'_>) -> [u64; 2] {
        match (state, &self.shape) {
            (State::Bucket(level), Shape::Bucket(bucket)) => {
                // From the lowest level allowed upwards, so never negative; below 2^53 if narrow, else the
                // whole units are below 2^41 and the rest below the period, 2^45.
                let raised = (level + bucket.level_of(self.debt)).max(0) as u128;
                if self.is_narrow() {
                    [raised as u64, 0]
                } else {
                    let period = u128::from(bucket.period());
                    [(raised / period) as u64, (raised % period) as u64]
                }
            }
            (State::Count(count), _) => [count, 0],
            (State::Pair { previous, current }, _) => [previous, current],
            (State::Bucket(_) | State::Log(_), _) => [0, 0],
        }
    }

    /// The state that [`pack`](Self::pack) made `words` of; a log's words say nothing about it, so it has none.
    #[inline(always)]
    pub fn unpack(&self, words: [u64; 2]) -> Option<State<'static>> {
        Some(match &self.shape {
            Shape::Bucket(bucket) => {
                let raised = match self.is_narrow() {
                    true => i128::from(words[0]),
                    false => bucket.level_of(words[0]) + i128::from(words[1]),
                };
                State::Bucket(raised - bucket.level_of(self.debt))
            }
            Shape::Fixed(_) => State::Count(words[0]),
            Shape::Counter(_) => State::Pair { previous: words[0], current: words[1] },
            Shape::Log(_) => return None,
        })
    }

    /// The words of a key never seen; 0 for a log, which has none yet.
    pub fn pack_untouched(&self) -> [u64; 2] {
        match &self.shape {
            Shape::Bucket(bucket) => self.pack(State::Bucket(bucket.full())),
            Shape::Fixed(_) | Shape::Log(_) | Shape::Counter(_) => [0, 0],
        }
    }

    /// Whether this limit's state is a log, which its word can only point to.
    pub fn keeps_log(&self) -> bool {
        matches!(self.shape, Shape::Log(_))
    }

    /// Whether every level of a bucket, from the deepest debt to full, fits one word.
    pub(crate) fn fits_one_word(&self) -> bool {
        match &self.shape {
            Shape::Bucket(bucket) => bucket.full() + bucket.level_of(self.debt) < 1 << WORD_BITS,
            Shape::Fixed(_) | Shape::Log(_) => true,
            Shape::Counter(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Period, Rate, Units};

    #[test]
    fn every_state_comes_back_as_it_went_in() {
        let narrow = Limit::token_bucket(100, Rate::per_second(10));
        let wide = Limit::token_bucket(Units::MAX, Rate::new(1, Period::MAX));
        let debtless = Limit::token_bucket(5, Rate::per_second(7)).with_debt(0).unwrap();
        assert_eq!((narrow.packed_words(), wide.packed_words()), (1, 2));
        for limit in [narrow, wide, debtless] {
            let Shape::Bucket(bucket) = &limit.shape else { unreachable!() };
            let deepest = -bucket.level_of(limit.debt().get());
            for level in [deepest, deepest + 1, 0, 1, bucket.full() - 1, bucket.full()] {
                let words = limit.pack(State::Bucket(level));
                assert!(words.iter().all(|word| *word < 1 << WORD_BITS));
                assert_eq!(limit.unpack(words), Some(State::Bucket(level.max(deepest))));
            }
        }
        let counter = Limit::sliding_window_counter(5, Period::SECOND);
        let pair = State::Pair { previous: 3, current: 9 };
        assert_eq!(counter.unpack(counter.pack(pair)), Some(pair));
    }
}
