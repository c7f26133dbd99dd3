//! Putting other policies in force under running checks.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError, Weak};

use crate::active::{ActivePolicy, PlanId, PolicyNumber};
use crate::limiter::{Directory, Limiter};
use crate::policy::{Policy, PolicySet};
use crate::store::Store;

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
    /// (policy, limit) pairs that start anew in a policy that is not: the limit's algorithm changed, or no limit
    /// was of this name before.
    pub restarted: Vec<(String, String)>,
}

/// A limiter could not take on more policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "policy {policy:?} has {figures} different sets of figures, and there are ids for {most} at once, those of \
     all policies and of versions just replaced included (give fewer keys figures of their own)"
)]
pub struct TooManyFigures {
    policy: String,
    figures: usize,
    most: u32,
}

impl<S: Store> Limiter<S> {
    /// Puts other policies in force, all at once. What was used under the old ones stays used: buckets keep
    /// their tokens, windows their counts, each limit known by its name; a policy that did not change is not touched.
    /// A policy that is no more loses its state, also if it comes back later; handles on it go on under the
    /// figures they had. The turns of those who wait are worked out anew.
    ///
    /// The new figures come into force at the present instant of the limiter's clock. Whoever checks at stamps
    /// of their own has to set that clock, too ([`ManualClock`](crate::clock::ManualClock)).
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, Policy, Rate};
    /// let policy = |capacity: u32| Policy::single("api", Limit::token_bucket(capacity, Rate::ZERO));
    /// let limiter = Limiter::new(policy(10)?);
    /// let api = limiter.policy("api")?;
    /// api.check("user:42", 7);
    /// let reload = limiter.reload(policy(20)?)?;
    /// assert_eq!(reload.changed, ["api"]);
    /// assert_eq!(api.peek("user:42").remaining(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// More sets of figures than ids; the old policies stay in force.
    pub fn reload(&self, policies: impl Into<PolicySet>) -> Result<Reload, TooManyFigures> {
        let set: Arc<PolicySet> = Arc::new(policies.into());
        let mut registry = self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.shared.directory.load_full();
        let since = self.now();
        let mut ids = registry.ids();
        let (mut places, mut entering) = (HashMap::new(), Vec::new());
        for policy in set.iter() {
            let place = match old.places.get(policy.name()) {
                Some(place) => {
                    let version = place.load();
                    if version.policy() != policy {
                        let next = version.next(Arc::clone(policy), since, ids.claim(policy)?);
                        entering.push((Arc::clone(place), Arc::new(next)));
                    }
                    Arc::clone(place)
                }
                None => ActivePolicy::first(Arc::clone(policy), registry.number(), since, ids.claim(policy)?),
            };
            places.insert(policy.name().into(), place);
        }
        entering.iter().for_each(|(place, next)| next.enter(place));
        let report = Reload::between(&old.set, &set);
        self.shared.directory.store(Arc::new(Directory { set, places }));
        if !report.is_empty() {
            self.settle(&mut registry, &old);
            // Wakes whoever is to be woken, who may do anything, such as reload.
            drop(registry);
            self.shared.disturb_all();
        }
        Ok(report)
    }

    /// Lets go what a change has left over: state of policies that are no more, versions without state.
    fn settle(&self, registry: &mut Registry, old: &Directory) {
        let directory = self.shared.directory.load_full();
        let versions = |directory: &Directory| -> Vec<Arc<ActivePolicy>> {
            directory.places.values().map(|place| place.load_full()).collect()
        };
        let active = versions(&directory);
        let needed = self.shared.store.sweep(self.now(), &active);
        active.iter().for_each(|version| version.forget_unneeded(&needed));
        let removed = |version: &Arc<ActivePolicy>| !directory.places.contains_key(version.policy().name());
        versions(old).iter().filter(|version| removed(version)).for_each(|version| version.forget_earlier());
        registry.note(&active);
    }
}

impl Reload {
    /// Whether anything changed.
    pub fn is_empty(&self) -> bool {
        *self == Reload::default()
    }

    fn between(old: &PolicySet, new: &PolicySet) -> Self {
        let mut report = Reload::default();
        for policy in new.iter() {
            match old.get(policy.name()) {
                None => report.added.push(policy.name().to_owned()),
                Some(before) if before != policy => report.note_change(before, policy),
                Some(_) => {}
            }
        }
        let removed = old.iter().filter(|policy| new.get(policy.name()).is_none());
        report.removed = removed.map(|policy| policy.name().to_owned()).collect();
        report
    }

    fn note_change(&mut self, before: &Policy, policy: &Policy) {
        self.changed.push(policy.name().to_owned());
        for (index, origin) in policy.origins(before).into_iter().enumerate() {
            let algorithm = |policy: &Policy, index: usize| policy.plan().limits()[index].algorithm();
            if origin.is_none_or(|origin| algorithm(policy, index) != algorithm(before, origin)) {
                self.restarted.push((policy.name().to_owned(), policy.limit_name(index).to_owned()));
            }
        }
    }
}

/// What reloading has to remember; its lock makes reloads take turns.
#[derive(Default)]
pub(crate) struct Registry {
    /// How many policies were ever added.
    added: u64,
    /// Every version that state, a handle or a check on its way may still refer to.
    versions: Vec<Weak<ActivePolicy>>,
}

impl Registry {
    /// The number of a policy that is new.
    fn number(&mut self) -> PolicyNumber {
        self.added += 1;
        PolicyNumber::new(self.added)
    }

    /// Notes the versions that are new, and forgets those that are no more.
    fn note(&mut self, active: &[Arc<ActivePolicy>]) {
        self.versions.retain(|version| version.strong_count() > 0);
        let known: BTreeSet<_> = self.versions.iter().map(Weak::as_ptr).collect();
        let new = active.iter().filter(|version| !known.contains(&Arc::as_ptr(version)));
        self.versions.extend(new.map(Arc::downgrade));
    }

    /// The ids that may be given out.
    fn ids(&self) -> Ids {
        let versions = self.versions.iter().filter_map(Weak::upgrade);
        let mut taken: Vec<Range<u32>> = versions.map(|version| version.ids()).collect();
        taken.sort_unstable_by_key(|range| range.start);
        Ids { taken, most: 1 << PlanId::BITS }
    }
}

/// The ids of plans.
struct Ids {
    /// Which are taken, in order.
    taken: Vec<Range<u32>>,
    /// How many there are.
    most: u32,
}

impl Ids {
    /// Takes the lowest run of ids that is free and long enough for the plans of `policy`.
    fn claim(&mut self, policy: &Policy) -> Result<u32, TooManyFigures> {
        let (figures, most) = (policy.plans().len(), self.most);
        let refused = || TooManyFigures { policy: policy.name().to_owned(), figures, most };
        self.take(figures).ok_or_else(refused)
    }

    fn take(&mut self, count: usize) -> Option<u32> {
        let count = u32::try_from(count).ok()?;
        let (mut first, mut place) = (0, self.taken.len());
        for (index, range) in self.taken.iter().enumerate() {
            if range.start - first >= count {
                place = index;
                break;
            }
            first = range.end;
        }
        let end = first.checked_add(count).filter(|end| *end <= self.most)?;
        self.taken.insert(place, first..end);
        Some(first)
    }
}

#[cfg(test)]
mod tests;
