//! Many checks at once, each on its own: cheaper than one by one.

use std::sync::Arc;

use tidegate_core::{Cost, Decision, Timestamp};

use crate::active::ActivePolicy;
use crate::group::Asked;
use crate::handle::PolicyHandle;
use crate::limiter::{Limiter, Shared};
use crate::store::{Ask, Check, Store};

/// So many checks are put together without allocating.
const FEW: usize = 16;

impl<S: Store> Limiter<S> {
    /// Decides checks that have nothing to do with one another, in order: each is answered as
    /// [`PolicyHandle::check`] would one after the other, and one that is refused keeps none of the others from being
    /// charged. For all or nothing there is [`check_all`](Self::check_all).
    ///
    /// Over a store in memory the answers are a `Vec<Decision>`. Over one that does I/O they are a future of a
    /// `Vec<Result<Decision, StoreError>>`: one that has no answer takes none of the others with it.
    ///
    /// The clock is read once, and a store in memory looks at what several checks need while it waits for the first.
    /// It pays from a few checks on, and the more so the more keys there are: sixteen checks at once take about two
    /// thirds of the time they take one by one among few keys, half of it among a million.
    ///
    /// ```
    /// use tidegate::{Asked, Cost, Limit, Limiter, Policy, PolicySet, Rate};
    /// let of = |name, capacity| Policy::single(name, Limit::token_bucket(capacity, Rate::per_second(1)));
    /// let limiter = Limiter::new(PolicySet::new([of("read", 10)?, of("write", 1)?])?);
    /// let (read, write) = (limiter.policy("read")?, limiter.policy("write")?);
    /// let decided = limiter.check_batch(&[
    ///     Asked { policy: &write, key: b"ann", cost: Cost::ONE },
    ///     Asked { policy: &write, key: b"ann", cost: Cost::ONE },
    ///     Asked { policy: &read, key: b"ann", cost: Cost::ONE },
    /// ]);
    /// assert_eq!(decided.iter().map(|it| it.is_allowed()).collect::<Vec<_>>(), [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn check_batch(&self, asked: &[Asked<'_, S>]) -> S::Answers {
        self.check_batch_at(asked, self.now())
    }

    /// As [`check_batch`](Self::check_batch), at an instant of the caller's.
    ///
    /// # Panics
    /// If a policy is of another limiter.
    pub fn check_batch_at(&self, asked: &[Asked<'_, S>], now: Timestamp) -> S::Answers {
        self.own(asked);
        let stale = asked.iter().any(|asked| asked.policy.version.is_superseded());
        let newest: Vec<Arc<ActivePolicy>> = match stale {
            true => asked.iter().map(|asked| asked.policy.place.load_full()).collect(),
            false => Vec::new(),
        };
        let checks = asked.iter().enumerate().map(|(at, asked)| {
            let policy = newest.get(at).unwrap_or(&asked.policy.version);
            Check { policy, key: asked.key, ask: Ask::Exactly(asked.cost) }
        });
        self.shared.check_batch(checks, now)
    }
}

impl<S: Store> PolicyHandle<S> {
    /// Decides whether each of `keys` may have `cost` now, each on its own and in order: as
    /// [`check`](Self::check) one after the other, but cheaper, see [`Limiter::check_batch`].
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, Policy, Rate};
    /// let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(2, Rate::per_second(1)))?);
    /// let decided = limiter.policy("api")?.check_batch(&["user:1", "user:1", "user:1", "user:2"], 1);
    /// assert_eq!(decided.iter().map(|it| it.remaining()).collect::<Vec<_>>(), [1, 0, 0, 1]);
    /// assert!(!decided[2].is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_batch(&self, keys: &[impl AsRef<[u8]>], cost: impl Into<Cost>) -> S::Answers {
        self.check_batch_at(keys, cost, self.shared.clock.now())
    }

    /// As [`check_batch`](Self::check_batch), at an instant of the caller's.
    pub fn check_batch_at(
        &self,
        keys: &[impl AsRef<[u8]>],
        cost: impl Into<Cost>,
        now: Timestamp,
    ) -> S::Answers {
        let newest = self.version.is_superseded().then(|| self.place.load_full());
        let (policy, ask) = (newest.as_ref().unwrap_or(&self.version), Ask::Exactly(cost.into()));
        let check = |key| Check { policy, key, ask };
        self.shared.check_batch(keys.iter().map(|key| check(key.as_ref())), now)
    }
}

impl<S: Store> Shared<S> {
    fn check_batch<'a>(
        &self,
        checks: impl ExactSizeIterator<Item = Check<'a>>,
        now: Timestamp,
    ) -> S::Answers {
        let count = checks.len();
        let mut checks = checks.peekable();
        let Some(first) = checks.peek() else { return S::each_ready(Vec::new()) };
        if count > FEW {
            return self.check_list(&checks.collect::<Vec<_>>(), now);
        }
        let mut few = [*first; FEW];
        few.iter_mut().zip(checks).for_each(|(place, check)| *place = check);
        self.check_list(&few[..count], now)
    }

    fn check_list(&self, checks: &[Check<'_>], now: Timestamp) -> S::Answers {
        if self.waiting.is_idle() {
            return self.store.check_each(now, checks);
        }
        let behind =
            |check: &Check<'_>| self.behind_waiters(check.policy.number(), check.key, check.ask, now);
        let behind: Vec<Option<Decision>> = checks.iter().map(behind).collect();
        let free = checks.iter().zip(&behind).filter(|(_, behind)| behind.is_none());
        let free: Vec<Check<'_>> = free.map(|(check, _)| *check).collect();
        if free.is_empty() {
            return S::each_ready(behind.into_iter().flatten().collect());
        }
        S::amid(behind, self.store.check_each(now, &free))
    }
}
