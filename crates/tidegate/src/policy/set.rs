//! All policies of a limiter, by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Policy, PolicyError};

/// The policies a limiter runs, each under its name, in the order they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySet {
    policies: Vec<Arc<Policy>>,
    by_name: HashMap<Box<str>, usize>,
}

impl PolicySet {
    /// A set of `policies`.
    ///
    /// # Errors
    /// Two of the same name.
    pub fn new(policies: impl IntoIterator<Item = Policy>) -> Result<Self, PolicyError> {
        let mut set = PolicySet::default();
        for policy in policies {
            let name = policy.name();
            if set.by_name.insert(name.into(), set.policies.len()).is_some() {
                return Err(PolicyError::DuplicatePolicy { policy: name.to_owned() });
            }
            set.policies.push(Arc::new(policy));
        }
        Ok(set)
    }

    /// The policy of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.by_name.get(name).map(|index| &self.policies[*index])
    }

    /// All of them, in the order they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Policy>> {
        self.policies.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }
}

impl From<Policy> for PolicySet {
    /// A set of one.
    fn from(policy: Policy) -> Self {
        let by_name = HashMap::from([(policy.name().into(), 0)]);
        PolicySet { policies: vec![Arc::new(policy)], by_name }
    }
}
