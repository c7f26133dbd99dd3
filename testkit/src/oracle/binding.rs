//! Which limit's figures head the answer.

use std::cmp::Reverse;

use super::figures::OracleFigures;

/// A wait in which "never" is longer than any number.
fn or_never(wait: Option<u128>) -> (bool, u128) {
    (wait.is_none(), wait.unwrap_or(0))
}

/// The limit with the least left; then the one longest from new; then the first.
pub(super) fn of_admission(limits: &[OracleFigures]) -> usize {
    first_greatest(limits, |figures| (Reverse(figures.remaining), or_never(figures.reset_after_us)))
}

/// Of the limits that deny, the one with the longest wait. Among those that never admit it, one too small for
/// the cost comes first; then the one longest from new; then the first.
pub(super) fn of_denial(limits: &[OracleFigures], cost: u64) -> usize {
    first_greatest(limits, |figures| {
        let denies = figures.retry_after_us != Some(0);
        let too_small = cost > figures.limit;
        (denies, or_never(figures.retry_after_us), too_small, or_never(figures.reset_after_us))
    })
}

fn first_greatest<K: Ord>(limits: &[OracleFigures], rank: impl Fn(&OracleFigures) -> K) -> usize {
    let mut best = 0;
    for position in 1..limits.len() {
        if rank(&limits[position]) > rank(&limits[best]) {
            best = position;
        }
    }
    best
}
