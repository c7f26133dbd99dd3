//! Rules with the policies they name.

use std::collections::HashMap;

use tidegate::Limiter;

use super::tree::EnvoyRules;
use crate::store::{AnyStore, Handle};

/// Rules, and the handles on their policies as they were when the rules came into force. A handle follows its policy,
/// and goes on when that is removed: between a reload of the policies and one of the rules nothing is unanswered.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    pub rules: EnvoyRules,
    handles: HashMap<String, Handle>,
}

impl InForce {
    /// Looks the policies up; one that there is not is missing when it is met.
    pub fn of(rules: EnvoyRules, limiter: &Limiter<AnyStore>) -> Self {
        let handles = rules.policies().into_iter();
        let handles = handles.filter_map(|name| Some((name.to_owned(), limiter.policy(name).ok()?)));
        InForce { handles: handles.collect(), rules }
    }

    /// The handle on a policy that the rules name.
    pub fn handle(&self, policy: &str) -> Option<&Handle> {
        self.handles.get(policy)
    }
}
