//! Checked quantities: once built, none of them can be out of range.

use core::fmt;

/// A figure outside its range, named with the rule it broke.
///
/// ```
/// use tidegate_core::Units;
/// let error = Units::new(2_000_000_000_000).unwrap_err();
/// assert_eq!(error.to_string(), "2000000000000 is out of range: units go from 0 to 1000000000000");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantityError {
    value: u128,
    rule: &'static str,
}

impl QuantityError {
    /// The figure that was refused.
    pub fn value(&self) -> u128 {
        self.value
    }

    /// The rule it broke, in words.
    pub fn rule(&self) -> &'static str {
        self.rule
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is out of range: {}", self.value, self.rule)
    }
}

impl core::error::Error for QuantityError {}

/// An instant: whole microseconds since the Unix epoch, from 0 to 2^53 - 1 (June 2255).
///
/// The upper end is the largest integer a Redis script computes with exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch itself.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// 2^53 - 1 microseconds.
    pub const MAX: Timestamp = Timestamp((1 << 53) - 1);

    /// The instant `micros` microseconds after the epoch.
    ///
    /// # Errors
    /// Past [`Timestamp::MAX`].
    pub const fn from_micros(micros: u64) -> Result<Self, QuantityError> {
        if micros > Self::MAX.0 {
            return Err(QuantityError {
                value: micros as u128,
                rule: "a time stamp goes from 0 to 9007199254740991 microseconds since 1970",
            });
        }
        Ok(Timestamp(micros))
    }

    /// As [`Timestamp::from_micros`], with what lies past the end put at the end.
    pub const fn saturating_from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 { Self::MAX } else { Timestamp(micros) }
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Microseconds from `earlier` to this instant, 0 if `earlier` is later.
    pub const fn micros_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `wait` later, at most [`Timestamp::MAX`].
    pub const fn saturating_add(self, wait: Wait) -> Self {
        if wait.0 > Self::MAX.0 as u128 {
            return Self::MAX;
        }
        Self::saturating_from_micros(self.0 + wait.0 as u64)
    }
}

/// An amount of what a limit counts: a capacity, a limit per window, a credit. 0 to 10^12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Units(u64);

impl Units {
    /// Nothing.
    pub const ZERO: Units = Units(0);
    /// 10^12, the largest amount for which every figure stays exact in every store.
    pub const MAX: Units = Units(1_000_000_000_000);

