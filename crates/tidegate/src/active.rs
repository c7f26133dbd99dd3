//! A policy in force: one version of it, with the versions it replaced for as long as state is left of them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, ArcSwapOption};
use tidegate_core::{Cells, KeyState, Plan, Since, Timestamp, Wait};

use crate::policy::Policy;

/// One version of a policy, in force since an instant.
///
/// State says which version and which of its plans it was written under ([`PlanId`]); a key touched under a
/// later version is carried over through every version in between, each at the instant it came into force.
#[derive(Debug)]
pub struct ActivePolicy {
    policy: Arc<Policy>,
    number: PolicyNumber,
    since: Timestamp,
    /// The id of this version's first plan; the others follow.
    first: u32,
    /// Where the version in force is found.
    place: Weak<ArcSwap<ActivePolicy>>,
    superseded: AtomicBool,
    /// The version before this one, while state may be left of it or of one before it.
    replaced: ArcSwapOption<ActivePolicy>,
    /// What [`Policy::heirs`] says of the version before.
    heirs: Box<[Option<usize>]>,
    /// No state of this version takes longer to be as new; `None` if some never is.
    as_new_within: Option<Wait>,
}

/// Where the version in force of one policy is found; its handles share it.
pub(crate) type Place = Arc<ArcSwap<ActivePolicy>>;

/// Numbers a policy from when it is added until it is removed, for as long as its limiter lives: one that comes
/// back under its old name is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyNumber(u64);

