//! A decision with the names and figures it is shown under.

use std::sync::Arc;

use tidegate::{Decision, Limit, LimitDecision, Policy, PolicyHandle};
use tidegate_fields::decided_under;

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
    pub fn of(handle: &PolicyHandle, key: &'k [u8], decide: impl FnOnce(&PolicyHandle) -> Decision) -> Self {
        Self::of_known(handle.policy(), handle, key, decide)
    }

    /// The same of a policy that has been looked up `before` already.
    pub fn of_known(
        before: Arc<Policy>,
        handle: &PolicyHandle,
        key: &'k [u8],
        decide: impl FnOnce(&PolicyHandle) -> Decision,
    ) -> Self {
        Self::decided(before, handle, key, decide(handle))
    }

    /// Of a decision made after the policy was looked up.
    pub fn decided(before: Arc<Policy>, handle: &PolicyHandle, key: &'k [u8], decision: Decision) -> Self {
        let policy = decided_under(before, handle.policy(), key, &decision);
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
        let decided_first = View::of(&handle, b"k", |handle| {
            let decision = handle.check(b"k", 1);
            limiter.reload(policy(7, "new")).unwrap();
            decision
        });
        assert_eq!((decided_first.bound_by(), decided_first.decision().limit().get()), ("old", 5));
        let reloaded_first = View::of(&handle, b"k", |handle| {
            limiter.reload(policy(9, "newer")).unwrap();
            handle.check(b"k", 1)
        });
        assert_eq!((reloaded_first.bound_by(), reloaded_first.decision().limit().get()), ("newer", 9));
    }
}
