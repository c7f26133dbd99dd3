//! One nominal limit in the words of all six algorithms.

use std::fmt;

use tidegate::{
    Algorithm, Limit, LimitError, Period, Policy, PolicyError, PolicySet, QuantityError, Rate, Units,
};
use tidegate_server::config::{show_period, show_rate};

/// What all six are asked to do: a rate in the long run, and an amount at once.
///
/// The bucket family takes it as it is: a capacity of `burst`, refilled at `rate`. The windows take the same rate
/// as a limit per window; unless the window is given it is the time in which the bucket would fill, so that
/// every algorithm admits `burst` at once and `rate` in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nominal {
    rate: Rate,
    burst: Units,
    window: Period,
    limit: Units,
}

/// Figures that make no nominal limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NominalError {
    /// Nothing is ever admitted.
    #[error("{0} is nothing (give at least 1)")]
    Nothing(&'static str),
    /// The window does not hold a whole number of units.
    #[error("--window: {window} at --rate {rate} is not a whole number of units (try {fits})", window = show_period(*window), rate = show_rate(*rate), fits = show_period(*fits))]
    Broken {
        /// The window asked for.
        window: Period,
        /// The rate asked for.
        rate: Rate,
        /// A window that holds one.
        fits: Period,
    },
    /// Out of range.
    #[error("--rate, --burst and --window together: {0}")]
    Range(#[from] QuantityError),
}

impl Nominal {
    /// `rate` in the long run. Unless given, `burst` is what the window holds, and if that is not given either,
    /// the rate's amount.
    ///
    /// # Errors
    /// A rate or burst of 0, a window that would hold a broken number of units, and what is out of range.
    pub fn new(rate: Rate, burst: Option<Units>, window: Option<Period>) -> Result<Self, NominalError> {
        if rate.is_zero() {
            return Err(NominalError::Nothing("--rate"));
        }
        let Some(window) = window else {
            let burst = burst.unwrap_or(rate.amount());
            if burst == Units::ZERO {
                return Err(NominalError::Nothing("--burst"));
            }
            return Ok(Nominal { rate, burst, window: time_to_earn(burst, rate)?, limit: burst });
        };
        let limit = earned_in(window, rate)?;
        let burst = burst.unwrap_or(limit);
        if burst == Units::ZERO {
            return Err(NominalError::Nothing("--burst"));
        }
        Ok(Nominal { rate, burst, window, limit })
    }

    /// What is admitted in the long run.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// What is admitted at once by buckets.
    pub fn burst(&self) -> Units {
        self.burst
    }

    /// The window of the window algorithms.
    pub fn window(&self) -> Period {
        self.window
    }

    /// What is admitted in a window.
    pub fn limit(&self) -> Units {
        self.limit
    }

    /// The limit of one algorithm.
    ///
    /// # Errors
    /// The algorithm cannot hold these figures.
    pub fn limit_of(&self, algorithm: Algorithm) -> Result<Limit, LimitError> {
        let Nominal { rate, burst, window, limit } = *self;
        match algorithm {
            Algorithm::TokenBucket => Ok(Limit::token_bucket(burst, rate)),
            Algorithm::Gcra => Ok(Limit::gcra(rate, burst)),
            Algorithm::LeakyBucket => Limit::leaky_bucket(burst, rate),
            Algorithm::FixedWindow => Ok(Limit::fixed_window(limit, window)),
            Algorithm::SlidingWindowLog => Limit::sliding_window_log(limit, window),
            Algorithm::SlidingWindowCounter => Ok(Limit::sliding_window_counter(limit, window)),
        }
    }

    /// A policy for each algorithm, named after it, and those that cannot hold these figures with the reason.
    ///
    /// # Errors
    /// None there is: the names are legal and different.
    pub fn policies(&self) -> Result<(PolicySet, Vec<(Algorithm, LimitError)>), PolicyError> {
        let (mut policies, mut left_out) = (Vec::new(), Vec::new());
        for algorithm in Algorithm::ALL {
            match self.limit_of(algorithm) {
                Ok(limit) => policies.push(Policy::single(algorithm.name(), limit)?),
                Err(reason) => left_out.push((algorithm, reason)),
            }
        }
        Ok((PolicySet::new(policies)?, left_out))
    }
}

impl fmt::Display for Nominal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, window) = (show_rate(self.rate), show_period(self.window));
        write!(f, "{rate}, at most {} at once; windows of {} per {window}", self.burst, self.limit)
    }
}

