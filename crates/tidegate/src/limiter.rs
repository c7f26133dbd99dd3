//! The limiter: policies over a store and a clock, by name, swapped whole.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate_core::Timestamp;

use crate::active::{ActivePolicy, PlanId, PolicyNumber};
use crate::clock::{Clock, SystemClock};
use crate::handle::PolicyHandle;
use crate::memory::MemoryStore;
use crate::policy::{Policy, PolicySet};
use crate::store::Store;

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
    directory: ArcSwap<Directory>,
    registry: Mutex<Registry>,
}

/// The policies in force, and for each the cell that its handles follow.
#[derive(Default)]
struct Directory {
    set: Arc<PolicySet>,
    cells: HashMap<Arc<str>, Cell>,
}

/// Where the version in force of one policy is found.
pub(crate) type Cell = Arc<ArcSwap<ActivePolicy>>;

/// What reloading has to remember; its lock makes reloads take turns.
#[derive(Default)]
struct Registry {
    numbers: HashMap<Arc<str>, PolicyNumber>,
    /// Every version that state or a handle may still refer to.
    versions: Vec<std::sync::Weak<ActivePolicy>>,
    /// Plans that had state at the last sweep.
    used: Vec<PlanId>,
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

/// What a reload changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reload {
    /// Policies that are new.
    pub added: Vec<String>,
    /// Policies whose figures, limits or overrides changed.
    pub changed: Vec<String>,
    /// Policies that are no more; their state is gone.
    pub removed: Vec<String>,
    /// (policy, limit) pairs that start anew because their algorithm changed.
    pub restarted: Vec<(String, String)>,
}

/// A limiter could not take on more policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{figures} different sets of figures: a limiter keeps state under at most {most} at once, those just \
     replaced included (give fewer keys figures of their own)"
)]
pub struct TooManyFigures {
    figures: usize,
    most: u32,
}

/// A limiter being put together; see [`Limiter::builder`].
pub struct LimiterBuilder<S: Store = MemoryStore> {
    policies: PolicySet,
    store: S,
    clock: Arc<dyn Clock>,
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
            clock: Arc::new(SystemClock::new()),
        }
    }
}

impl<S: Store> LimiterBuilder<S> {
    /// Keeps the state in `store`.
    #[must_use]
    pub fn store<T: Store>(self, store: T) -> LimiterBuilder<T> {
        LimiterBuilder { policies: self.policies, store, clock: self.clock }
    }

    /// Runs on `clock`.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
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
            clock: self.clock,
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
        match directory.cells.get(name) {
            Some(cell) => Ok(PolicyHandle::new(Arc::clone(&self.shared), Arc::clone(cell))),
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

    /// Puts other policies in force, all at once. What was used under the old ones stays used: buckets keep
    /// their tokens, windows their counts; a policy that did not change is not touched. A policy that is no more
    /// loses its state; handles on it go on under the figures they had.
    ///
    /// # Errors
    /// More sets of figures than ids; the old policies stay in force.
    pub fn reload(&self, policies: impl Into<PolicySet>) -> Result<Reload, TooManyFigures> {
        let set: Arc<PolicySet> = Arc::new(policies.into());
        let mut registry = self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.shared.directory.load_full();
        let since = self.now();
        let mut report = Reload::default();
        let mut taken = registry.taken();
        let mut active = Vec::new();
        for policy in set.iter() {
            let before = old.cells.get(policy.name()).map(|cell| cell.load_full());
            let next = match before {
                Some(before) if before.policy() == policy => before,
                before => {
                    report.note(policy, before.as_deref());
                    let first = claim(&mut taken, policy.plans().len())?;
                    Arc::new(match before {
                        Some(before) => before.replaced_by(Arc::clone(policy), since, first),
                        None => {
                            let number = registry.number(policy.name());
                            ActivePolicy::new(Arc::clone(policy), number, since, first)
                        }
                    })
                }
            };
            active.push(next);
        }
        let removed = old.set.iter().filter(|policy| set.get(policy.name()).is_none());
        report.removed = removed.map(|policy| policy.name().to_owned()).collect();
        self.swap(&old, set, &active);
        registry.settle(&active, self.shared.store.sweep(since));
        Ok(report)
    }

    /// Puts `active` in force: the store first, so that it knows what supersedes what, then the handles.
    fn swap(&self, old: &Directory, set: Arc<PolicySet>, active: &[Arc<ActivePolicy>]) {
        self.shared.store.install(active);
        let mut cells = HashMap::new();
        for policy in active {
            let name: Arc<str> = policy.policy().name().into();
            let cell = match old.cells.get(&name) {
                Some(cell) => {
                    let before = cell.swap(Arc::clone(policy));
                    if !Arc::ptr_eq(&before, policy) {
                        before.supersede();
                    }
                    Arc::clone(cell)
                }
                None => Arc::new(ArcSwap::new(Arc::clone(policy))),
            };
            cells.insert(name, cell);
        }
        self.shared.directory.store(Arc::new(Directory { set, cells }));
    }
}

impl Reload {
    /// Whether anything changed.
    pub fn is_empty(&self) -> bool {
        *self == Reload::default()
    }

