//! Token bucket, GCRA and leaky bucket: one level that grows by `R / P` per microsecond, never past `C`.

use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};

use super::figures::{Kind, OracleLimit};
use super::rule::{Rule, wait_up, whole};

/// The level as it was at one instant. A key never charged is full at any instant.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    limit: OracleLimit,
    level: BigRational,
    at: u64,
}

impl Bucket {
    pub(super) fn full(limit: OracleLimit) -> Self {
        let level = whole(limit.capacity);
        Bucket { limit, level, at: 0 }
    }

    fn capacity(&self) -> BigRational {
        whole(self.limit.capacity)
    }

    fn per_microsecond(&self) -> BigRational {
        BigRational::new(self.limit.amount.into(), self.limit.period_us.into())
    }

    fn level(&self, t: u64) -> BigRational {
        let grown = &self.level + self.per_microsecond() * whole(t - self.at);
        grown.min(self.capacity())
    }

    fn set(&mut self, t: u64, level: BigRational) {
        self.level = level;
        self.at = t;
    }

    /// The least wait until the level is `target` or more.
    fn wait_for(&self, t: u64, target: &BigRational) -> Option<u128> {
        let missing = target - self.level(t);
        if !missing.is_positive() {
            return Some(0);
        }
        if *target > self.capacity() || self.limit.amount == 0 {
            return None;
        }
        Some(wait_up(&(missing / self.per_microsecond())))
    }
}

impl Rule for Bucket {
    fn admits(&self, t: u64, cost: u64) -> bool {
        self.level(t) >= whole(cost)
    }

    fn charge(&mut self, t: u64, cost: u64) {
        self.set(t, self.level(t) - whole(cost));
    }

    fn credit(&mut self, t: u64, n: u64) {
        let raised = self.level(t) + whole(n);
        self.set(t, raised.min(self.capacity()));
    }

    fn penalize(&mut self, t: u64, n: u64) -> u64 {
        let lowest = -whole(self.limit.debt());
        let wanted = self.level(t) - whole(n);
        let reached = wanted.clone().max(lowest);
        // Half a unit cut off is reported as one: the caller must not count on a charge that was not made.
        let cut = (&reached - wanted).ceil().to_integer().to_u64();
        self.set(t, reached);
        cut.unwrap_or(n)
    }

    fn remaining(&self, t: u64) -> u64 {
        self.level(t).floor().to_integer().to_u64().unwrap_or(0)
    }

    fn retry_after(&self, t: u64, cost: u64) -> Option<u128> {
        self.wait_for(t, &whole(cost))
    }

    fn reset_after(&self, t: u64) -> Option<u128> {
        self.wait_for(t, &self.capacity())
    }

    fn grows_after(&self, t: u64) -> Option<u128> {
        self.wait_for(t, &whole(self.remaining(t) + 1))
    }

    fn delay(&self, t: u64) -> u128 {
        if self.limit.kind != Kind::LeakyBucket {
            return 0;
        }
        wait_up(&((self.capacity() - self.level(t)) / self.per_microsecond()))
    }

    fn carried_to(&self, new: &OracleLimit, t: u64) -> Box<dyn Rule> {
        let level = self.level(t);
        if level == self.capacity() {
            return Box::new(Bucket::full(new.clone()));
        }
        let parts = whole(new.period_us / gcd(new.amount, new.period_us));
        let kept = (level * &parts).floor() / parts;
        let kept = kept.min(whole(new.capacity)).max(-whole(new.debt()));
        Box::new(Bucket { limit: new.clone(), level: kept, at: t })
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
