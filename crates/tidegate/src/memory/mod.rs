//! The store in this process's memory: exact under concurrency, bounded, nothing kept of keys that are as new.

mod adhoc;
mod batch;
mod builder;
mod cells;
mod group;
mod logs;
pub(crate) mod print;
mod shard;
pub(crate) mod table;
mod vanish;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::{Decision, KeyState, Penalty, Plan, Timestamp};

use crate::active::{ActivePolicy, PlanId};
use crate::adhoc::space::Spaces;
use crate::adhoc::{AdHocSpace, AdHocStore};
use crate::store::{self, Adjustment, Ask, Check, Grouping, Snapshot, Store, StoreError};
pub use builder::{MemoryStoreBuilder, OnFull};
use cells::SlotCells;
use print::Secret;
use shard::{Bounds, Counts, NoRoom, Question, Shard};
use table::Fingerprint;

/// Versions of one policy that may be left with state before it is all carried over to the newest: the way from
/// the oldest to the newest is to stay short, however often policies are reloaded.
const MOST_VERSIONS: usize = 16;

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
    secret: Secret,
    bounds: Bounds,
    ad_hoc: Spaces,
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

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::builder().build()
    }
}

impl MemoryStore {
    /// Settings to build a store from.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }

    /// The keys of a space whose figures come with each check. They have bounds of their own, the same as the
    /// policies' keys.
    pub fn ad_hoc(&self, space: AdHocSpace) -> Arc<AdHocStore> {
        self.ad_hoc.store(space)
    }

    /// Keys of policies held now.
    pub fn keys(&self) -> u64 {
        self.stats().keys
    }

    /// Keys of policies and bytes held for them, and what became of keys that did not fit. Looks at every shard in
    /// turn.
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

    /// Who a key of a policy is.
    #[inline]
    fn print(&self, policy: &ActivePolicy, key: &[u8]) -> Fingerprint {
        self.secret.print(policy.number().get(), key)
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
        let newest = superseding(policy);
        let policy = newest.as_ref().unwrap_or(policy);
        shard.with(Question { policy, key, print, now }, &self.bounds, apply)
    }

    /// Carries what is left of long replaced versions over, so that they can be let go.
    ///
    /// Keys are not kept. Those that have an override of their own in any version are named there; the others are
    /// carried by the plan they are under, unless prefixes changed in between: such states wait for their keys.
    fn carry_old_versions(&self, policy: &Arc<ActivePolicy>, now: Timestamp) {
        let versions: Vec<_> = std::iter::once(Arc::clone(policy)).chain(policy.earlier()).collect();
        if versions.len() <= MOST_VERSIONS {
            return;
        }
        for key in versions.iter().flat_map(|version| version.policy().named_keys()) {
            // Nothing is asked, so there is nothing to refuse.
            let _ = self.with(policy, key, now, |_, _, _| ());
        }
        for shard in &self.shards {
            lock(shard).carry_unnamed(policy, now, self.bounds.spare);
        }
    }

    #[inline]
    fn decide(&self, now: Timestamp, check: &Check<'_>) -> Decision {
        let print = self.print(check.policy, check.key);
        let mut shard = self.shard(print);
        self.decide_in(&mut shard, print, now, check, |decision| decision)
    }

    /// Decides a check of a key that has its place in `shard`, and has the decision `put` where it is wanted.
    #[inline(always)]
    fn decide_in<R>(
        &self,
        shard: &mut Shard,
        print: Fingerprint,
        now: Timestamp,
        check: &Check<'_>,
        put: impl FnOnce(Decision) -> R,
    ) -> R {
        let Check { policy, key, ask } = *check;
        // The usual case, with nothing between the arithmetic and the place where the decision is wanted.
        if !policy.is_superseded()
            && let Some((plan, mut cells, now)) = shard.known(&Question { policy, key, print, now })
        {
            return match ask {
                Ask::Exactly(cost) => plan.check_then(&mut cells, now, cost, put),
                Ask::UpTo(max) => put(plan.check_up_to(&mut cells, now, max)),
            };
        }
        put(self.decide_unknown(shard, print, now, check))
    }

