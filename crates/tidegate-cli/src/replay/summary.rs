//! What came of a trace: counted as it is decided, in memory for its keys.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;
use tidegate::{Decision, Outcome, Policy, Timestamp};

use super::Replayer;
use super::answer::JsonKey;
use crate::trace::{Counts, TraceCheck};

/// How many of the most denied keys are told.
pub const MOST_DENIED: usize = 10;

/// Counts what is decided.
#[derive(Debug)]
pub struct Tally {
    policies: Vec<PolicyTally>,
    keys: HashMap<Box<[u8]>, KeyTally>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct PolicyTally {
    checks: u64,
    /// Units; of many checks of 10^12 each more than 64 bits hold.
    asked: u128,
    admitted: u128,
    denied: Refusals,
    /// Denials that each limit bound, in the policy's order.
    by_limit: Vec<u64>,
}

#[derive(Debug, Default, Clone, Copy)]
struct KeyTally {
    checks: u64,
    denied: u64,
}

/// Denials by what kind they are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refusals {
    /// Refused for now.
    pub denied: u64,
    /// Refused for good: the cost is above what a limit can ever hold.
    pub cost_exceeds_capacity: u64,
}

impl Refusals {
    /// All of them.
    pub fn total(self) -> u64 {
        self.denied + self.cost_exceeds_capacity
    }
}

/// What came of a whole trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Lines read.
    pub lines: u64,
    /// Lines that are no check.
    pub bad_lines: u64,
    /// Lines with a stamp older than one before them.
    pub out_of_order: u64,
    /// Of these, lines that were decided where they stood: all, if the order is kept, else those that came too
    /// late to be put in their place.
    pub left_out_of_order: u64,
    /// The oldest stamp of a check, if there was one.
    pub first_at_us: Option<u64>,
    /// The newest stamp of a check.
    pub last_at_us: Option<u64>,
    /// Checks decided.
    pub checks: u64,
    /// Checks admitted.
    pub admitted: u64,
    /// Checks refused.
    pub denied: u64,
    /// Checks refused, by outcome.
    pub denied_by_outcome: Refusals,
    /// Units asked for.
    pub cost_asked: u128,
    /// Units admitted.
    pub cost_admitted: u128,
    /// Different keys.
    pub distinct_keys: u64,
    /// States held at the end, which is when there are most: of each (policy, key) that was ever charged.
    pub states_held: u64,
    /// The same for each policy that was asked.
    pub policies: Vec<PolicySummary>,
    /// The keys most often refused, at most ten.
    pub most_denied: Vec<DeniedKey>,
}

/// What came of the checks of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicySummary {
    /// Its name.
    pub policy: String,
    /// Checks decided.
    pub checks: u64,
    /// Checks admitted.
    pub admitted: u64,
    /// Checks refused.
    pub denied: u64,
    /// Units asked for.
    pub cost_asked: u128,
    /// Units admitted.
    pub cost_admitted: u128,
    /// Its limits.
    pub limits: Vec<LimitSummary>,
}

/// How often one limit was the one that bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitSummary {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    pub algorithm: &'static str,
    /// Refusals that it bound.
    pub denied: u64,
}

/// One of the keys most often refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeniedKey {
    /// The key.
    #[serde(flatten, serialize_with = "as_json_key")]
    pub key: Box<[u8]>,
    /// Checks of it.
    pub checks: u64,
    /// Those refused.
    pub denied: u64,
}

fn as_json_key<S: serde::Serializer>(key: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    JsonKey::new(key).serialize(serializer)
}

