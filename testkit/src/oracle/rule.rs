//! What each of the six kinds must be able to say about one key.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::bucket::Bucket;
use super::counter::SlidingCounter;
use super::figures::{Kind, OracleLimit};
use super::fixed::FixedWindow;
use super::log::SlidingLog;

/// One limit's memory of one key. Every `t` is at or after every earlier `t`; waits are in microseconds from `t`.
pub(super) trait Rule: std::fmt::Debug {
    /// Whether a check of `cost` at `t` passes.
    fn admits(&self, t: u64, cost: u64) -> bool;
    /// Takes an admitted `cost`.
    fn charge(&mut self, t: u64, cost: u64);
    /// Gives `n` back.
    fn credit(&mut self, t: u64, n: u64);
    /// Takes `n` whether it is there or not, and returns the part cut at the bound of the debt.
    fn penalize(&mut self, t: u64, n: u64) -> u64;
    /// Whole units left, never below 0.
    fn remaining(&self, t: u64) -> u64;
    /// The least wait until a check of `cost` passes.
    fn retry_after(&self, t: u64, cost: u64) -> Option<u128>;
    /// The least wait until the limit is as new.
    fn reset_after(&self, t: u64) -> Option<u128>;
    /// The least wait until `remaining` is larger than at `t`.
    fn grows_after(&self, t: u64) -> Option<u128>;
    /// How long work admitted at `t`, before its charge, should be held back.
    fn delay(&self, _t: u64) -> u128 {
        0
    }
    /// The same memory under other figures of the same kind, which come into force at `t`.
    fn carried_to(&self, new: &OracleLimit, t: u64) -> Box<dyn Rule>;
    /// A copy.
    fn boxed(&self) -> Box<dyn Rule>;
}

impl Clone for Box<dyn Rule> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// The memory of a key never seen.
pub(super) fn fresh(limit: &OracleLimit) -> Box<dyn Rule> {
    match limit.kind {
        Kind::TokenBucket | Kind::Gcra | Kind::LeakyBucket => Box::new(Bucket::full(limit.clone())),
        Kind::FixedWindow => Box::new(FixedWindow::empty(limit.clone())),
        Kind::SlidingWindowLog => Box::new(SlidingLog::empty(limit.clone())),
        Kind::SlidingWindowCounter => Box::new(SlidingCounter::empty(limit.clone())),
    }
}

pub(super) fn whole(n: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(n.into())
}

/// A wait, rounded up to a whole microsecond.
pub(super) fn wait_up(wait: &BigRational) -> u128 {
    #[expect(
        clippy::unwrap_used,
        reason = "a wait is positive, and a debt of 2 * 10^12 periods of a year is below 2^128"
    )]
    wait.ceil().to_integer().to_u128().unwrap()
}
