//! The handle on one policy: every verb a caller has.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Cost, Decision, Penalty, Timestamp, Units, Wait};

use crate::active::{ActivePolicy, Place};
use crate::clock::Clock;
use crate::limiter::Shared;
use crate::memory::MemoryStore;
use crate::policy::Policy;
use crate::store::{Adjustment, Ask, Check, Store};
use crate::wait::Acquire;

/// The handle on one policy of a [`Limiter`](crate::Limiter). Cheap to clone; it follows reloads.
///
/// With a store in memory each verb answers in a plain call. With a store that does I/O each returns a future
/// of `Result<_, StoreError>`.
pub struct PolicyHandle<S: Store = MemoryStore> {
    pub(crate) shared: Arc<Shared<S>>,
    pub(crate) place: Place,
    /// The version in force when the handle was made: mostly it still is, and is at hand.
    pub(crate) version: Arc<ActivePolicy>,
}

impl<S: Store> PolicyHandle<S> {
    pub(crate) fn new(shared: Arc<Shared<S>>, place: Place) -> Self {
        let version = place.load_full();
        PolicyHandle { shared, place, version }
    }

    /// The policy in the version now in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(self.place.load().policy())
    }

    /// The version of the policy now in force: for those who ask a store itself.
    pub fn in_force(&self) -> Arc<ActivePolicy> {
        self.place.load_full()
    }

    /// Whether the policy is in the version that was in force when the handle was made; once it is not, it never is
    /// again.
    #[inline]
    pub fn is_current(&self) -> bool {
        !self.version.is_superseded()
    }

    /// The clock its limiter runs on.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Decides whether `key` may have `cost` now, and charges it if so. Cost 0 is a peek.
    ///
    /// `cost` is a `u32` or a [`Cost`], which goes up to 10^12.
    #[inline]
    pub fn check(&self, key: impl AsRef<[u8]>, cost: impl Into<Cost>) -> S::Answer<Decision> {
        self.check_at(key, cost, self.shared.clock.now())
    }

    /// As [`check`](Self::check), at an instant of the caller's. A stamp older than the key's last charge
    /// counts as that charge's.
    #[inline]
    pub fn check_at(
        &self,
        key: impl AsRef<[u8]>,
        cost: impl Into<Cost>,
        now: Timestamp,
    ) -> S::Answer<Decision> {
        self.ask(key.as_ref(), Ask::Exactly(cost.into()), now)
    }

    /// Takes as much as there is, at most `max`: [`Decision::charged`] says how much. Refused if there is
    /// nothing at all.
    pub fn check_up_to(&self, key: impl AsRef<[u8]>, max: impl Into<Cost>) -> S::Answer<Decision> {
        self.check_up_to_at(key, max, self.shared.clock.now())
    }

    /// As [`check_up_to`](Self::check_up_to), at an instant of the caller's.
    pub fn check_up_to_at(
        &self,
        key: impl AsRef<[u8]>,
        max: impl Into<Cost>,
        now: Timestamp,
    ) -> S::Answer<Decision> {
        self.ask(key.as_ref(), Ask::UpTo(max.into()), now)
    }

    /// How the key stands, changing nothing. Refused if it is in debt.
    pub fn peek(&self, key: impl AsRef<[u8]>) -> S::Answer<Decision> {
        self.peek_at(key, self.shared.clock.now())
    }

    /// As [`peek`](Self::peek), at an instant of the caller's.
    pub fn peek_at(&self, key: impl AsRef<[u8]>, now: Timestamp) -> S::Answer<Decision> {
        self.check_at(key, Cost::PEEK, now)
    }

    /// Gives units back, to no more than a full bucket or an empty window. Returns how the key then stands.
    pub fn credit(&self, key: impl AsRef<[u8]>, units: impl Into<Units>) -> S::Answer<Decision> {
        self.credit_at(key, units, self.shared.clock.now())
    }

    /// As [`credit`](Self::credit), at an instant of the caller's.
    pub fn credit_at(
        &self,
        key: impl AsRef<[u8]>,
        units: impl Into<Units>,
        now: Timestamp,
    ) -> S::Answer<Decision> {
        S::map(self.adjust(key.as_ref(), Adjustment::Credit(units.into()), now), |done| done.after)
    }

    /// Charges units whether they fit or not, into debt if need be. Says how the key then stands, and what of
    /// the charge was cut because it went past the debt a limit allows.
    pub fn penalize(&self, key: impl AsRef<[u8]>, units: impl Into<Units>) -> S::Answer<Penalty> {
        self.penalize_at(key, units, self.shared.clock.now())
    }

    /// As [`penalize`](Self::penalize), at an instant of the caller's.
    pub fn penalize_at(
        &self,
        key: impl AsRef<[u8]>,
        units: impl Into<Units>,
        now: Timestamp,
    ) -> S::Answer<Penalty> {
        self.adjust(key.as_ref(), Adjustment::Penalize(units.into()), now)
    }

    /// Forgets the key: its buckets are full and its windows empty again. Returns how it then stands.
    pub fn reset(&self, key: impl AsRef<[u8]>) -> S::Answer<Decision> {
        S::map(self.adjust(key.as_ref(), Adjustment::Reset, self.shared.clock.now()), |done| done.after)
    }

    /// Waits until `key` may have `cost`, and charges it once. Resolves when the work may leave: at once, but for
    /// a leaky bucket, whose [`delay`](Decision::delay) is part of the waiting.
    ///
    /// First come, first served: while anybody waits for a key, plain checks of it are refused, with a
    /// [`retry_after`](Decision::retry_after) that counts those ahead. The place in line is taken when the future is
    /// first polled, and given up when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::clock::ManualClock;
    /// use tidegate::{Limit, Limiter, Policy, Rate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::default();
    /// let policy = Policy::single("api", Limit::token_bucket(1, Rate::per_second(1)))?;
    /// let limiter = Limiter::builder(policy).clock(clock.clone()).build();
    /// let api = limiter.policy("api")?;
    /// api.acquire("user:42", 1).await?; // there is one
    ///
    /// let second = tokio::spawn(api.acquire("user:42", 1));
    /// tokio::task::yield_now().await; // now it waits
    /// assert_eq!(api.check("user:42", 1).retry_after().unwrap().as_secs_ceil(), 2);
    ///
    /// clock.advance(Duration::from_secs(1));
    /// assert!(second.await??.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`AcquireError`](crate::AcquireError). What can never be admitted is told at once.
    pub fn acquire(&self, key: impl AsRef<[u8]>, cost: impl Into<Cost>) -> Acquire<S> {
        self.acquire_until(key, cost, Timestamp::MAX)
    }

    /// As [`acquire`](Self::acquire), for at most `timeout` from now. If that is too short, those ahead counted, it
    /// is told at once and charged nothing. [`Duration::MAX`] is for ever.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::clock::ManualClock;
    /// use tidegate::{AcquireError, Limit, Limiter, Policy, Rate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Policy::single("api", Limit::token_bucket(1, Rate::per_second(1)))?;
    /// let limiter = Limiter::builder(policy).clock(ManualClock::default()).build();
    /// let api = limiter.policy("api")?;
    /// api.acquire("user:42", 1).await?;
    /// match api.acquire_within("user:42", 1, Duration::from_millis(999)).await {
    ///     Err(AcquireError::TooLate { needs }) => assert_eq!(needs.as_micros(), 1_000_000),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`AcquireError`](crate::AcquireError).
    pub fn acquire_within(
        &self,
        key: impl AsRef<[u8]>,
        cost: impl Into<Cost>,
        timeout: Duration,
    ) -> Acquire<S> {
        // Rounded down: not a part of a microsecond more than was allowed.
        let timeout = Wait::from_micros(timeout.as_micros());
        self.acquire_until(key, cost, self.shared.clock.now().saturating_add(timeout))
    }

    /// As [`acquire`](Self::acquire), for at most until `deadline` by the limiter's clock.
    ///
    /// # Errors
    /// See [`AcquireError`](crate::AcquireError).
    pub fn acquire_until(
        &self,
        key: impl AsRef<[u8]>,
        cost: impl Into<Cost>,
        deadline: Timestamp,
    ) -> Acquire<S> {
        let (shared, place) = (Arc::clone(&self.shared), Arc::clone(&self.place));
        Acquire::new(shared, place, key.as_ref(), cost.into(), deadline)
    }

    #[inline]
    fn ask(&self, key: &[u8], ask: Ask, now: Timestamp) -> S::Answer<Decision> {
        if !self.shared.waiting.is_idle()
            && let Some(refused) = self.shared.behind_waiters(self.version.number(), key, ask, now)
        {
            return S::ready(refused);
        }
        if self.version.is_superseded() {
            let policy = &self.place.load();
            return self.shared.store.check_one(now, Check { policy, key, ask });
        }
        self.shared.store.check_one(now, Check { policy: &self.version, key, ask })
    }

    fn adjust(&self, key: &[u8], adjustment: Adjustment, now: Timestamp) -> S::Answer<Penalty> {
        let policy = self.place.load();
        let adjusted = self.shared.store.adjust(now, &policy, key, adjustment);
        // Whoever joins a line from here on finds the key adjusted, so the line is looked for afterwards.
        let (shared, number, key) = (Arc::clone(&self.shared), policy.number(), Box::<[u8]>::from(key));
        S::map(adjusted, move |done| {
            shared.disturb(number, &key);
            done
        })
    }
}

impl<S: Store> Clone for PolicyHandle<S> {
    fn clone(&self) -> Self {
        PolicyHandle::new(Arc::clone(&self.shared), Arc::clone(&self.place))
    }
}

impl<S: Store> fmt::Debug for PolicyHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyHandle").field("policy", &self.policy().name()).finish_non_exhaustive()
    }
}
