//! Checks under several policies, decided as one.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Cost, Decision, Timestamp};

use crate::active::ActivePolicy;
use crate::adhoc::{AdHoc, AdHocCheck, Together};
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
        self.plain_group(asked, Grouping::AllOrNothing, now)
    }

    /// What each would be answered at `now`, charging nothing.
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn foresee_all_at(&self, asked: &[Asked<'_, S>], now: Timestamp) -> S::Answer<Vec<Decision>> {
        self.plain_group(asked, Grouping::Foresee, now)
    }

    /// Panics unless all policies are of this limiter.
    pub(crate) fn own(&self, asked: &[Asked<'_, S>]) {
        let own = asked.iter().all(|it| Arc::ptr_eq(&it.policy.shared, &self.shared));
        assert!(own, "a policy of another limiter was asked about");
    }

    fn plain_group(
        &self,
        asked: &[Asked<'_, S>],
        grouping: Grouping,
        now: Timestamp,
    ) -> S::Answer<Vec<Decision>> {
        let ask = |store: &S, checks: &[Check<'_>], grouping| store.check_group(now, checks, grouping);
        self.group(asked, grouping, now, ask, |decisions| decisions)
    }

    /// Has a group decided by `ask`; `policies` finds the decisions of those asked about.
    fn group<T: Send + 'static>(
        &self,
        asked: &[Asked<'_, S>],
        grouping: Grouping,
        now: Timestamp,
        ask: impl FnOnce(&S, &[Check<'_>], Grouping) -> S::Answer<T>,
        policies: fn(&mut T) -> &mut Vec<Decision>,
    ) -> S::Answer<T> {
        self.own(asked);
        let active: Vec<Arc<ActivePolicy>> =
            asked.iter().map(|asked| asked.policy.place.load_full()).collect();
        let checks: Vec<Check<'_>> = asked
            .iter()
            .zip(&active)
            .map(|(asked, policy)| Check { policy, key: asked.key, ask: Ask::Exactly(asked.cost) })
            .collect();
        let store = &self.shared.store;
        if self.shared.waiting.is_idle() {
            return ask(store, &checks, grouping);
        }
        let behind =
            |check: &Check<'_>| self.shared.behind_waiters(check.policy.number(), check.key, check.ask, now);
        let behind: Vec<Option<Decision>> = checks.iter().map(behind).collect();
        // Whoever would have to stand in line is refused, and with it all.
        let refused = behind.iter().any(Option::is_some);
        let grouping = if refused { Grouping::Foresee } else { grouping };
        S::map(ask(store, &checks, grouping), move |mut decided| {
            for (decision, behind) in policies(&mut decided).iter_mut().zip(behind) {
                *decision = behind.unwrap_or(*decision);
            }
            decided
        })
    }
}

impl<S: AdHoc> Limiter<S> {
    /// As [`check_all_at`](Self::check_all_at), with checks among them whose figures come along: all of both are
    /// charged, or none is.
    ///
    /// ```
    /// use tidegate::{AdHocCheck, AdHocLimit, AdHocSpace, Asked, Cost, Limit, Limiter, Policy, Rate};
    /// let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(1, Rate::per_second(1)))?);
    /// let api = limiter.policy("api")?;
    /// let limit = AdHocLimit::gcra(Rate::per_minute(30), 16);
    /// let brought = AdHocCheck { space: AdHocSpace::new("tenants"), key: b"acme", limit: &limit, cost: Cost::ONE };
    /// let asked = Asked { policy: &api, key: b"ann", cost: Cost::ONE };
    /// assert!(limiter.check_all_with_at(&[asked], &[brought], limiter.now()).is_allowed());
    /// let refused = limiter.check_all_with_at(&[asked], &[brought], limiter.now());
    /// assert!(!refused.is_allowed());
    /// assert_eq!(refused.ad_hoc[0].remaining(), 15); // for it nothing was charged
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn check_all_with_at(
        &self,
        asked: &[Asked<'_, S>],
        ad_hoc: &[AdHocCheck<'_>],
        now: Timestamp,
    ) -> S::Answer<Together> {
        self.group_with(asked, ad_hoc, Grouping::AllOrNothing, now)
    }

    /// What each would be answered at `now`, charging nothing.
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn foresee_all_with_at(
        &self,
        asked: &[Asked<'_, S>],
        ad_hoc: &[AdHocCheck<'_>],
        now: Timestamp,
    ) -> S::Answer<Together> {
        self.group_with(asked, ad_hoc, Grouping::Foresee, now)
    }

    fn group_with(
        &self,
        asked: &[Asked<'_, S>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
        now: Timestamp,
    ) -> S::Answer<Together> {
        let ask =
            |store: &S, checks: &[Check<'_>], grouping| store.check_group_with(now, checks, ad_hoc, grouping);
        self.group(asked, grouping, now, ask, |together| &mut together.policies)
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
