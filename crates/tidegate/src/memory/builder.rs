//! Settings of a memory store.

use std::time::Duration;

use super::print::Secret;
use super::shard::Bounds;
use super::vanish::Spare;
use super::{MemoryStore, Padded};
use crate::adhoc::AdHocStore;
use crate::adhoc::space::Spaces;

/// What happens to a key not seen before when as many keys are held as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFull {
    /// Of a few keys sampled the one soonest as new is dropped. A flood of new keys can so free a drained
    /// client early; each drop is counted.
    #[default]
    Shed,
    /// The new key is answered [`Outcome::Overloaded`](crate::Outcome::Overloaded). Every drained key stays
    /// drained, whatever the flood.
    RefuseNew,
}

/// Settings of a [`MemoryStore`].
#[derive(Debug, Clone)]
pub struct MemoryStoreBuilder {
    shards: usize,
    max_keys: Option<usize>,
    on_full: OnFull,
    spare: Duration,
    secret: Option<Secret>,
}

/// Keys a shard should hold at least before a bounded store is cut into more shards: the bound is kept for
/// each shard, and shards this large fill evenly.
const LEAST_KEYS_A_SHARD: usize = 4_096;

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        MemoryStoreBuilder {
            shards: 64,
            max_keys: None,
            on_full: OnFull::default(),
            spare: Duration::from_secs(1),
            secret: None,
        }
    }
}

impl MemoryStoreBuilder {
    /// The number of shards, rounded up to a power of two; 64 unless said otherwise. More let more threads
    /// decide at once.
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards.clamp(1, 1 << 16).next_power_of_two();
        self
    }

    /// At most so many keys are held at once, and as many of each space of
    /// [ad hoc keys](MemoryStore::ad_hoc); unbounded unless said. Each shard holds its equal part of them, so
    /// a store of many shards may turn keys away when it is a little less than full; there are so few shards
    /// that each has room for 4096 keys, and a store of fewer than 8192 is one shard and full at exactly this.
    #[must_use]
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = Some(keys);
        self
    }

    /// What happens to new keys when there is no room.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// How long a state is kept after it is as new: one second unless said otherwise. Stamps no later than this
    /// lose nothing; a replay in virtual time keeps states for ever.
    #[must_use]
    pub fn spare(mut self, spare: Duration) -> Self {
        self.spare = spare;
        self
    }

    /// Places keys by this secret instead of one drawn at random. For tests that must repeat: whoever knows the
    /// secret can make keys collide.
    #[must_use]
    pub fn secret(mut self, secret: u128) -> Self {
        self.secret = Some(Secret { first: (secret >> 64) as u64, second: secret as u64 });
        self
    }

    /// Builds the store. Nothing is allocated for keys yet.
    ///
    /// # Panics
    /// If the operating system has no randomness to draw the secret from.
    pub fn build(self) -> MemoryStore {
        let shards = match self.max_keys {
            // Rounded down to a power of two.
            Some(keys) => (keys / LEAST_KEYS_A_SHARD + 1).next_power_of_two() / 2,
            None => self.shards,
        };
        let shards = shards.clamp(1, self.shards);
        let most = self.max_keys.map_or(usize::MAX, |keys| keys / shards);
        let ad_hoc = AdHocStore::builder().on_full(self.on_full);
        let ad_hoc = match self.max_keys {
            Some(keys) => ad_hoc.max_keys(keys),
            None => ad_hoc,
        };
        MemoryStore {
            ad_hoc: Spaces::new(ad_hoc),
            shards: std::iter::repeat_with(Padded::default).take(shards).collect(),
            secret: self.secret.unwrap_or_else(Secret::drawn),
            bounds: Bounds { most, on_full: self.on_full, spare: Spare::from(self.spare) },
        }
    }
}
