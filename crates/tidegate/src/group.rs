//! Checks under several policies, decided as one.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Cost, Decision, Timestamp};

use crate::active::ActivePolicy;
use crate::handle::PolicyHandle;
use crate::limiter::Limiter;
use crate::memory::MemoryStore;
use crate::store::{Ask, Check, Grouping, Store};

/// One of several checks that are decided as one; see [`Limiter::check_all`].
pub struct Asked<'a, S: Store = MemoryStore> {
    /// The policy; of the limiter that is asked.
    pub policy: &'a PolicyHandle<S>,
    /// The client's key: any bytes.
    pub key: &'a [u8],
    /// What it would have. 0 is a peek.
    pub cost: Cost,
}

impl<S: Store> Limiter<S> {
    /// Decides checks as one: if each is admitted all are charged, else none is, so that a refused one does not
    /// drain the others. Nothing else comes in between. Two may be of the same key; both then have to fit.
    ///
    /// The answers are in the order of the checks. If one is refused, the others tell what they would have been
    /// answered, with the figures from before a charge.
    ///
    /// ```
    /// use tidegate::{Asked, Cost, Limit, Limiter, Policy, PolicySet, Rate};
    /// let of = |name, capacity| Policy::single(name, Limit::token_bucket(capacity, Rate::per_second(1)));
    /// let limiter = Limiter::new(PolicySet::new([of("tenant", 10)?, of("user", 1)?])?);
    /// let (tenant, user) = (limiter.policy("tenant")?, limiter.policy("user")?);
    /// user.check("ann", 1);
    /// let both = limiter.check_all(&[
    ///     Asked { policy: &tenant, key: b"acme", cost: Cost::ONE },
    ///     Asked { policy: &user, key: b"ann", cost: Cost::ONE },
    /// ]);
    /// assert!(both[0].is_allowed() && !both[1].is_allowed());
    /// assert_eq!(tenant.peek("acme").remaining(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn check_all(&self, asked: &[Asked<'_, S>]) -> S::Answer<Vec<Decision>> {
        self.check_all_at(asked, self.now())
    }

    /// As [`check_all`](Self::check_all), at an instant of the caller's.
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn check_all_at(&self, asked: &[Asked<'_, S>], now: Timestamp) -> S::Answer<Vec<Decision>> {
        self.group(asked, Grouping::AllOrNothing, now)
    }

    /// What each would be answered at `now`, charging nothing.
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn foresee_all_at(&self, asked: &[Asked<'_, S>], now: Timestamp) -> S::Answer<Vec<Decision>> {
        self.group(asked, Grouping::Foresee, now)
    }

    /// Panics unless all policies are of this limiter.
    pub(crate) fn own(&self, asked: &[Asked<'_, S>]) {
        let own = asked.iter().all(|it| Arc::ptr_eq(&it.policy.shared, &self.shared));
        assert!(own, "a policy of another limiter was asked about");
    }

    fn group(&self, asked: &[Asked<'_, S>], grouping: Grouping, now: Timestamp) -> S::Answer<Vec<Decision>> {
        self.own(asked);
        let policies: Vec<Arc<ActivePolicy>> =
            asked.iter().map(|asked| asked.policy.place.load_full()).collect();
        let checks: Vec<Check<'_>> = asked
            .iter()
            .zip(&policies)
            .map(|(asked, policy)| Check { policy, key: asked.key, ask: Ask::Exactly(asked.cost) })
            .collect();
        let store = &self.shared.store;
        if self.shared.waiting.is_idle() {
            return store.check_group(now, &checks, grouping);
        }
        let behind =
            |check: &Check<'_>| self.shared.behind_waiters(check.policy.number(), check.key, check.ask, now);
        let behind: Vec<Option<Decision>> = checks.iter().map(behind).collect();
        // Whoever would have to stand in line is refused, and with it all.
        let refused = behind.iter().any(Option::is_some);
        let grouping = if refused { Grouping::Foresee } else { grouping };
        S::map(store.check_group(now, &checks, grouping), |decisions| {
            decisions.into_iter().zip(behind).map(|(decision, behind)| behind.unwrap_or(decision)).collect()
        })
    }
}

impl<S: Store> Clone for Asked<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store> Copy for Asked<'_, S> {}

impl<S: Store> fmt::Debug for Asked<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { policy, key, cost } = self;
        f.debug_struct("Asked").field("policy", policy).field("key", key).field("cost", cost).finish()
    }
}
