//! One limit: an algorithm with its figures, checked when it is built.

use core::fmt;

use crate::bucket::Bucket;
use crate::quantity::{Period, Rate, Units, Wait};
use crate::window::Window;

/// The six algorithms, by the names the configuration uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A bucket of tokens that refills continuously.
    TokenBucket,
    /// The generic cell rate algorithm (ITU-T I.371): the token bucket in its telephone clothes.
    Gcra,
    /// A bucket as a meter that leaks at an even rate and spaces admitted work evenly.
    LeakyBucket,
    /// A count per window, windows aligned to the epoch.
    FixedWindow,
    /// Every admitted cost remembered for exactly one window.
    SlidingWindowLog,
    /// Two counts, the previous window's weighted by what is left of it.
    SlidingWindowCounter,
}

impl Algorithm {
    /// All six, in the order the documentation lists them.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::TokenBucket,
        Algorithm::Gcra,
        Algorithm::LeakyBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindowLog,
        Algorithm::SlidingWindowCounter,
    ];

    /// The name used in configuration files and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::TokenBucket => "token_bucket",
            Algorithm::Gcra => "gcra",
            Algorithm::LeakyBucket => "leaky_bucket",
            Algorithm::FixedWindow => "fixed_window",
            Algorithm::SlidingWindowLog => "sliding_window_log",
            Algorithm::SlidingWindowCounter => "sliding_window_counter",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a limit cannot be built from otherwise legal figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// A leaky bucket that never leaks would never let its callers' work out.
    LeakOfZero,
    /// A sliding log of this many entries would not stay bounded in memory.
    LogTooLong {
        /// The limit asked for.
        limit: Units,
    },
}

/// The highest limit a sliding window log may have.
///
/// A log keeps at most one entry (16 bytes) for each unit it has admitted or was charged as debt, so at most
/// twice this many for one key.
pub const MAX_LOG_LIMIT: u64 = 65_536;

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::LeakOfZero => {
                f.write_str("a leaky bucket has to leak (use token_bucket for one that never refills)")
            }
            LimitError::LogTooLong { limit } => write!(
                f,
                "{limit} is out of range: a sliding_window_log keeps every admitted cost and goes up to \
                 {MAX_LOG_LIMIT} (use sliding_window_counter)"
            ),
        }
    }
}

impl core::error::Error for LimitError {}

/// One limit with its figures.
///
/// ```
/// use tidegate_core::{Limit, Period, Rate};
/// let burst = Limit::token_bucket(100, Rate::per_second(10));
/// let daily = Limit::fixed_window(10_000, Period::DAY);
/// assert_eq!(burst.capacity().get(), 100);
/// assert_eq!(daily.algorithm().name(), "fixed_window");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    algorithm: Algorithm,
    pub(crate) shape: Shape,
    rate: Option<Rate>,
    pub(crate) debt: u64,
    /// Whether its state fits one word; see `packed`.
    narrow: bool,
}

/// The arithmetic a limit runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    Bucket(Bucket),
    Fixed(Window),
    Log(Window),
    Counter(Window),
}

impl Limit {
    /// A bucket of `capacity` tokens, full at first, refilled continuously at `refill`.
    ///
    /// A refill of zero makes a one-time allowance; a capacity of zero denies every cost above 0.
    pub fn token_bucket(capacity: impl Into<Units>, refill: Rate) -> Self {
        Self::bucket(Algorithm::TokenBucket, capacity.into(), refill)
    }

    /// GCRA at `rate` with `burst` units admitted at once: decides exactly as the token bucket does.
    pub fn gcra(rate: Rate, burst: impl Into<Units>) -> Self {
        Self::bucket(Algorithm::Gcra, burst.into(), rate)
    }

    /// A bucket of `capacity` that leaks at `leak`; admitted work is told how long to wait for its turn.
    ///
    /// # Errors
    /// A leak of zero.
    pub fn leaky_bucket(capacity: impl Into<Units>, leak: Rate) -> Result<Self, LimitError> {
        if leak.is_zero() {
            return Err(LimitError::LeakOfZero);
        }
        Ok(Self::bucket(Algorithm::LeakyBucket, capacity.into(), leak))
    }

    /// `limit` units in each `window`, windows aligned to whole multiples since the epoch (so one of a week
    /// starts on a Thursday, UTC). Up to twice the limit passes across a window's edge.
    pub fn fixed_window(limit: impl Into<Units>, window: Period) -> Self {
        let limit = limit.into();
        Self::new(Algorithm::FixedWindow, Shape::Fixed(Window::new(limit, window)), limit)
    }

    /// At most `limit` units in any span of length `window`, exactly.
    ///
    /// # Errors
    /// A limit over [`MAX_LOG_LIMIT`].
    pub fn sliding_window_log(limit: impl Into<Units>, window: Period) -> Result<Self, LimitError> {
        let limit = limit.into();
        if limit.get() > MAX_LOG_LIMIT {
            return Err(LimitError::LogTooLong { limit });
        }
        Ok(Self::new(Algorithm::SlidingWindowLog, Shape::Log(Window::new(limit, window)), limit))
    }

