//! Opening a store.

use std::collections::HashMap;
use std::time::Duration;

use tidegate::store::{StoreError, StoreErrorKind};
use tokio::runtime::Handle;

use crate::address::{Address, AddressError};
use crate::engine::{Engine, OnDamaged};
use crate::fallback::{Fallback, OnStoreError, Replica};
use crate::gather::Gather;
use crate::link::discipline::Discipline;
use crate::link::{Link, Options};
use crate::names::Names;
use crate::script::Lives;
use crate::store::RedisStore;

/// Settings to open a store from; see [`RedisStore::builder`].
#[derive(Debug, Clone)]
pub struct RedisStoreBuilder {
    address: String,
    prefix: String,
    partition: Option<String>,
    spare: Duration,
    unending: Option<Duration>,
    timeout: Duration,
    connect_timeout: Duration,
    on_damaged: OnDamaged,
    on_error: OnStoreError,
    on_error_of: HashMap<String, OnStoreError>,
    replica: Replica,
    classic: HashMap<String, String>,
}

impl RedisStore {
    /// Settings to open the store at `address` from.
    pub fn builder(address: impl Into<String>) -> RedisStoreBuilder {
        RedisStoreBuilder {
            address: address.into(),
            prefix: "tg1".to_owned(),
            partition: None,
            spare: Duration::from_secs(1),
            unending: None,
            timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(5),
            on_damaged: OnDamaged::Refuse,
            on_error: OnStoreError::default(),
            on_error_of: HashMap::new(),
            replica: Replica::ONLY,
            classic: HashMap::new(),
        }
    }
}

impl RedisStoreBuilder {
    /// Puts all keys under `prefix` (`tg1` unless said otherwise): stores under different prefixes share nothing.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Puts all keys of this store into one slot of a cluster, named so: checks of several keys can then be decided as
    /// one there, on one of its masters. Elsewhere that needs no partition.
    #[must_use]
    pub fn partition(mut self, name: impl Into<String>) -> Self {
        self.partition = Some(name.into());
        self
    }

    /// Lets records outlive the moment from which their loss changes nothing by this long, in whole milliseconds.
    /// A second unless said otherwise, which is what late stamps need; a run in virtual time, which passes faster
    /// than the server's, wants more.
    #[must_use]
    pub fn spare(mut self, spare: Duration) -> Self {
        self.spare = spare;
        self
    }

    /// Lets records that never become as new (of buckets that do not refill) go `after` so long without a charge, in
    /// whole milliseconds. They stay for ever unless said otherwise, as the meaning of such a limit demands: this is
    /// for state that nobody wants after a run.
    #[must_use]
    pub fn expire_unending(mut self, after: Duration) -> Self {
        self.unending = Some(after);
        self
    }

    /// Waits for an answer no longer than this: 50 ms unless said otherwise.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Gives a connection so long to be ready, encryption and password included: 5 s unless said otherwise.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// What happens to a record that is damaged or not tidegate's: the check fails, unless said otherwise.
    #[must_use]
    pub fn on_damaged(mut self, on_damaged: OnDamaged) -> Self {
        self.on_damaged = on_damaged;
        self
    }

    /// What is answered while the server is not: this instance's share of each limit is enforced, unless said
    /// otherwise here or, for one policy, by [`on_store_error_of`](Self::on_store_error_of).
    #[must_use]
    pub fn on_store_error(mut self, answer: OnStoreError) -> Self {
        self.on_error = answer;
        self
    }

    /// What is answered under the policy of this name while the server does not answer.
    #[must_use]
    pub fn on_store_error_of(mut self, policy: impl Into<String>, answer: OnStoreError) -> Self {
        self.on_error_of.insert(policy.into(), answer);
        self
    }

    /// Which of how many instances this one is, for its share of each limit while the server does not answer: the
    /// only one unless said otherwise, so that each enforces the whole limit.
    #[must_use]
    pub fn replica(mut self, replica: Replica) -> Self {
        self.replica = replica;
        self
    }

    /// Keeps the buckets of a policy as the well-known token-bucket script does: a hash called `key_prefix` and the
    /// client's key, with the fields `tokens` and `last` (seconds since the Unix epoch) in floating point, expiring
    /// when it is full again. A fleet that runs that script already shares its buckets with this store.
    ///
    /// The policy has one token bucket that refills; its answers are as near as floating point allows, and it takes no
    /// part in groups. Give no two policies the same prefix.
    #[must_use]
    pub fn classic(mut self, policy: impl Into<String>, key_prefix: impl Into<String>) -> Self {
        self.classic.insert(policy.into(), key_prefix.into());
        self
    }

    /// Connects, and sees that the server runs what it will be asked to.
    ///
    /// # Errors
    /// The address is none, nobody answers there, or the scripts are refused.
    pub async fn open(self) -> Result<RedisStore, StoreError> {
        let failed = |store: String, reason: String| StoreError::new(StoreErrorKind::Outage, store, reason);
        // The text as given may hold a password.
        let address: Address = self.address.parse().map_err(|error: AddressError| {
            StoreError::new(StoreErrorKind::Unfit, "without an address", error.0)
        })?;
        let options = Options { connect_within: self.connect_timeout, ..Options::default() };
        let link =
            Link::open(&address, &options).await.map_err(|error| failed(error.address, error.reason))?;
        let mut engine = Engine {
            link,
            names: Names::under(&self.prefix, self.partition.as_deref()),
            lives: Lives {
                spare: millis(self.spare),
                unending: self.unending.map(|after| millis(after).max(1)),
            },
            // Whoever starts has time, and a machine that many start on at once is busy.
            timeout: options.connect_within,
            on_damaged: self.on_damaged,
            classic: self.classic,
            gather: Gather::default(),
            runtime: Handle::current(),
        };
        engine.probe(options.connect_within).await.map_err(|reason| failed(address.to_string(), reason))?;
        engine.timeout = self.timeout;
        let discipline = Discipline::start(&engine.link).await;
        let discipline = discipline.map_err(|failure| failed(address.to_string(), failure.to_string()))?;
        let fallback = Fallback::new(self.on_error, self.on_error_of, self.replica);
        Ok(RedisStore::new(engine, fallback, discipline, address.to_string()))
    }
}

/// As the scripts take them: no more than they can add up exactly.
fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX).min(1_000_000_000_000)
}