impl Tally {
    /// Nothing yet, of these policies.
    pub fn new<'a>(policies: impl IntoIterator<Item = &'a Policy>) -> Self {
        let none = |policy: &Policy| PolicyTally {
            by_limit: vec![0; policy.plan().limits().len()],
            ..PolicyTally::default()
        };
        Tally {
            policies: policies.into_iter().map(none).collect(),
            keys: HashMap::new(),
            first: None,
            last: None,
        }
    }

    /// Counts one check and what was decided.
    pub fn count(&mut self, check: &TraceCheck, decision: &Decision) {
        self.first = Some(self.first.map_or(check.at, |first| first.min(check.at)));
        self.last = self.last.max(Some(check.at));
        let allowed = decision.is_allowed();
        match self.keys.get_mut(&check.key) {
            Some(key) => key.count(allowed),
            None => {
                let mut key = KeyTally::default();
                key.count(allowed);
                self.keys.insert(check.key.clone(), key);
            }
        }
        let policy = &mut self.policies[check.policy];
        policy.checks += 1;
        policy.asked += u128::from(check.cost.get());
        if allowed {
            return policy.admitted += u128::from(check.cost.get());
        }
        policy.by_limit[decision.bound_by()] += 1;
        match decision.outcome() {
            Outcome::CostExceedsCapacity => policy.denied.cost_exceeds_capacity += 1,
            _ => policy.denied.denied += 1,
        }
    }

    /// The whole, once all is decided.
    pub fn summary(&self, counts: Counts, replayer: &Replayer) -> Summary {
        let places = self.policies.iter().enumerate().filter(|(_, tally)| tally.checks > 0);
        let policies: Vec<_> = places.map(|(place, tally)| tally.summary(replayer.policy(place))).collect();
        let refusals = self.policies.iter().fold(Refusals::default(), |sum, policy| Refusals {
            denied: sum.denied + policy.denied.denied,
            cost_exceeds_capacity: sum.cost_exceeds_capacity + policy.denied.cost_exceeds_capacity,
        });
        Summary {
            lines: counts.lines,
            bad_lines: counts.bad,
            out_of_order: counts.out_of_order,
            left_out_of_order: counts.left_out_of_order,
            first_at_us: self.first.map(Timestamp::as_micros),
            last_at_us: self.last.map(Timestamp::as_micros),
            checks: policies.iter().map(|policy| policy.checks).sum(),
            admitted: policies.iter().map(|policy| policy.admitted).sum(),
            denied: refusals.total(),
            denied_by_outcome: refusals,
            cost_asked: policies.iter().map(|policy| policy.cost_asked).sum(),
            cost_admitted: policies.iter().map(|policy| policy.cost_admitted).sum(),
            distinct_keys: self.keys.len() as u64,
            states_held: replayer.states(),
            policies,
            most_denied: self.most_denied(),
        }
    }

    /// The most denied first; of those alike, the one with fewer checks, then in the order of bytes.
    fn most_denied(&self) -> Vec<DeniedKey> {
        let denied = self.keys.iter().filter(|(_, tally)| tally.denied > 0);
        let mut denied: Vec<_> =
            denied.map(|(key, tally)| (Reverse(tally.denied), tally.checks, key)).collect();
        if denied.len() > MOST_DENIED {
            denied.select_nth_unstable(MOST_DENIED);
            denied.truncate(MOST_DENIED);
        }
        denied.sort_unstable();
        let told = denied.into_iter().map(|(Reverse(denied), checks, key)| DeniedKey {
            key: key.clone(),
            checks,
            denied,
        });
        told.collect()
    }
}

impl KeyTally {
    fn count(&mut self, allowed: bool) {
        self.checks += 1;
        self.denied += u64::from(!allowed);
    }
}

impl PolicyTally {
    fn summary(&self, policy: &Policy) -> PolicySummary {
        let limits = policy.limit_names().zip(policy.plan().limits()).zip(&self.by_limit);
        PolicySummary {
            policy: policy.name().to_owned(),
            checks: self.checks,
            admitted: self.checks - self.denied.total(),
            denied: self.denied.total(),
            cost_asked: self.asked,
            cost_admitted: self.admitted,
            limits: limits
                .map(|((name, limit), denied)| LimitSummary {
                    name: name.to_owned(),
                    algorithm: limit.algorithm().name(),
                    denied: *denied,
                })
                .collect(),
        }
    }
}
