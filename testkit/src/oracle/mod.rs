//! The meaning of a decision, written a second time: slow, obvious, in exact rationals, with whole histories kept.
//!
//! It shares no code and no type with the core it judges. Where the two disagree, one of them is wrong.
//!
//! ```
//! use tidegate_testkit::oracle::{Kind, Oracle, OracleLimit, OraclePolicy, Outcome};
//!
//! let limit = OracleLimit::bucket(Kind::TokenBucket, 1, 5, 1_000_000); // 1 at once, 5 each second
//! let mut key = Oracle::new(OraclePolicy { limits: vec![limit] });
//! assert_eq!(key.check(0, 1).outcome, Outcome::Allowed);
//! assert_eq!(key.check(0, 1).headline().retry_after_us, Some(200_000));
//! ```

mod binding;
mod bucket;
mod counter;
mod figures;
mod fixed;
mod log;
mod rule;
#[cfg(test)]
mod tests;

pub use figures::{Kind, OracleDecision, OracleFigures, OracleLimit, OraclePolicy, OracleTaken, Outcome};
use rule::{Rule, fresh};

/// Everything known of one key under one policy.
///
/// All stamps are microseconds since the epoch. A stamp older than the key's newest charge counts as that
/// charge's instant.
#[derive(Debug, Clone)]
pub struct Oracle {
    policy: OraclePolicy,
    rules: Vec<Box<dyn Rule>>,
    /// When the key was last charged, credited or penalized; absent for a key never seen.
    last: Option<u64>,
}

impl Oracle {
    /// A key never seen.
    pub fn new(policy: OraclePolicy) -> Self {
        let rules = policy.limits.iter().map(fresh).collect();
        Oracle { policy, rules, last: None }
    }

    /// The policy in force.
    pub fn policy(&self) -> &OraclePolicy {
        &self.policy
    }

    /// The instant at which anything that comes stamped `now_us` is decided.
    pub fn decided_at(&self, now_us: u64) -> u64 {
        self.last.map_or(now_us, |last| last.max(now_us))
    }

    /// When the key was last charged, credited or penalized.
    pub fn last_us(&self) -> Option<u64> {
        self.last
    }

    /// Decides a check of `cost`, and charges it to every limit if every limit admits it.
    pub fn check(&mut self, now_us: u64, cost: u64) -> OracleDecision {
        let t = self.decided_at(now_us);
        if !self.rules.iter().all(|rule| rule.admits(t, cost)) {
            return self.denied(t, cost);
        }
        let delays: Vec<u128> = self.rules.iter().map(|rule| rule.delay(t)).collect();
        if cost > 0 {
            self.rules.iter_mut().for_each(|rule| rule.charge(t, cost));
            self.last = Some(t);
        }
        self.admitted(t, &delays)
    }

    /// A check of cost 0: charges nothing, and is denied while any limit is overdrawn.
    pub fn peek(&self, now_us: u64) -> OracleDecision {
        self.clone().check(now_us, 0)
    }

    /// Takes as many whole units as every limit has, at most `max`. With none there it is decided as a check
    /// of cost 1.
    pub fn check_up_to(&mut self, now_us: u64, max: u64) -> OracleTaken {
        let t = self.decided_at(now_us);
        let there = self.rules.iter().map(|rule| rule.remaining(t)).min().unwrap_or(0);
        let taken = there.min(max);
        if taken == 0 && max > 0 {
            return OracleTaken { taken, decision: self.check(now_us, 1) };
        }
        OracleTaken { taken, decision: self.check(now_us, taken) }
    }

    /// Gives `n` units back to every limit.
    pub fn credit(&mut self, now_us: u64, n: u64) {
        let t = self.decided_at(now_us);
        if n > 0 {
            self.rules.iter_mut().for_each(|rule| rule.credit(t, n));
            self.last = Some(t);
        }
    }

    /// Takes `n` units from every limit whether they are there or not. Returns what each limit cut off because
    /// its debt is bounded.
    pub fn penalize(&mut self, now_us: u64, n: u64) -> Vec<u64> {
        let t = self.decided_at(now_us);
        if n > 0 {
            self.last = Some(t);
        }
        self.rules.iter_mut().map(|rule| if n > 0 { rule.penalize(t, n) } else { 0 }).collect()
    }

    /// Forgets the key.
    pub fn reset(&mut self) {
        *self = Oracle::new(self.policy.clone());
    }

    /// Puts `new` in force from `since_us` on. Limits are matched by position; one whose kind differs, or that
    /// has no match, starts anew. What has been used stays used.
    pub fn reload(&mut self, new: OraclePolicy, since_us: u64) {
        if new == self.policy {
            return;
        }
        let Some(last) = self.last else {
            *self = Oracle::new(new);
            return;
        };
        let t = last.max(since_us);
        let rules =
            new.limits.iter().enumerate().map(|(position, limit)| match self.policy.limits.get(position) {
                Some(old) if old.kind == limit.kind => self.rules[position].carried_to(limit, t),
                _ => fresh(limit),
            });
        self.rules = rules.collect();
        self.policy = new;
        self.last = Some(t);
    }

    fn admitted(&self, t: u64, delays: &[u128]) -> OracleDecision {
        let limits: Vec<OracleFigures> = self
            .rules
            .iter()
            .zip(delays)
            .zip(&self.policy.limits)
            .map(|((rule, delay), limit)| figures(rule.as_ref(), limit, t, Some(0), *delay))
            .collect();
        let bound_by = binding::of_admission(&limits);
        OracleDecision { outcome: Outcome::Allowed, bound_by, limits }
    }

    fn denied(&self, t: u64, cost: u64) -> OracleDecision {
        let limits: Vec<OracleFigures> = self
            .rules
            .iter()
            .zip(&self.policy.limits)
            .map(|(rule, limit)| figures(rule.as_ref(), limit, t, rule.retry_after(t, cost), 0))
            .collect();
        let never = limits.iter().any(|figures| cost > figures.limit);
        let outcome = if never { Outcome::CostExceedsCapacity } else { Outcome::Denied };
        OracleDecision { outcome, bound_by: binding::of_denial(&limits, cost), limits }
    }
}

fn figures(
    rule: &dyn Rule,
    limit: &OracleLimit,
    t: u64,
    retry_after_us: Option<u128>,
    delay_us: u128,
) -> OracleFigures {
    OracleFigures {
        limit: limit.capacity,
        remaining: rule.remaining(t),
        retry_after_us,
        reset_after_us: rule.reset_after(t),
        delay_us,
        grows_after_us: rule.grows_after(t),
    }
}