    /// `amount` units.
    ///
    /// # Errors
    /// Past [`Units::MAX`].
    pub const fn new(amount: u64) -> Result<Self, QuantityError> {
        if amount > Self::MAX.0 {
            return Err(QuantityError { value: amount as u128, rule: "units go from 0 to 1000000000000" });
        }
        Ok(Units(amount))
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u32> for Units {
    fn from(amount: u32) -> Self {
        Units(u64::from(amount))
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What one check asks for: 0 to 10^12 units. Cost 0 is a peek.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// The cost of a peek.
    pub const PEEK: Cost = Cost(0);
    /// The usual cost.
    pub const ONE: Cost = Cost(1);
    /// 10^12.
    pub const MAX: Cost = Cost(Units::MAX.0);

    /// A cost of `amount` units.
    ///
    /// # Errors
    /// Past [`Cost::MAX`].
    pub const fn new(amount: u64) -> Result<Self, QuantityError> {
        if amount > Self::MAX.0 {
            return Err(QuantityError { value: amount as u128, rule: "a cost goes from 0 to 1000000000000" });
        }
        Ok(Cost(amount))
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether this cost asks for nothing and so changes nothing.
    pub const fn is_peek(self) -> bool {
        self.0 == 0
    }
}

impl From<u32> for Cost {
    fn from(amount: u32) -> Self {
        Cost(u64::from(amount))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The period of a rate or the length of a window: 1 microsecond to 366 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u64);

impl Period {
    /// One microsecond.
    pub const MIN: Period = Period(1);
    /// 366 days.
    pub const MAX: Period = Period(366 * 24 * 3_600 * 1_000_000);
    /// One second.
    pub const SECOND: Period = Period(1_000_000);
    /// One minute.
    pub const MINUTE: Period = Period(60 * 1_000_000);
    /// One hour.
    pub const HOUR: Period = Period(3_600 * 1_000_000);
    /// Twenty-four hours.
    pub const DAY: Period = Period(24 * 3_600 * 1_000_000);

    /// A period of `micros` microseconds.
    ///
    /// # Errors
    /// 0, or past [`Period::MAX`].
    pub const fn from_micros(micros: u64) -> Result<Self, QuantityError> {
        if micros == 0 || micros > Self::MAX.0 {
            return Err(QuantityError {
                value: micros as u128,
                rule: "a period or window goes from 1 us to 366 d (31622400000000 us)",
            });
        }
        Ok(Period(micros))
    }

    /// A period of `seconds` seconds.
    ///
    /// # Errors
    /// 0, or past 366 days.
    pub const fn from_secs(seconds: u32) -> Result<Self, QuantityError> {
        Self::from_micros(seconds as u64 * 1_000_000)
    }

    /// Length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

/// A rate: `amount` units every `per`, earned continuously, never rounded.
///
/// ```
/// use tidegate_core::{Period, Rate};
/// let slow = Rate::new(3, Period::from_secs(7)?);
/// assert_eq!(slow.amount().get(), 3);
/// # Ok::<(), tidegate_core::QuantityError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    amount: Units,
    per: Period,
}

impl Rate {
    /// A rate that never earns anything.
    pub const ZERO: Rate = Rate { amount: Units::ZERO, per: Period::SECOND };

    /// `amount` units every `per`.
    pub fn new(amount: impl Into<Units>, per: Period) -> Self {
        Rate { amount: amount.into(), per }
    }

    /// `amount` units every second.
    pub fn per_second(amount: impl Into<Units>) -> Self {
        Self::new(amount, Period::SECOND)
    }

    /// `amount` units every minute.
    pub fn per_minute(amount: impl Into<Units>) -> Self {
        Self::new(amount, Period::MINUTE)
    }

    /// `amount` units every hour.
    pub fn per_hour(amount: impl Into<Units>) -> Self {
        Self::new(amount, Period::HOUR)
    }

    /// Units earned in each period.
    pub const fn amount(self) -> Units {
        self.amount
    }

    /// The period.
    pub const fn per(self) -> Period {
        self.per
    }

    /// Whether nothing is ever earned.
    pub const fn is_zero(self) -> bool {
        self.amount.0 == 0
    }

    /// The rate in lowest terms: units and microseconds. (0, 1) for a rate of zero.
    pub const fn lowest_terms(self) -> (u64, u64) {
        let divisor = gcd(self.amount.0, self.per.0);
        (self.amount.0 / divisor, self.per.0 / divisor)
    }
}

/// Greatest common divisor; `b` is never 0 here, so the result is at least 1.
const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A computed wait in whole microseconds, always rounded up by whoever computed it.
///
/// Wider than any figure of a limit can make it (10^12 units at one per 366 days is 2^85 us).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wait(u128);

impl Wait {
    /// No wait.
    pub const ZERO: Wait = Wait(0);

    /// A wait of `micros` microseconds.
    pub const fn from_micros(micros: u128) -> Self {
        Wait(micros)
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u128 {
        self.0
    }

    /// Whole milliseconds, rounded up: never shorter than the wait.
    pub const fn as_millis_ceil(self) -> u128 {
        self.0.div_ceil(1_000)
    }

    /// Whole seconds, rounded up: never shorter than the wait.
    pub const fn as_secs_ceil(self) -> u128 {
        self.0.div_ceil(1_000_000)
    }

    /// Whether there is nothing to wait for.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This wait as a [`core::time::Duration`], at most [`core::time::Duration::MAX`].
    pub fn to_duration(self) -> core::time::Duration {
        let (seconds, micros) = (self.0 / 1_000_000, (self.0 % 1_000_000) as u32);
        match u64::try_from(seconds) {
            Ok(seconds) => core::time::Duration::new(seconds, micros * 1_000),
            Err(_) => core::time::Duration::MAX,
        }
    }

    /// Both waits one after the other.
    pub const fn plus(self, other: Wait) -> Wait {
        Wait(self.0.saturating_add(other.0))
    }
}

impl From<core::time::Duration> for Wait {
    /// Rounded up to a whole microsecond.
    fn from(duration: core::time::Duration) -> Self {
        Wait(duration.as_nanos().div_ceil(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_ends_where_it_says() {
        assert!(Units::new(1_000_000_000_000).is_ok());
        assert!(Units::new(1_000_000_000_001).is_err());
        assert!(Cost::new(1_000_000_000_001).is_err());
        assert!(Period::from_micros(0).is_err());
        assert!(Period::from_micros(366 * 86_400_000_000).is_ok());
        assert!(Period::from_micros(366 * 86_400_000_000 + 1).is_err());
        assert!(Timestamp::from_micros((1 << 53) - 1).is_ok());
        assert!(Timestamp::from_micros(1 << 53).is_err());
    }

    #[test]
    fn rates_come_down_to_lowest_terms() {
        assert_eq!(Rate::per_second(10).lowest_terms(), (1, 100_000));
        assert_eq!(Rate::per_second(7).lowest_terms(), (7, 1_000_000));
        assert_eq!(Rate::ZERO.lowest_terms(), (0, 1));
        assert_eq!(Rate::per_second(5_000_000).lowest_terms(), (5, 1));
    }

    #[test]
    fn waits_round_up_and_never_to_nothing() {
        assert_eq!(Wait::from_micros(1).as_millis_ceil(), 1);
        assert_eq!(Wait::from_micros(400_000).as_secs_ceil(), 1);
        assert_eq!(Wait::from_micros(1_000_001).as_secs_ceil(), 2);
        assert_eq!(Wait::from(core::time::Duration::from_nanos(1)).as_micros(), 1);
        assert_eq!(Wait::from_micros(u128::MAX).to_duration(), core::time::Duration::MAX);
    }

    #[test]
    fn adding_a_wait_stops_at_the_last_instant() {
        let late = Timestamp::MAX.saturating_add(Wait::from_micros(1));
        assert_eq!(late, Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.saturating_add(Wait::from_micros(u128::MAX)), Timestamp::MAX);
    }
}
