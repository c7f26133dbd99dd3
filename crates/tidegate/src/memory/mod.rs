//! The store in this process's memory: exact under concurrency, bounded, nothing kept of keys that are as new.

mod cells;
mod logs;
mod shard;
mod table;

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use siphasher::sip128::{Hasher128, SipHasher13};
use tidegate_core::{Decision, KeyState, Penalty, Plan, Timestamp};

use crate::active::{ActivePolicy, PlanId, PolicyNumber};
use crate::store::{Adjustment, Ask, Check, Decisions, Snapshot, Store, StoreError};
use cells::SlotCells;
use shard::{Bounds, Counts, NoRoom, Shard};
use table::Fingerprint;

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

/// How long a state is kept after it is as new, so that stamps this late lose nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spare(u64);

impl Spare {
    fn micros(self) -> u128 {
        u128::from(self.0)
    }
}

/// Keeps the state of keys in this process.
///
/// Shards of open-addressing tables hold 128-bit keyed fingerprints with the state inline: a bucket of ordinary
/// figures takes 32 bytes, a key is never stored, a known key is decided without allocation. Keys never seen cost
/// nothing, and states that are as new again vanish as tables are walked, a few slots on each insert.
///
/// ```
/// use tidegate::{Limit, Limiter, MemoryStore, OnFull, Policy, Rate};
/// let store = MemoryStore::builder().max_keys(100_000).on_full(OnFull::RefuseNew).build();
/// let api = Policy::single("api", Limit::token_bucket(100, Rate::per_second(10)))?;
/// let limiter = Limiter::builder(api).store(store).build();
/// limiter.policy("api")?.check("user:42", 1);
/// assert_eq!(limiter.store().keys(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    shards: Box<[Padded]>,
    secret: (u64, u64),
    bounds: Bounds,
    current: ArcSwap<HashMap<PolicyNumber, Arc<ActivePolicy>>>,
}

/// A shard on cache lines of its own, so that two threads in two shards do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// How many keys are held and what became of others; see [`MemoryStore::stats`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Keys held now.
    pub keys: u64,
    /// Bytes of heap they take.
    pub bytes: u64,
    /// Keys dropped early because there was no room, since the start.
    pub shed: u64,
    /// New keys refused because there was no room, since the start.
    pub refused: u64,
    /// Keys dropped because they were as new, since the start.
    pub vanished: u64,
}

/// Settings of a [`MemoryStore`].
#[derive(Debug, Clone)]
pub struct MemoryStoreBuilder {
    shards: usize,
    max_keys: Option<usize>,
    on_full: OnFull,
    spare: Duration,
    secret: Option<(u64, u64)>,
}

/// Keys a shard should hold at least before a bounded store is cut into more shards: the bound is kept for
/// each shard, and shards this large fill evenly.
const LEAST_KEYS_A_SHARD: usize = 4_096;

impl MemoryStoreBuilder {
    /// The number of shards, rounded up to a power of two; 64 unless said otherwise. More let more threads
    /// decide at once.
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards.clamp(1, 1 << 16).next_power_of_two();
        self
    }

    /// At most so many keys are held at once; unbounded unless said. Each shard holds its equal part of them, so
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
        self.secret = Some(((secret >> 64) as u64, secret as u64));
        self
    }

    /// Builds the store. Nothing is allocated for keys yet.
    ///
    /// # Panics
    /// If the operating system has no randomness to draw the secret from.
    pub fn build(self) -> MemoryStore {
        let shards = match self.max_keys {
            Some(keys) => (keys / LEAST_KEYS_A_SHARD + 1).next_power_of_two() / 2,
            None => self.shards,
        };
        let shards = shards.clamp(1, self.shards);
        let most = self.max_keys.map_or(usize::MAX, |keys| keys / shards);
        let spare = Spare(u64::try_from(self.spare.as_micros()).unwrap_or(u64::MAX));
        MemoryStore {
            shards: std::iter::repeat_with(Padded::default).take(shards).collect(),
            secret: self.secret.unwrap_or_else(draw_secret),
            bounds: Bounds { most, on_full: self.on_full, spare },
            current: ArcSwap::default(),
        }
    }
}

fn draw_secret() -> (u64, u64) {
    let draw = || getrandom::u64().expect("the operating system has randomness to draw from");
    (draw(), draw())
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::builder().build()
    }
}

