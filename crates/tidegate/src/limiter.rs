//! The limiter: policies over a store and a clock, by name, swapped whole.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use tidegate_core::Timestamp;

use crate::active::Place;
use crate::clock::{Clock, SystemClock};
use crate::handle::PolicyHandle;
use crate::memory::MemoryStore;
use crate::policy::PolicySet;
use crate::reload::Registry;
use crate::store::Store;
use crate::wait::Waiting;

/// Decides checks under named policies. Cheap to clone; all clones share everything.
///
/// ```
/// use tidegate::{Limit, Limiter, Policy, Rate};
/// let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(2, Rate::per_second(1)))?);
/// let api = limiter.policy("api")?;
/// assert!(api.check("user:42", 2).is_allowed());
/// let refused = api.check("user:42", 1);
/// assert!(!refused.is_allowed());
/// assert_eq!(refused.retry_after().unwrap().as_secs_ceil(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Limiter<S: Store = MemoryStore> {
    pub(crate) shared: Arc<Shared<S>>,
}

pub(crate) struct Shared<S: Store> {
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) waiting: Waiting,
    pub(crate) directory: ArcSwap<Directory>,
    pub(crate) registry: Mutex<Registry>,
}

/// The policies in force, and for each the place that its handles look at.
#[derive(Default)]
pub(crate) struct Directory {
    pub(crate) set: Arc<PolicySet>,
    pub(crate) places: HashMap<Arc<str>, Place>,
}

/// There is no policy of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no policy is named {name:?} (there are: {known})")]
pub struct UnknownPolicy {
    /// The name asked for.
    pub name: String,
    /// The names there are, comma separated.
    pub known: String,
}

/// A limiter being put together; see [`Limiter::builder`].
pub struct LimiterBuilder<S: Store = MemoryStore> {
    policies: PolicySet,
    store: S,
    /// The system's, if none is given.
    clock: Option<Arc<dyn Clock>>,
    max_waiters_per_key: usize,
}

impl Limiter {
    /// A limiter that keeps its state in memory and runs on the system's clock.
    pub fn new(policies: impl Into<PolicySet>) -> Self {
        Self::builder(policies).build()
    }

    /// Starts a limiter; it keeps its state in memory and runs on the system's clock unless told otherwise.
    pub fn builder(policies: impl Into<PolicySet>) -> LimiterBuilder {
        LimiterBuilder {
            policies: policies.into(),
            store: MemoryStore::default(),
            clock: None,
            max_waiters_per_key: Waiting::MOST,
        }
    }
}

impl<S: Store> LimiterBuilder<S> {
    /// Keeps the state in `store`.
    #[must_use]
    pub fn store<T: Store>(self, store: T) -> LimiterBuilder<T> {
        let LimiterBuilder { policies, clock, max_waiters_per_key, .. } = self;
        LimiterBuilder { policies, store, clock, max_waiters_per_key }
    }

    /// Runs on `clock`.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// At most so many wait for one key of one policy at a time, by [`acquire`](PolicyHandle::acquire) and its
    /// like; others are turned away with [`QueueFull`](crate::AcquireError::QueueFull). 1024 unless said
    /// otherwise; at least 1.
    #[must_use]
    pub fn max_waiters_per_key(mut self, most: usize) -> Self {
        self.max_waiters_per_key = most;
        self
    }

    /// Builds the limiter.
    ///
    /// # Panics
    /// If the policies have more than four million different sets of figures between them; [`Limiter::reload`]
    /// refuses that as an error.
    pub fn build(self) -> Limiter<S> {
        let shared = Shared {
            store: self.store,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            waiting: Waiting::new(self.max_waiters_per_key),
            directory: ArcSwap::default(),
            registry: Mutex::default(),
        };
        let limiter = Limiter { shared: Arc::new(shared) };
        limiter.reload(self.policies).expect("fewer than four million sets of figures");
        limiter
    }
}

impl<S: Store> Limiter<S> {
    /// The handle on a policy. It follows reloads; keep it rather than looking it up for each check.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn policy(&self, name: &str) -> Result<PolicyHandle<S>, UnknownPolicy> {
        let directory = self.shared.directory.load();
        match directory.places.get(name) {
            Some(place) => Ok(PolicyHandle::new(Arc::clone(&self.shared), Arc::clone(place))),
            None => {
                let known: Vec<&str> = directory.set.iter().map(|policy| policy.name()).collect();
                Err(UnknownPolicy { name: name.to_owned(), known: known.join(", ") })
            }
        }
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<PolicySet> {
        Arc::clone(&self.shared.directory.load().set)
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// The time by the limiter's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The limiter's clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }
}

impl<S: Store> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Limiter { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Store> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("policies", &self.policies()).finish_non_exhaustive()
    }
}