/// The time in which `amount` is earned, rounded up to a microsecond.
fn time_to_earn(amount: Units, rate: Rate) -> Result<Period, QuantityError> {
    let (amount, per) = (u128::from(amount.get()), u128::from(rate.per().as_micros()));
    let micros = (amount * per).div_ceil(u128::from(rate.amount().get()));
    Period::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// What is earned in `window`, if it is a whole number of units.
fn earned_in(window: Period, rate: Rate) -> Result<Units, NominalError> {
    let (length, per) = (u128::from(window.as_micros()), u128::from(rate.per().as_micros()));
    let product = u128::from(rate.amount().get()) * length;
    if product % per != 0 || product < per {
        let whole = u64::try_from((product / per).max(1)).unwrap_or(u64::MAX);
        let fits = time_to_earn(Units::new(whole)?, rate)?;
        return Err(NominalError::Broken { window, rate, fits });
    }
    Ok(Units::new(u64::try_from(product / per).unwrap_or(u64::MAX))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_server::config::{parse_period, parse_rate};

    fn nominal(rate: &str, burst: Option<u32>, window: Option<&str>) -> Result<(u64, u64, String), String> {
        let window = window.map(|window| parse_period(window).unwrap());
        let nominal = Nominal::new(parse_rate(rate).unwrap(), burst.map(Units::from), window);
        let told = |n: Nominal| (n.burst().get(), n.limit().get(), show_period(n.window()));
        nominal.map(told).map_err(|error| error.to_string())
    }

    #[test]
    fn the_window_is_the_time_in_which_the_bucket_fills() {
        assert_eq!(nominal("10/s", None, None), Ok((10, 10, "1s".to_owned())));
        assert_eq!(nominal("10/s", Some(20), None), Ok((20, 20, "2s".to_owned())));
        assert_eq!(nominal("7/s", Some(10), None), Ok((10, 10, "1428572us".to_owned())));
        assert_eq!(nominal("10/s", None, Some("1min")), Ok((600, 600, "1min".to_owned())));
        assert_eq!(nominal("10/s", Some(5), Some("1min")), Ok((5, 600, "1min".to_owned())));
    }

    #[test]
    fn refuses_what_no_algorithm_could_do() {
        assert_eq!(nominal("0/s", None, None), Err("--rate is nothing (give at least 1)".to_owned()));
        assert_eq!(nominal("1/s", Some(0), None), Err("--burst is nothing (give at least 1)".to_owned()));
        let broken = "--window: 1500ms at --rate 1/s is not a whole number of units (try 1s)";
        assert_eq!(nominal("1/s", None, Some("1500ms")), Err(broken.to_owned()));
        assert!(nominal("1/d", Some(1_000), None).unwrap_err().contains("366 d"));
        let nothing = "--window: 1ms at --rate 1/s is not a whole number of units (try 1s)";
        assert_eq!(nominal("1/s", None, Some("1ms")), Err(nothing.to_owned()));
    }

    #[test]
    fn a_log_too_long_is_left_out_and_said() {
        let nominal = Nominal::new(parse_rate("1000000/s").unwrap(), None, None).unwrap();
        let (policies, left_out) = nominal.policies().unwrap();
        assert_eq!((policies.len(), left_out[0].0), (5, Algorithm::SlidingWindowLog));
    }
}