    /// About `limit` units in any span of length `window`, from two counts: exact when traffic is even, less
    /// than twice the limit always.
    pub fn sliding_window_counter(limit: impl Into<Units>, window: Period) -> Self {
        let limit = limit.into();
        Self::new(Algorithm::SlidingWindowCounter, Shape::Counter(Window::new(limit, window)), limit)
    }

    /// This limit with forced charges let sink to `debt` units below zero instead of its own capacity.
    ///
    /// # Errors
    /// A debt over [`MAX_LOG_LIMIT`] on a sliding log, whose entries it would have to keep.
    pub fn with_debt(mut self, debt: impl Into<Units>) -> Result<Self, LimitError> {
        let debt = debt.into();
        if matches!(self.shape, Shape::Log(_)) && debt.get() > MAX_LOG_LIMIT {
            return Err(LimitError::LogTooLong { limit: debt });
        }
        self.debt = debt.get();
        self.narrow = self.fits_one_word();
        Ok(self)
    }

    /// Which of the six this is.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The capacity of a bucket (GCRA: its burst) or the limit of a window.
    pub fn capacity(&self) -> Units {
        let capacity = match &self.shape {
            Shape::Bucket(bucket) => bucket.capacity(),
            Shape::Fixed(window) | Shape::Log(window) | Shape::Counter(window) => window.limit(),
        };
        // Built from `Units`, so it is in range.
        Units::new(capacity).unwrap_or(Units::MAX)
    }

    /// The rate of a bucket; `None` for windows.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The length of a window; `None` for buckets.
    pub fn window(&self) -> Option<Period> {
        match &self.shape {
            Shape::Bucket(_) => None,
            // Built from a `Period`, so it is in range.
            Shape::Fixed(w) | Shape::Log(w) | Shape::Counter(w) => Period::from_micros(w.length()).ok(),
        }
    }

    /// How far below zero forced charges may sink; the capacity unless said otherwise.
    pub fn debt(&self) -> Units {
        // Built from `Units`, so it is in range.
        Units::new(self.debt).unwrap_or(Units::MAX)
    }

    /// Microseconds from empty to full, or the window; `None` if it never refills. Rounded up.
    ///
    /// This is the `w` of the `RateLimit-Policy` field.
    pub fn time_to_full(&self) -> Option<Wait> {
        match &self.shape {
            Shape::Bucket(bucket) => bucket.wait_for(0, bucket.full()),
            Shape::Fixed(w) | Shape::Log(w) | Shape::Counter(w) => {
                Some(Wait::from_micros(u128::from(w.length())))
            }
        }
    }

    /// Whether its state fits one word.
    #[inline]
    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow
    }

    /// The longest this limit takes to be as new: from the deepest debt to full, or until all counts are gone.
    pub(crate) fn as_new_within(&self) -> Option<Wait> {
        let windows = match &self.shape {
            Shape::Bucket(bucket) => return bucket.wait_for(-bucket.level_of(self.debt), bucket.full()),
            Shape::Fixed(window) | Shape::Log(window) => window.length(),
            Shape::Counter(window) => 2 * window.length(),
        };
        Some(Wait::from_micros(u128::from(windows)))
    }

    /// The highest count that enters the arithmetic, however many were counted under other figures.
    pub(crate) fn most_counted(&self, window: &Window) -> u64 {
        window.limit() + window.limit().max(self.debt)
    }

    fn bucket(algorithm: Algorithm, capacity: Units, rate: Rate) -> Self {
        let limit = Self::new(algorithm, Shape::Bucket(Bucket::new(capacity, rate)), capacity);
        Limit { rate: Some(rate), ..limit }
    }

    fn new(algorithm: Algorithm, shape: Shape, debt: Units) -> Self {
        let limit = Limit { algorithm, shape, rate: None, debt: debt.get(), narrow: false };
        Limit { narrow: limit.fits_one_word(), ..limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_could_not_stay_bounded() {
        assert!(Limit::sliding_window_log(65_536, Period::DAY).is_ok());
        let error = Limit::sliding_window_log(65_537, Period::DAY).unwrap_err();
        assert!(alloc::format!("{error}").contains("use sliding_window_counter"));
        assert_eq!(Limit::leaky_bucket(5, Rate::ZERO), Err(LimitError::LeakOfZero));
    }

    #[test]
    fn tells_its_figures_back() {
        let limit = Limit::gcra(Rate::per_minute(30), 16);
        assert_eq!((limit.capacity().get(), limit.debt().get()), (16, 16));
        assert_eq!(limit.rate().unwrap(), Rate::per_minute(30));
        assert_eq!(limit.time_to_full().unwrap().as_micros(), 32_000_000);
        assert_eq!(Limit::token_bucket(5, Rate::ZERO).time_to_full(), None);
        assert_eq!(Limit::fixed_window(5, Period::DAY).window(), Some(Period::DAY));
    }
}