    #[cold]
    #[inline(never)]
    fn decide_unknown(
        &self,
        shard: &mut Shard,
        print: Fingerprint,
        now: Timestamp,
        check: &Check<'_>,
    ) -> Decision {
        let newest = superseding(check.policy);
        let policy = newest.as_ref().unwrap_or(check.policy);
        let question = Question { policy, key: check.key, print, now };
        let decided = shard.with(question, &self.bounds, |plan, cells, now| check.ask.of(plan, cells, now));
        decided.unwrap_or_else(|NoRoom| overloaded(policy, check.key))
    }
}

impl Ask {
    #[inline]
    fn of(self, plan: &Plan, cells: &mut SlotCells<'_>, now: Timestamp) -> Decision {
        match self {
            Ask::Exactly(cost) => plan.check(cells, now, cost),
            Ask::UpTo(max) => plan.check_up_to(cells, now, max),
        }
    }
}

/// The version in force, if it is another. To be asked for under the lock of a shard, which a sweep takes too: so
/// nothing is written under a version that a sweep has let go.
#[inline]
fn superseding(policy: &Arc<ActivePolicy>) -> Option<Arc<ActivePolicy>> {
    policy.is_superseded().then(|| policy.newest())
}

fn overloaded(policy: &ActivePolicy, key: &[u8]) -> Decision {
    let (_, plan) = policy.plan_for(key);
    Decision::overloaded(plan.limits()[0].capacity())
}

fn lock(shard: &Padded) -> MutexGuard<'_, Shard> {
    // Nothing in a shard's critical sections can panic half way; if it did, the states are still each whole.
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    type Answer<T: Send + 'static> = T;
    type Answers = Vec<Decision>;

    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        policies.iter().for_each(|policy| self.carry_old_versions(policy, now));
        let numbers: BTreeSet<_> = policies.iter().map(|policy| policy.number()).collect();
        let mut needed = BTreeSet::new();
        for shard in &self.shards {
            let stays = |version: &ActivePolicy| numbers.contains(&version.number());
            needed.append(&mut lock(shard).sweep(now, self.bounds.spare, stays));
        }
        for policy in policies {
            // What was replaced within the spare time may be asked for by stamps that are late.
            let replaced = std::iter::once(Arc::clone(policy)).chain(policy.earlier());
            let late = replaced.take_while(|version| self.bounds.spare.reaches(version.since(), now));
            let late = late.zip(policy.earlier()).map(|(_, version)| version);
            needed.extend(late.take(MOST_VERSIONS).flat_map(|version| version.ids()).map(PlanId::new));
        }
        needed
    }

    #[inline]
    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Decision {
        self.decide(now, &check)
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> Vec<Decision> {
        match checks {
            [check] => vec![self.decide(now, check)],
            _ => self.decide_batch(now, checks),
        }
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Vec<Decision> {
        self.decide_group(now, checks, grouping)
    }

    fn adjust(
        &self,
        now: Timestamp,
        policy: &Arc<ActivePolicy>,
        key: &[u8],
        adjustment: Adjustment,
    ) -> Penalty {
        let adjusted = match adjustment {
            Adjustment::Credit(units) => {
                self.with(policy, key, now, |plan, cells, now| plan.credit(cells, now, units))
            }
            Adjustment::Penalize(units) => {
                self.with(policy, key, now, |plan, cells, now| plan.penalize(cells, now, units))
            }
            Adjustment::Reset => {
                let print = self.print(policy, key);
                self.shard(print).remove(print);
                self.with(policy, key, now, |plan, cells, now| Penalty::nothing(plan.peek(cells, now)))
            }
        };
        adjusted.unwrap_or_else(|NoRoom| Penalty::nothing(overloaded(policy, key)))
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

    #[inline]
    fn ready<T: Send + 'static>(value: T) -> T {
        value
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

    fn each_ready(decisions: Vec<Decision>) -> Vec<Decision> {
        decisions
    }

    fn amid(known: Vec<Option<Decision>>, answers: Vec<Decision>) -> Vec<Decision> {
        store::amid(known, answers, |decision| decision)
    }

    fn each_settled(
        answers: Vec<Decision>,
    ) -> impl Future<Output = Vec<Result<Decision, StoreError>>> + Send {
        std::future::ready(answers.into_iter().map(Ok).collect())
    }
}
