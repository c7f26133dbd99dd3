//! Decides the checks of a trace in their own time.

use std::sync::Arc;

use tidegate::store::StoreError;
use tidegate::{Decision, Policy, PolicySet};
use tidegate_redis::RedisStoreBuilder;

use super::place::Place;
use crate::trace::{BadLine, Pace, TraceCheck};

/// Policies over an empty store, in virtual time: the stamps of the checks are the only clock there is.
///
/// States are never dropped, not even when they are as new, so that every stamp counts as it stands however late
/// it comes, and two runs decide alike.
#[derive(Debug)]
pub struct Replayer {
    place: Place,
    policies: Vec<Arc<Policy>>,
    fallback: Option<usize>,
}

/// There is no policy of the name given for lines that name none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no policy is named {name:?} (there are: {known})")]
pub struct NoSuchPolicy {
    name: String,
    known: String,
}

impl Replayer {
    /// Starts with no key known. Lines that name no policy are decided under `fallback`, else under the only
    /// policy there is, else under the one named `default`.
    ///
    /// # Errors
    /// No policy of the fallback's name.
    pub fn new(policies: PolicySet, fallback: Option<&str>) -> Result<Self, NoSuchPolicy> {
        Self::over(Place::memory(policies.clone()), policies, fallback)
    }

    /// As [`Replayer::new`], over a store that several instances share: under a prefix of its own, and all that it
    /// kept there is removed when this is dropped.
    ///
    /// # Errors
    /// No policy of the fallback's name, or the store cannot be opened.
    pub fn shared(
        policies: PolicySet,
        fallback: Option<&str>,
        store: RedisStoreBuilder,
    ) -> Result<Result<Self, NoSuchPolicy>, StoreError> {
        let place = Place::shared(policies.clone(), store)?;
        Ok(Self::over(place, policies, fallback))
    }

    fn over(place: Place, policies: PolicySet, fallback: Option<&str>) -> Result<Self, NoSuchPolicy> {
        let policies: Vec<_> = policies.iter().cloned().collect();
        let mut replayer = Replayer { place, policies, fallback: None };
        replayer.fallback = match fallback {
            Some(name) => Some(replayer.place(name).ok_or_else(|| replayer.no_such(name))?),
            None if replayer.policies.len() == 1 => Some(0),
            None => replayer.place("default"),
        };
        Ok(replayer)
    }

    /// The policies, in the order in which their places count.
    pub fn policies(&self) -> impl ExactSizeIterator<Item = &Arc<Policy>> {
        self.policies.iter()
    }

    /// The policy in this place.
    pub fn policy(&self, place: usize) -> &Policy {
        &self.policies[place]
    }

    /// The place of the policy a line names, or of the one for lines that name none.
    ///
    /// # Errors
    /// There is none.
    pub fn resolve(&self, name: Option<&str>) -> Result<usize, BadLine> {
        match name {
            Some(name) => {
                self.place(name).ok_or_else(|| BadLine::new(format!("policy: {}", self.no_such(name))))
            }
            None => self.fallback.ok_or_else(|| {
                BadLine::new(format!("no policy (name one of {}, or give --policy)", self.known()))
            }),
        }
    }

    /// Decides checks in their order, each under the policy in the place beside it and at its own stamp, and puts the
    /// decisions behind those that there are.
    ///
    /// # Errors
    /// The store could not answer; one in memory always can.
    #[inline]
    pub fn decide<'c>(
        &self,
        checks: impl Iterator<Item = (usize, &'c TraceCheck)>,
        decisions: &mut Vec<Decision>,
    ) -> Result<(), StoreError> {
        self.place.decide(checks, decisions)
    }

    /// So many checks are best decided together.
    pub fn at_once(&self) -> usize {
        self.place.at_once()
    }

    /// How fast it decides.
    pub fn pace(&self) -> Pace {
        self.place.pace()
    }

    /// States held: one for each (policy, key) that was ever charged.
    pub fn states(&self) -> u64 {
        self.place.states()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.policies().position(|policy| policy.name() == name)
    }

    fn known(&self) -> String {
        self.policies().map(|policy| policy.name()).collect::<Vec<_>>().join(", ")
    }

    fn no_such(&self, name: &str) -> NoSuchPolicy {
        NoSuchPolicy { name: name.to_owned(), known: self.known() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::{Limit, Rate};

    fn set(names: &[&str]) -> PolicySet {
        let limit = Limit::token_bucket(1, Rate::per_second(1));
        PolicySet::new(names.iter().map(|name| Policy::single(*name, limit).unwrap())).unwrap()
    }

    #[test]
    fn a_line_without_a_policy_gets_the_one_it_can_only_mean() {
        let place = |names: &[&str], fallback| Replayer::new(set(names), fallback).unwrap().resolve(None);
        assert_eq!(place(&["a"], None), Ok(0));
        assert_eq!(place(&["a", "default"], None), Ok(1));
        assert_eq!(place(&["a", "default"], Some("a")), Ok(0));
        let error = place(&["a", "b"], None).unwrap_err().to_string();
        assert_eq!(error, "no policy (name one of a, b, or give --policy)");
        let error = Replayer::new(set(&["a", "b"]), Some("c")).unwrap_err().to_string();
        assert_eq!(error, "no policy is named \"c\" (there are: a, b)");
        let error = Replayer::new(set(&["a"]), None).unwrap().resolve(Some("c")).unwrap_err();
        assert_eq!(error.to_string(), "policy: no policy is named \"c\" (there are: a)");
    }
}
