//! A decision with the names and figures it is shown under.

use std::sync::Arc;

use tidegate::store::StoreError;
use tidegate::{Decision, Limit, LimitDecision, Policy};
use tidegate_fields::decided_under;

use crate::store::{Handle, Soon};

/// A decision about a key, and the policy in the version it was made under.
#[derive(Debug, Clone)]
pub struct View<'k> {
    policy: Arc<Policy>,
    key: &'k [u8],
    decision: Decision,
    /// Of a forced charge: what of it each limit cut.
    cuts: Vec<u64>,
}

/// One limit's part in a decision.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The limit's name.
    pub name: &'a str,
    /// Its figures, as they are in force for the key.
    pub limit: &'a Limit,
    /// What was decided.
    pub decision: &'a LimitDecision,
    /// Of a forced charge: what of it was cut.
    pub cut: Option<u64>,
}

impl<'k> View<'k> {
    /// Decides about `key` by `decide`.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn of(
        handle: &Handle,
        key: &'k [u8],
        decide: impl FnOnce(&Handle) -> Soon<Decision>,
    ) -> Result<Self, StoreError> {
        let before = handle.policy();
        let decision = decide(handle).await?;
        Ok(View::decided((before, handle.policy()), key, decision))
    }

    /// Of a decision that was made between two looks at the policy.
    pub fn decided((before, after): (Arc<Policy>, Arc<Policy>), key: &'k [u8], decision: Decision) -> Self {
        let policy = decided_under(before, after, key, &decision);
        View { policy, key, decision, cuts: Vec::new() }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// The decision.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The name of the binding limit.
    pub fn bound_by(&self) -> &str {
        self.policy.limit_name(self.decision.bound_by())
    }

    /// Adds what each limit cut of a forced charge.
    #[must_use]
    pub fn with_cuts(self, cuts: Vec<u64>) -> Self {
        View { cuts, ..self }
    }

    /// What was decided about each limit, in the order of the policy. An overloaded store decides about the first only.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let limits = self.policy.limit_names().zip(self.policy.plan_for(self.key).limits());
        limits.zip(self.decision.limits()).enumerate().map(|(index, ((name, limit), decision))| Part {
            name,
            limit,
            decision,
            cut: self.cuts.get(index).copied(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{Limiter, Rate};

    use super::*;

    fn policy(capacity: u32, name: &str) -> Policy {
        let limit = Limit::token_bucket(capacity, Rate::per_second(1));
        Policy::builder("api").limit(name, limit).build().unwrap()
    }

    #[test]
    fn a_reload_in_between_does_not_mix_names_and_figures() {
        let limiter = Limiter::new(policy(5, "old"));
        let handle = limiter.policy("api").unwrap();
        let look = || handle.policy();
        let (before, decision) = (look(), handle.check(b"k", 1));
        limiter.reload(policy(7, "new")).unwrap();
        let decided_first = View::decided((before, look()), b"k", decision);
        assert_eq!((decided_first.bound_by(), decided_first.decision().limit().get()), ("old", 5));
        let before = look();
        limiter.reload(policy(9, "newer")).unwrap();
        let decision = handle.check(b"k", 1);
        let reloaded_first = View::decided((before, look()), b"k", decision);
        assert_eq!((reloaded_first.bound_by(), reloaded_first.decision().limit().get()), ("newer", 9));
    }
}
