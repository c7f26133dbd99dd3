//! The bucket family: token bucket, GCRA and leaky bucket are one rule with three faces.
//!
//! A level is a whole number of `1/period` units, with the rate `amount/period` per microsecond in lowest
//! terms: what one microsecond earns is then exactly `amount`, so nothing is ever rounded. GCRA (ITU-T I.371)
//! with burst B is the token bucket of capacity B; the leaky bucket as a meter is the same again, and tells
//! the caller how long the work admitted before it takes to leak out.

use crate::quantity::{Rate, Units, Wait};

/// A bucket's contents in units of `1/period`, negative when in debt.
pub(crate) type Level = i128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    capacity: u64,
    /// Units of `1/period` earned in one microsecond: R'.
    amount: u64,
    /// P', below 2^45.
    period: u64,
}

impl Bucket {
    pub(crate) fn new(capacity: Units, rate: Rate) -> Self {
        let (amount, period) = rate.lowest_terms();
        Bucket { capacity: capacity.get(), amount, period }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    pub(crate) fn period(&self) -> u64 {
        self.period
    }

    #[inline]
    pub(crate) fn amount(&self) -> u64 {
        self.amount
    }

    /// The level of a full bucket, below 2^85.
    #[inline]
    pub(crate) fn full(&self) -> Level {
        self.level_of(self.capacity)
    }

    /// `units` as a level.
    #[inline]
    pub(crate) fn level_of(&self, units: u64) -> Level {
        i128::from(units) * i128::from(self.period)
    }

    /// The level after `elapsed` microseconds without a charge: below 2^93, so it cannot overflow.
    #[inline]
    pub(crate) fn advance(&self, level: Level, elapsed: u64) -> Level {
        (level + i128::from(elapsed) * i128::from(self.amount)).min(self.full())
    }

    /// Whole units in `level`, 0 when in debt.
    pub(crate) fn whole(&self, level: Level) -> u64 {
        match u128::try_from(level) {
            // A level never exceeds `full`, so the quotient never exceeds `capacity`.
            Ok(level) => divide(level, self.period) as u64,
            Err(_) => 0,
        }
    }

    /// Least wait until the level has reached `target`; `None` if it never does.
    pub(crate) fn wait_for(&self, level: Level, target: Level) -> Option<Wait> {
        let missing = u128::try_from(target - level).unwrap_or(0);
        match (missing, self.amount) {
            (0, _) => Some(Wait::ZERO),
            (_, 0) => None,
            _ if target > self.full() => None,
            _ => Some(Wait::from_micros(divide_up(missing, self.amount))),
        }
    }

    /// The level after a forced charge of `units` that may sink to `debt` units below zero, and what of the
    /// charge was cut (rounded up to whole units).
    pub(crate) fn force(&self, level: Level, units: u64, debt: u64) -> (Level, u64) {
        let floor = -self.level_of(debt);
        let wanted = level - self.level_of(units);
        let reached = wanted.max(floor.min(level));
        // The cut is at most the charge, so it fits.
        let cut = divide_up((reached - wanted).unsigned_abs(), self.period) as u64;
        (reached, cut)
    }

    /// `level`, kept under other figures, in the units of this bucket: cut to the capacity and to the debt
    /// allowed, fractions rounded down.
    pub(crate) fn adopt(&self, old: &Bucket, level: Level, debt: u64) -> Level {
        if level >= old.full() {
            return self.full();
        }
        let (whole, rest) =
            (level.div_euclid(i128::from(old.period)), level.rem_euclid(i128::from(old.period)));
        // `rest` and both periods are below 2^45: the product is below 2^90.
        let rest = rest * i128::from(self.period) / i128::from(old.period);
        let kept = whole * i128::from(self.period) + rest;
        kept.min(self.full()).max(-self.level_of(debt))
    }

    /// Whether this bucket earns less than `other` in the same time.
    pub(crate) fn is_slower_than(&self, other: &Bucket) -> bool {
        u128::from(self.amount) * u128::from(other.period)
            < u128::from(other.amount) * u128::from(self.period)
    }
}

/// `numerator / divisor`, rounded down; one machine division whenever the numerator fits a word.
pub(crate) fn divide(numerator: u128, divisor: u64) -> u128 {
    match u64::try_from(numerator) {
        Ok(small) => u128::from(small / divisor),
        Err(_) => numerator / u128::from(divisor),
    }
}

/// `numerator / divisor`, rounded up.
pub(crate) fn divide_up(numerator: u128, divisor: u64) -> u128 {
    match u64::try_from(numerator) {
        Ok(small) => u128::from(small.div_ceil(divisor)),
        Err(_) => numerator.div_ceil(u128::from(divisor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Period;

    fn bucket(capacity: u32, rate: Rate) -> Bucket {
        Bucket::new(Units::from(capacity), rate)
    }

    #[test]
    fn seven_a_second_comes_due_exactly() {
        let bucket = bucket(10, Rate::per_second(7));
        let due: [u64; 3] = [142_858, 285_715, 428_572];
        for (n, at) in due.into_iter().enumerate() {
            let one = bucket.level_of(n as u64 + 1);
            assert_eq!(bucket.wait_for(0, one), Some(Wait::from_micros(u128::from(at))));
            assert!(bucket.advance(0, at) >= one && bucket.advance(0, at - 1) < one);
        }
    }

    #[test]
    fn the_widest_figures_stay_exact() {
        let widest = Bucket::new(Units::MAX, Rate::new(1, Period::MAX));
        let wait = widest.wait_for(-widest.full(), widest.full()).unwrap();
        assert_eq!(wait.as_micros(), 2 * 1_000_000_000_000 * u128::from(Period::MAX.as_micros()));
        assert_eq!(widest.whole(widest.full()), Units::MAX.get());
        assert_eq!(widest.advance(0, (1 << 53) - 1), (1 << 53) - 1);
    }

    #[test]
    fn a_rate_of_zero_never_fills_and_zero_capacity_never_admits() {
        let still = bucket(3, Rate::ZERO);
        assert_eq!(still.advance(1, u64::MAX >> 11), 1);
        assert_eq!(still.wait_for(2, 3), None);
        assert_eq!(still.wait_for(3, 3), Some(Wait::ZERO));
        assert_eq!(bucket(0, Rate::per_second(1)).wait_for(0, 1_000_000), None);
    }

    #[test]
    fn a_forced_charge_stops_at_the_debt_and_says_what_it_cut() {
        let bucket = bucket(1_000, Rate::per_second(1));
        let full = bucket.full();
        assert_eq!(bucket.force(full, 1_500, 1_000), (-bucket.level_of(500), 0));
        assert_eq!(bucket.force(full, 2_500, 1_000), (-bucket.level_of(1_000), 500));
        let half = bucket.level_of(1) / 2;
        assert_eq!(bucket.force(half - bucket.level_of(1_000), 1, 1_000), (-bucket.level_of(1_000), 1));
    }

    #[test]
    fn other_figures_keep_the_tokens_and_round_the_fraction_down() {
        let old = bucket(10, Rate::per_second(3)); // units of 1/1000000
        let new = bucket(10, Rate::new(1, Period::from_micros(7).unwrap())); // units of 1/7
        assert_eq!(new.adopt(&old, 2_500_000, 10), 2 * 7 + 3);
        assert_eq!(new.adopt(&old, -500_000, 10), -4);
        assert_eq!(new.adopt(&old, old.full(), 10), new.full());
        assert_eq!(bucket(1, Rate::per_second(3)).adopt(&old, 9_000_000, 10), 1_000_000);
    }
}
