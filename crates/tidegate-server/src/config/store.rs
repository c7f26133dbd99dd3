//! Where state is kept, and within which bounds.

use std::fmt;
use std::num::NonZeroU64;

use tidegate::{MemoryStore, OnFull, PolicySet};

use super::errors::{Problems, Site};
use super::raw::RawConfig;
use super::reader::At;
use super::remote::{AddressRule, SharedStore, shared_store};

/// Where state is kept, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreSettings {
    kind: StoreKind,
    max_keys: Option<u64>,
    on_full: OnFull,
    shared: SharedStore,
}

/// Where state is kept.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StoreKind {
    /// In this process's memory.
    #[default]
    Memory,
    /// In the Redis or Valkey at this address, which may hold a password.
    Shared(String),
}

impl fmt::Debug for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreKind::Memory => "Memory",
            StoreKind::Shared(_) => "Shared",
        })
    }
}

impl StoreSettings {
    /// Where state is kept.
    pub fn kind(&self) -> &StoreKind {
        &self.kind
    }

    /// Settings of the store that several instances share, where state is kept in one.
    pub fn shared(&self) -> &SharedStore {
        &self.shared
    }

    /// The settings that differ from those that a running store was built by, and so wait for the next start: what is
    /// answered during an outage may change while it runs.
    pub(crate) fn waiting(&self, built: &StoreSettings) -> Vec<String> {
        let differ = [
            ("store", self.kind != built.kind),
            ("memory.max_keys", self.max_keys != built.max_keys),
            ("memory.on_full", self.on_full != built.on_full),
        ];
        let differ = differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned());
        differ.chain(self.shared.waiting(&built.shared)).collect()
    }

    /// The same with state kept there.
    #[must_use]
    pub fn with_kind(self, kind: StoreKind) -> Self {
        StoreSettings { kind, ..self }
    }

    /// At most so many keys are held at once; unbounded if `None`, never 0.
    pub fn max_keys(&self) -> Option<u64> {
        self.max_keys
    }

    /// What happens to new keys when there is no room.
    pub fn on_full(&self) -> OnFull {
        self.on_full
    }

    /// The same with at most so many keys.
    #[must_use]
    pub fn with_max_keys(self, keys: NonZeroU64) -> Self {
        StoreSettings { max_keys: Some(keys.get()), ..self }
    }

    /// The same with this for new keys when there is no room.
    #[must_use]
    pub fn with_on_full(self, on_full: OnFull) -> Self {
        StoreSettings { on_full, ..self }
    }

    /// An empty store in memory, of these bounds; it holds as many more keys of `CL.THROTTLE`, and as many whose
    /// limits Envoy brings along.
    pub fn memory_store(&self) -> MemoryStore {
        let builder = MemoryStore::builder().on_full(self.on_full);
        match self.max_keys {
            Some(keys) => builder.max_keys(usize::try_from(keys).unwrap_or(usize::MAX)).build(),
            None => builder.build(),
        }
    }
}

/// Looks at the store's address. It may hold a password and is not shown.
pub(super) fn judge(store: &At<StoreKind>, addresses: AddressRule, problems: &mut Problems) {
    let StoreKind::Shared(address) = &store.value else { return };
    if let Err(fault) = addresses(address) {
        problems.add(&Site { written: None, ..store.site.clone() }, fault);
    }
}

/// The settings in a file.
pub(super) fn store_settings(
    raw: &RawConfig,
    policies: Option<&PolicySet>,
    problems: &mut Problems,
) -> StoreSettings {
    let memory = raw.memory.as_ref();
    let shared = match (&raw.policies, policies) {
        (Some(named), Some(policies)) => shared_store(raw.redis.as_ref(), named, policies, problems),
        _ => SharedStore::default(),
    };
    StoreSettings {
        shared,
        kind: raw.store.given().map(|kind| kind.value.clone()).unwrap_or_default(),
        max_keys: memory.and_then(|memory| memory.max_keys.value()).map(|keys| keys.0),
        on_full: memory.and_then(|memory| memory.on_full.value()).unwrap_or_default(),
    }
}