impl MemoryStore {
    /// Settings to build a store from.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            shards: 64,
            max_keys: None,
            on_full: OnFull::default(),
            spare: Duration::from_secs(1),
            secret: None,
        }
    }

    /// Keys held now.
    pub fn keys(&self) -> u64 {
        self.stats().keys
    }

    /// Keys and bytes held, and what became of keys that did not fit. Looks at every shard in turn.
    pub fn stats(&self) -> MemoryStats {
        let mut stats = MemoryStats::default();
        for shard in &self.shards {
            let shard = lock(shard);
            let Counts { shed, refused, vanished } = shard.counts();
            stats.keys += shard.len() as u64;
            stats.bytes += shard.bytes() as u64;
            stats.shed += shed;
            stats.refused += refused;
            stats.vanished += vanished;
        }
        stats.bytes += size_of_val(&*self.shards) as u64;
        stats
    }

    /// Who a key of a policy is: 128 bits of a hash keyed with a secret, so that nobody outside can make two
    /// keys share a state.
    #[inline]
    fn print(&self, policy: &ActivePolicy, key: &[u8]) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        // The number has a fixed width, so no two pairs of policy and key are the same bytes.
        hasher.write_u64(policy.number().get());
        hasher.write(key);
        let hash = hasher.finish128();
        Fingerprint::new(hash.h1, hash.h2)
    }

    #[inline]
    fn shard(&self, print: Fingerprint) -> MutexGuard<'_, Shard> {
        // A power of two of them; the table places by the other half of the hash.
        lock(&self.shards[print.lo() as usize & (self.shards.len() - 1)])
    }

    /// Runs `apply` on a key's state under its shard's lock.
    #[inline]
    fn with<R>(
        &self,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        now: Timestamp,
        apply: impl FnOnce(&Plan, &mut SlotCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let print = self.print(policy, key);
        let mut shard = self.shard(print);
        // Seen under the lock that a reload's sweep takes too, so no state is left under a version that the
        // sweep has let go.
        if policy.is_superseded()
            && let Some(current) = self.current.load().get(&policy.number())
        {
            return shard.with(current, (key, print), now, &self.bounds, apply);
        }
        shard.with(policy, (key, print), now, &self.bounds, apply)
    }

    #[inline]
    fn decide(&self, now: Timestamp, check: &Check<'_>) -> Decision {
        let decided = self.with(check.policy, check.key, now, |plan, cells, now| match check.ask {
            Ask::Exactly(cost) => plan.check(cells, now, cost),
            Ask::UpTo(max) => plan.check_up_to(cells, now, max),
        });
        decided.unwrap_or_else(|NoRoom| {
            let (_, plan) = check.policy.plan_for(check.key);
            Decision::overloaded(plan.limits()[0].capacity())
        })
    }
}

fn lock(shard: &Padded) -> MutexGuard<'_, Shard> {
    // Nothing in a shard's critical sections can panic half way; if it did, the states are still each whole.
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    type Answer<T: Send + 'static> = T;

    fn install(&self, policies: &[Arc<ActivePolicy>]) {
        let current = policies.iter().map(|policy| (policy.number(), Arc::clone(policy))).collect();
        self.current.store(Arc::new(current));
    }

    fn sweep(&self, now: Timestamp) -> BTreeSet<PlanId> {
        let current = self.current.load_full();
        let mut living = BTreeSet::new();
        for policy in current.values() {
            let mut version = Some(Arc::clone(policy));
            while let Some(policy) = version {
                living.extend(policy.ids());
                version = policy.replaced();
            }
        }
        let gone = |version: &ActivePolicy| !living.contains(&version.ids().start);
        let mut used = BTreeSet::new();
        for shard in &self.shards {
            used.extend(lock(shard).sweep(now, self.bounds.spare, gone));
        }
        used
    }

    #[inline]
    fn check(&self, now: Timestamp, checks: &[Check<'_>]) -> Decisions {
        match checks {
            [check] => Decisions::One(self.decide(now, check)),
            _ => Decisions::Many(checks.iter().map(|check| self.decide(now, check)).collect()),
        }
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Penalty {
        let adjusted = self.with(policy, key, now, |plan, cells, now| match adjustment {
            Adjustment::Credit(units) => Some(plan.credit(cells, now, units)),
            Adjustment::Penalize(units) => Some(plan.penalize(cells, now, units)),
            Adjustment::Reset => None,
        });
        match adjusted {
            Ok(Some(penalty)) => penalty,
            Ok(None) => {
                let print = self.print(policy, key);
                self.shard(print).remove(print);
                let (_, plan) = policy.plan_for(key);
                Penalty::nothing(plan.peek(&KeyState::new(plan), now))
            }
            Err(NoRoom) => {
                let (_, plan) = policy.plan_for(key);
                Penalty::nothing(Decision::overloaded(plan.limits()[0].capacity()))
            }
        }
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Snapshot {
        let copied = self.with(policy, key, now, |plan, cells, _| Snapshot {
            plan: plan.clone(),
            state: KeyState::copy_of(plan, cells),
        });
        copied.unwrap_or_else(|NoRoom| {
            let (_, plan) = policy.plan_for(key);
            Snapshot { plan: plan.clone(), state: KeyState::new(plan) }
        })
    }

    fn map<T, U>(answer: T, go_on: impl FnOnce(T) -> U + Send + 'static) -> U
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        go_on(answer)
    }

    fn settled<T: Send + 'static>(answer: T) -> impl Future<Output = Result<T, StoreError>> + Send {
        std::future::ready(Ok(answer))
    }
}
