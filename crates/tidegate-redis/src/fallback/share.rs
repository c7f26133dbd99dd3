//! One instance's share of a limit, so that the shares of all add up to it.

use std::fmt;
use std::str::FromStr;

use tidegate::{Algorithm, Limit, Period, Plan, Rate, Units};

/// Which of how many instances this one is: `2/5` is the second of five. While the store does not answer, each
/// enforces its own share of every limit, and the shares add up to the limit.
///
/// ```
/// use tidegate_redis::Replica;
/// let replica: Replica = "2/5".parse()?;
/// assert_eq!(replica.to_string(), "2/5");
/// assert!("6/5".parse::<Replica>().is_err());
/// # Ok::<(), tidegate_redis::ReplicaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// From 1.
    number: u32,
    of: u32,
}

/// Not one of so many instances.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: a replica is a number of how many, such as 2/5: from 1/1 to 10000/10000")]
pub struct ReplicaError(String);

impl Replica {
    /// The only one there is: its share is the whole limit.
    pub const ONLY: Replica = Replica { number: 1, of: 1 };

    /// This instance's share of `plan`.
    pub(crate) fn share_of(self, plan: &Plan) -> Plan {
        let limits = plan.limits().iter().map(|limit| self.share_of_limit(limit));
        // As many limits as the plan has.
        Plan::new(limits).unwrap_or_else(|_| plan.clone())
    }

    /// What falls to this instance of `units` that are handed out one by one.
    pub(crate) fn part_of(self, units: u64) -> u64 {
        let (part, over) = (units / u64::from(self.of), units % u64::from(self.of));
        part + u64::from(u64::from(self.number) <= over)
    }

    fn share_of_limit(self, limit: &Limit) -> Limit {
        let units = |whole: Units| Units::new(self.part_of(whole.get())).unwrap_or(Units::ZERO);
        let capacity = units(limit.capacity());
        let rate = limit.rate().map_or(Rate::ZERO, |rate| self.share_of_rate(rate));
        let window = limit.window().unwrap_or(Period::MAX);
        let share = match limit.algorithm() {
            Algorithm::TokenBucket => Limit::token_bucket(capacity, rate),
            Algorithm::Gcra => Limit::gcra(rate, capacity),
            // One that would not leak lets nothing in.
            Algorithm::LeakyBucket => Limit::leaky_bucket(capacity, rate)
                .unwrap_or_else(|_| Limit::token_bucket(Units::ZERO, Rate::ZERO)),
            Algorithm::FixedWindow => Limit::fixed_window(capacity, window),
            // No more than the limit it is a share of.
            Algorithm::SlidingWindowLog => Limit::sliding_window_log(capacity, window).unwrap_or(*limit),
            Algorithm::SlidingWindowCounter => Limit::sliding_window_counter(capacity, window),
        };
        share.with_debt(units(limit.debt())).unwrap_or(share)
    }

    /// The same amount in a period so many times as long; where that is too long, a part of the amount.
    fn share_of_rate(self, rate: Rate) -> Rate {
        let (amount, period) = rate.lowest_terms();
        let longer = Period::from_micros(period.saturating_mul(u64::from(self.of)));
        match (Units::new(amount), longer) {
            (Ok(amount), Ok(period)) => Rate::new(amount, period),
            _ => Rate::new(Units::new(self.part_of(rate.amount().get())).unwrap_or(Units::ZERO), rate.per()),
        }
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Replica {
    type Err = ReplicaError;

    fn from_str(text: &str) -> Result<Self, ReplicaError> {
        let wrong = || ReplicaError(text.chars().take(40).collect());
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let read = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse::<u32>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        let (number, of) = (read(number)?, read(of)?);
        match (1..=10_000).contains(&of) && (1..=of).contains(&number) {
            true => Ok(Replica { number, of }),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(of: u32, plan: &Plan) -> Vec<Plan> {
        (1..=of).map(|number| Replica { number, of }.share_of(plan)).collect()
    }

    #[test]
    fn shares_add_up_to_the_limit() {
        let plan = Plan::new([
            Limit::token_bucket(10, Rate::per_second(7)),
            Limit::fixed_window(5, Period::DAY),
            Limit::sliding_window_log(2, Period::SECOND).unwrap(),
            Limit::leaky_bucket(9, Rate::new(10, Period::MAX)).unwrap(),
        ])
        .unwrap();
        for of in [1, 2, 3, 4, 7, 100] {
            let shares = shares(of, &plan);
            for (index, whole) in plan.limits().iter().enumerate() {
                let parts = shares.iter().map(|share| share.limits()[index]);
                assert_eq!(parts.clone().map(|it| it.capacity().get()).sum::<u64>(), whole.capacity().get());
                // In units per 366 days and period.
                let per = |limit: Limit| {
                    let (amount, period) = limit.rate().map_or((0, 1), |rate| rate.lowest_terms());
                    amount as f64 / period as f64
                };
                let (sum, whole) = (parts.map(per).sum::<f64>(), per(*whole));
                assert!(sum <= whole * 1.000_000_1, "{sum} of {whole}, {of} instances");
                assert!(sum >= whole * 0.999 || of > 9, "{sum} of {whole}, {of} instances");
            }
        }
    }

    #[test]
    fn a_replica_is_one_of_how_many() {
        assert_eq!("1/1".parse(), Ok(Replica::ONLY));
        for wrong in
            ["", "1", "0/1", "2/1", "1/0", "-1/2", "+1/2", " 1/2", "1/2/3", "1/10001", "1/99999999999"]
        {
            assert!(wrong.parse::<Replica>().unwrap_err().to_string().contains("such as 2/5"), "{wrong}");
        }
    }
}