impl PolicyNumber {
    pub(crate) const fn new(number: u64) -> Self {
        PolicyNumber(number)
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Names one plan of one version of one policy among all that a limiter keeps state under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanId(u32);

impl PlanId {
    /// Ids have this many bits, so that they fit beside the state in its words.
    pub const BITS: u32 = 22;

    pub(crate) const fn new(id: u32) -> Self {
        PlanId(id)
    }

    /// The bare number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl ActivePolicy {
    /// The first version of a policy, in a place of its own.
    pub(crate) fn first(policy: Arc<Policy>, number: PolicyNumber, since: Timestamp, first: u32) -> Place {
        Arc::new_cyclic(|place| {
            ArcSwap::from_pointee(Self::new(policy, number, since, first, Weak::clone(place)))
        })
    }

    /// The version that is to follow this one.
    pub(crate) fn next(self: &Arc<Self>, policy: Arc<Policy>, since: Timestamp, first: u32) -> Self {
        let heirs = policy.heirs(&self.policy).into();
        let replaced = ArcSwapOption::new(Some(Arc::clone(self)));
        let next = Self::new(policy, self.number, since, first, Weak::clone(&self.place));
        ActivePolicy { replaced, heirs, ..next }
    }

    fn new(
        policy: Arc<Policy>,
        number: PolicyNumber,
        since: Timestamp,
        first: u32,
        place: Weak<ArcSwap<ActivePolicy>>,
    ) -> Self {
        let longest = |longest: Wait, plan: &Plan| Some(longest.max(plan.as_new_within()?));
        ActivePolicy {
            as_new_within: policy.plans().iter().try_fold(Wait::ZERO, longest),
            policy,
            number,
            since,
            first,
            place,
            superseded: AtomicBool::new(false),
            replaced: ArcSwapOption::new(None),
            heirs: Box::default(),
        }
    }

    /// The policy itself.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The policy's number, the same in all its versions.
    #[inline]
    pub fn number(&self) -> PolicyNumber {
        self.number
    }

    /// The instant this version came into force.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// The instant at which `key`, of which nothing is kept, is decided when asked about at `now`.
    ///
    /// It was as new when its figures last changed, or became so since. Like any other key it went over to them
    /// at that instant, and its time does not go back behind it.
    pub fn decided_at(&self, key: &[u8], now: Timestamp) -> Timestamp {
        let mut since = self.since;
        let mut policy = Arc::clone(&self.policy);
        for earlier in self.earlier() {
            if now >= since {
                break;
            }
            let (index, before) = (policy.plan_index(key), earlier.policy.plan_index(key));
            if policy.changes(index, &earlier.policy, before) {
                return since;
            }
            (since, policy) = (earlier.since, Arc::clone(&earlier.policy));
        }
        now
    }

    /// The plan in force for `key`.
    #[inline]
    pub fn plan_for(&self, key: &[u8]) -> (PlanId, &Plan) {
        let index = self.policy.plan_index(key);
        // Ids are below 2^22, so the sum fits.
        (PlanId(self.first + index as u32), &self.policy.plans()[index])
    }

    /// The plan of this id, if it is one of this version's.
    pub fn plan(&self, id: PlanId) -> Option<&Plan> {
        self.policy.plans().get(self.index_of(id)?)
    }

    /// The ids of this version's plans.
    pub(crate) fn ids(&self) -> Range<u32> {
        self.first..self.first + self.policy.plans().len() as u32
    }

    /// Whether any of these plans is one of this version's.
    pub(crate) fn has_any(&self, plans: &BTreeSet<PlanId>) -> bool {
        let Range { start, end } = self.ids();
        plans.range(PlanId(start)..PlanId(end)).next().is_some()
    }

    fn index_of(&self, id: PlanId) -> Option<usize> {
        self.ids().contains(&id.0).then(|| (id.0 - self.first) as usize)
    }

    /// Puts this version in the place of the one before it.
    pub(crate) fn enter(self: &Arc<Self>, place: &Place) {
        // First the old version is marked, so that whoever meets state of the new one finds the mark.
        place.load().superseded.store(true, Ordering::Release);
        place.store(Arc::clone(self));
    }

    /// Whether a later version is in force, or about to be.
    #[inline]
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    /// The version in force.
    pub(crate) fn newest(self: &Arc<Self>) -> Arc<Self> {
        // The place is gone once no handle is left, and then nobody asks under another version.
        self.place.upgrade().map_or_else(|| Arc::clone(self), |place| place.load_full())
    }

    /// Whether state may be left of a version before this one.
    #[inline]
    pub(crate) fn has_replaced(&self) -> bool {
        self.replaced.load().is_some()
    }

    /// The versions before this one, newest first, as far back as they may matter.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = Arc<ActivePolicy>> + use<> {
        std::iter::successors(self.replaced.load_full(), |version| version.replaced.load_full())
    }

    /// Lets the versions before this one go: no state is left of them.
    pub(crate) fn forget_earlier(&self) {
        self.replaced.store(None);
    }

    /// Lets the versions go that come before all with plans that are `needed`.
    pub(crate) fn forget_unneeded(self: &Arc<Self>, needed: &BTreeSet<PlanId>) {
        let oldest = self.earlier().filter(|version| version.has_any(needed)).last();
        let oldest = oldest.as_ref().unwrap_or(self);
        let unneeded: Vec<_> = oldest.earlier().collect();
        oldest.forget_earlier();
        // A handle may hold on to one of them, and is not to hold on to all.
        unneeded.iter().for_each(|version| version.forget_earlier());
    }

    /// The instant by which state of this version, last written at `last`, is as new, whatever its key, where
    /// its own figures say `by_own`; `None` if it may never be.
    pub(crate) fn as_new_by(self: &Arc<Self>, last: Timestamp, by_own: Option<u128>) -> Option<u128> {
        if !self.is_superseded() {
            return by_own;
        }
        let newest = self.newest();
        if Arc::ptr_eq(&newest, self) {
            return by_own;
        }
        let mut later = vec![Arc::clone(&newest)];
        later.extend(newest.earlier().take_while(|version| !Arc::ptr_eq(version, self)));
        // The figures for its key are not known without the key, so the slowest of each version count.
        later.iter().rev().fold(by_own, |by, version| {
            let settled = last.max(version.since);
            match by {
                Some(by) if by <= u128::from(settled.as_micros()) => Some(by),
                _ => Some(u128::from(settled.as_micros()) + version.as_new_within?.as_micros()),
            }
        })
    }

    /// Carries the state of `key`, kept under plan `written`, to this version.
    ///
    /// `None` if no version known has such a plan.
    pub fn carry_over(&self, key: &[u8], kept: &impl Cells, written: PlanId) -> Option<KeyState> {
        self.carry(kept, written, |version, _| Some(version.policy.plan_index(key))).map(|(_, state)| state)
    }

    /// The same for a key that no version names, and the plan the state is then under; `None` also if that
    /// depends on the key.
    pub(crate) fn carry_unnamed(&self, kept: &impl Cells, written: PlanId) -> Option<(PlanId, KeyState)> {
        self.carry(kept, written, |version, before| version.heirs.get(before).copied().flatten())
    }

    fn carry(
        &self,
        kept: &impl Cells,
        written: PlanId,
        heir: impl Fn(&ActivePolicy, usize) -> Option<usize>,
    ) -> Option<(PlanId, KeyState)> {
        let mut later: Vec<Arc<ActivePolicy>> = Vec::new();
        let (old, mut index) = self.earlier().find_map(|version| match version.index_of(written) {
            Some(index) => Some((version, index)),
            None => {
                later.push(version);
                None
            }
        })?;
        let mut policy = &old.policy;
        let mut state = KeyState::copy_of(&policy.plans()[index], kept);
        for version in later.iter().rev().map(|version| &**version).chain([self]) {
            let (next, next_index) = (&version.policy, heir(version, index)?);
            if next.changes(next_index, policy, index) {
                let (plan, since) = (&policy.plans()[index], Since::Known(version.since));
                state = next.plans()[next_index].carry_over(plan, &state, &next.origins(policy), since);
            }
            (policy, index) = (next, next_index);
        }
        Some((PlanId(self.first + index as u32), state))
    }
}

#[cfg(test)]
mod model;
