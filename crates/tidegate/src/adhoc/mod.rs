//! Limits whose figures come with each check, for wires that name no policy.
//!
//! `CL.THROTTLE key max_burst count period` is such a wire: the figures are the caller's, any number of them,
//! so nothing is interned for them. Each key's entry holds the figures it was written under beside its state.

mod ask;
mod entry;
pub(crate) mod group;
mod limit;
mod shard;
pub(crate) mod space;
#[cfg(test)]
mod tests;

use std::hash::Hasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use siphasher::sip128::{Hasher128, SipHasher13};
use tidegate_core::{Cost, Decision, Plan, Timestamp, Units};

pub use ask::{AdHoc, AdHocCheck, Together};
pub use limit::AdHocLimit;
pub use space::AdHocSpace;

use crate::memory::{MemoryStats, OnFull, table::Fingerprint};
use entry::EntryCells;
use shard::{Bounds, NoRoom, Shard, Touch};

/// Keeps the state of keys whose figures come with each check, in this process's memory.
///
/// Like [`MemoryStore`](crate::MemoryStore) it holds keyed fingerprints instead of keys, decides a known key
/// without allocation, lets go what is as new, and is bounded by `max_keys`. A key takes 56 bytes and the room
/// its table keeps free.
///
/// A key that comes with other figures than before is carried over by the first check with a cost above 0, admitted or
/// not. What is left of it is kept, cut to the new capacity, and a key that is full stays full; so figures with a smaller
/// capacity in between may make one full that was not. The time since its last charge counts at the slower of both
/// rates, for nobody knows when the figures changed.
///
/// ```
/// use tidegate::{AdHocLimit, AdHocStore, Cost, Rate, Timestamp};
/// let store = AdHocStore::builder().max_keys(100_000).build();
/// let limit = AdHocLimit::gcra(Rate::per_minute(30), 16);
/// let now = Timestamp::from_micros(1_700_000_000_000_000)?;
/// assert_eq!(store.check(now, b"user:42", &limit, Cost::new(15)?).remaining(), 1);
/// let refused = store.check(now, b"user:42", &limit, Cost::new(2)?);
/// assert_eq!(refused.retry_after().unwrap().as_secs_ceil(), 2);
/// # Ok::<(), tidegate::QuantityError>(())
/// ```
#[derive(Debug)]
pub struct AdHocStore {
    shards: Box<[Padded]>,
    secret: (u64, u64),
    bounds: Bounds,
}

/// A shard on cache lines of its own, so that two threads in two shards do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// Settings of an [`AdHocStore`].
#[derive(Debug, Clone)]
pub struct AdHocStoreBuilder {
    max_keys: Option<usize>,
    on_full: OnFull,
}

/// Shards of a store without bounds.
const SHARDS: usize = 64;
/// Keys a shard should hold at least before a bounded store is cut into more shards: the bound is kept for
/// each shard, and shards this large fill evenly.
const LEAST_KEYS_A_SHARD: usize = 4_096;

impl AdHocStoreBuilder {
    /// At most so many keys are held at once; unbounded unless said. Each shard holds its equal part of them, so
    /// a store of 8192 keys or more may turn keys away when it is a little less than full.
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

    /// Builds the store. Nothing is allocated for keys yet.
    ///
    /// # Panics
    /// If the operating system has no randomness to draw from.
    pub fn build(self) -> AdHocStore {
        let shards = match self.max_keys {
            Some(keys) => ((keys / LEAST_KEYS_A_SHARD + 1).next_power_of_two() / 2).clamp(1, SHARDS),
            None => SHARDS,
        };
        let draw = || getrandom::u64().expect("the operating system has randomness to draw from");
        AdHocStore {
            shards: std::iter::repeat_with(Padded::default).take(shards).collect(),
            secret: (draw(), draw()),
            bounds: Bounds {
                most: self.max_keys.map_or(usize::MAX, |keys| keys / shards),
                on_full: self.on_full,
            },
        }
    }
}

impl Default for AdHocStore {
    fn default() -> Self {
        AdHocStore::builder().build()
    }
}

impl AdHocStore {
    /// Settings to build a store from.
    pub fn builder() -> AdHocStoreBuilder {
        AdHocStoreBuilder { max_keys: None, on_full: OnFull::default() }
    }

    /// Decides whether `key` may have `cost` under `limit` at `now`, and charges it if so. Cost 0 is a peek.
    #[inline]
    pub fn check(&self, now: Timestamp, key: &[u8], limit: &AdHocLimit, cost: Cost) -> Decision {
        let touch = if cost.is_peek() { Touch::Look } else { Touch::Change };
        self.with(now, key, limit, touch, |plan, cells, now| plan.check(cells, now, cost))
    }

    /// Gives units back, to no more than a full bucket. Returns how the key then stands.
    pub fn credit(&self, now: Timestamp, key: &[u8], limit: &AdHocLimit, units: Units) -> Decision {
        let touch = if units == Units::ZERO { Touch::Look } else { Touch::Change };
        self.with(now, key, limit, touch, |plan, cells, now| plan.credit(cells, now, units).after)
    }

    /// Forgets the key. Whether it was held.
    pub fn remove(&self, key: &[u8]) -> bool {
        let print = self.print(key);
        self.shard(print).remove(print)
    }

    /// Keys held now.
    pub fn keys(&self) -> u64 {
        self.shards.iter().map(|shard| lock(shard).len() as u64).sum()
    }

    /// Keys and bytes held, and what became of keys that did not fit. Looks at every shard in turn.
    pub fn stats(&self) -> MemoryStats {
        let mut stats = MemoryStats { bytes: size_of_val(&*self.shards) as u64, ..MemoryStats::default() };
        self.shards.iter().for_each(|shard| lock(shard).add_to(&mut stats));
        stats
    }

    #[inline]
    fn with(
        &self,
        now: Timestamp,
        key: &[u8],
        limit: &AdHocLimit,
        touch: Touch,
        apply: impl FnOnce(&Plan, &mut EntryCells<'_>, Timestamp) -> Decision,
    ) -> Decision {
        let print = self.print(key);
        let decided = self.shard(print).with(limit, print, now, touch, &self.bounds, apply);
        decided.unwrap_or_else(|NoRoom| Decision::overloaded(limit.limit().capacity()))
    }

    /// Who a key is: 128 bits of a hash keyed with a secret, so that nobody outside can make two keys share a state.
    #[inline]
    fn print(&self, key: &[u8]) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(key);
        let hash = hasher.finish128();
        Fingerprint::new(hash.h1, hash.h2)
    }

    #[inline]
    fn shard(&self, print: Fingerprint) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.shard_index(print)])
    }

    #[inline]
    fn shard_index(&self, print: Fingerprint) -> usize {
        // A power of two of them; the table places by the other half of the hash.
        print.lo() as usize & (self.shards.len() - 1)
    }
}

fn lock(shard: &Padded) -> MutexGuard<'_, Shard> {
    // Nothing in a shard's critical sections can panic half way; if it did, the entries are still each whole.
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}
