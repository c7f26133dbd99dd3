//! A decision together with what it was about.

use std::sync::Arc;

use tidegate::{Decision, Limit, LimitDecision, Policy, Timestamp};

/// A decision and what it was about.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The policy it was made under; see [`decided_under`].
    pub policy: &'a Policy,
    /// The key that was charged: it may have figures of its own.
    pub key: &'a [u8],
    /// The answer.
    pub decision: &'a Decision,
    /// When it was given.
    pub now: Timestamp,
}

/// The version of a policy that a decision about `key` was made under: of those in force before and after it
/// the one whose figures it shows. They differ only if a reload came between.
pub fn decided_under(
    before: Arc<Policy>,
    after: Arc<Policy>,
    key: &[u8],
    decision: &Decision,
) -> Arc<Policy> {
    if Arc::ptr_eq(&before, &after) {
        return before;
    }
    let shown = decision.limits().iter().map(LimitDecision::limit);
    let plan = before.plan_for(key).limits();
    let fits = plan.len() == shown.len() && plan.iter().map(Limit::capacity).eq(shown);
    if fits { before } else { after }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
        let name = |before, decision: &Decision| {
            decided_under(before, handle.policy(), b"k", decision).limit_name(0).to_owned()
        };
        let (before, decision) = (handle.policy(), handle.check("k", 1));
        limiter.reload(policy(7, "new")).unwrap();
        assert_eq!(name(before, &decision), "old", "decided, then reloaded");

        let before = handle.policy();
        limiter.reload(policy(9, "newer")).unwrap();
        assert_eq!(name(before, &handle.check("k", 1)), "newer", "reloaded, then decided");
    }
}
