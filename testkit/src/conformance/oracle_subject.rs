//! The oracle as a subject of its own suite: shows that the cases hold of it, and that the suite passes somebody.

use std::collections::HashMap;

use super::subject::{Subject, SubjectAnswer};
use crate::cases::{LimitSpec, policy_for_oracle};
use crate::oracle::{Kind, Oracle, OraclePolicy};

/// An oracle for each key.
#[derive(Debug, Default)]
pub struct OracleSubject {
    policy: Option<OraclePolicy>,
    keys: HashMap<Vec<u8>, Oracle>,
}

const MOST_UNITS: u64 = 1_000_000_000_000;
const LONGEST_US: u64 = 366 * 86_400 * 1_000_000;
const MOST_LIMITS: usize = 8;

impl OracleSubject {
    fn key(&mut self, key: &[u8]) -> &mut Oracle {
        let policy = &self.policy;
        let fresh = || Oracle::new(policy.clone().expect("a policy was installed"));
        self.keys.entry(key.to_vec()).or_insert_with(fresh)
    }
}

fn refusal(limits: &[LimitSpec]) -> Option<String> {
    if limits.is_empty() || limits.len() > MOST_LIMITS {
        return Some(format!("{} limits: a policy has one to {MOST_LIMITS}", limits.len()));
    }
    limits.iter().find_map(|limit| {
        let units = [limit.capacity, limit.amount, limit.debt.unwrap_or(0)];
        if units.iter().any(|units| *units > MOST_UNITS) {
            Some(format!("{}: {units:?}: units go up to 10^12", limit.name))
        } else if !(1..=LONGEST_US).contains(&limit.period_us) {
            Some(format!("{}: {} us: periods are 1 us to 366 days", limit.name, limit.period_us))
        } else if limit.kind == Kind::LeakyBucket && limit.amount == 0 {
            Some(format!("{}: a leaky bucket has to leak", limit.name))
        } else {
            None
        }
    })
}

impl Subject for OracleSubject {
    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        if let Some(reason) = refusal(limits) {
            return Err(reason);
        }
        *self = OracleSubject { policy: Some(policy_for_oracle(limits)), keys: HashMap::new() };
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        self.key(key).check(at_us, cost).into()
    }

    fn check_up_to(&mut self, at_us: u64, key: &[u8], max: u64) -> (u64, SubjectAnswer) {
        let taken = self.key(key).check_up_to(at_us, max);
        (taken.taken, taken.decision.into())
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        self.key(key).credit(at_us, n);
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        self.key(key).penalize(at_us, n)
    }

    fn reset(&mut self, _at_us: u64, key: &[u8]) {
        self.key(key).reset();
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        let policy = policy_for_oracle(limits);
        self.keys.values_mut().for_each(|key| key.reload(policy.clone(), since_us));
        self.policy = Some(policy);
    }
}