    fn note(&mut self, policy: &Policy, before: Option<&ActivePolicy>) {
        let Some(before) = before else { return self.added.push(policy.name().to_owned()) };
        self.changed.push(policy.name().to_owned());
        let before = before.policy();
        for (index, origin) in policy.origins(before).into_iter().enumerate() {
            let Some(origin) = origin else { continue };
            let algorithm = |policy: &Policy, index: usize| policy.plan().limits()[index].algorithm();
            if algorithm(policy, index) != algorithm(before, origin) {
                self.restarted.push((policy.name().to_owned(), policy.limit_name(index).to_owned()));
            }
        }
    }
}

impl Registry {
    /// The number of a policy, the same whenever one of this name is there.
    fn number(&mut self, name: &str) -> PolicyNumber {
        let next = PolicyNumber::new(self.numbers.len() as u64);
        *self.numbers.entry(name.into()).or_insert(next)
    }

    /// The ids that may not be given out, in order.
    fn taken(&self) -> Vec<Range<u32>> {
        let versions =
            self.versions.iter().filter_map(|version| version.upgrade()).map(|version| version.ids());
        let used = self.used.iter().map(|id| id.get()..id.get() + 1);
        let mut taken: Vec<Range<u32>> = versions.chain(used).collect();
        taken.sort_unstable_by_key(|range| (range.start, range.end));
        taken
    }

    /// After a sweep: lets versions go that no state is left of.
    fn settle(&mut self, active: &[Arc<ActivePolicy>], used: std::collections::BTreeSet<PlanId>) {
        for policy in active {
            let mut oldest_used = Arc::clone(policy);
            let mut version = policy.replaced();
            while let Some(candidate) = version {
                version = candidate.replaced();
                if candidate.ids().any(|id| used.contains(&PlanId::new(id))) {
                    oldest_used = candidate;
                }
            }
            oldest_used.forget_replaced();
        }
        self.used = used.into_iter().collect();
        self.versions.retain(|version| version.strong_count() > 0);
        let known = |active: &Arc<ActivePolicy>| {
            self.versions.iter().any(|version| std::ptr::eq(version.as_ptr(), Arc::as_ptr(active)))
        };
        let new: Vec<_> = active.iter().filter(|active| !known(active)).map(Arc::downgrade).collect();
        self.versions.extend(new);
    }
}

/// Finds the lowest run of `count` ids that is not taken, and takes it.
fn claim(taken: &mut Vec<Range<u32>>, count: usize) -> Result<u32, TooManyFigures> {
    const MOST: u32 = 1 << PlanId::BITS;
    let refused = TooManyFigures { figures: count, most: MOST };
    let count = u32::try_from(count).map_err(|_| refused.clone())?;
    let (mut first, mut place) = (0, taken.len());
    for (index, range) in taken.iter().enumerate() {
        if range.start >= first && range.start - first >= count {
            place = index;
            break;
        }
        first = first.max(range.end);
    }
    if first.checked_add(count).is_none_or(|end| end > MOST) {
        return Err(refused);
    }
    taken.insert(place, first..first + count);
    Ok(first)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_from_the_lowest_gap() {
        let mut taken = vec![0..2, 1..2, 5..6];
        assert_eq!(claim(&mut taken, 3), Ok(2));
        assert_eq!(claim(&mut taken, 3), Ok(6));
        assert!(claim(&mut taken, 1 << 22).is_err());
        assert_eq!(claim(&mut Vec::new(), 1 << 22), Ok(0));
    }
}
