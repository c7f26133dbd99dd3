//! A policy in force: one version of it, with the versions it replaced for as long as state is left of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use tidegate_core::{Cells, KeyState, Plan, Since, Timestamp};

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
    replaced: ArcSwapOption<ActivePolicy>,
    superseded: AtomicBool,
}

/// Numbers a policy by its name, for as long as its limiter lives.
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
    /// The first version of a policy.
    pub(crate) fn new(policy: Arc<Policy>, number: PolicyNumber, since: Timestamp, first: u32) -> Self {
        let replaced = ArcSwapOption::new(None);
        ActivePolicy { policy, number, since, first, replaced, superseded: AtomicBool::new(false) }
    }

    /// The version that follows this one.
    pub(crate) fn replaced_by(self: &Arc<Self>, policy: Arc<Policy>, since: Timestamp, first: u32) -> Self {
        let next = ActivePolicy::new(policy, self.number, since, first);
        next.replaced.store(Some(Arc::clone(self)));
        next
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

    /// The plan in force for `key`.
    #[inline]
    pub fn plan_for(&self, key: &[u8]) -> (PlanId, &Plan) {
        let index = self.policy.plan_index(key);
        // Ids are below 2^22, so the sum fits.
        (PlanId(self.first + index as u32), &self.policy.plans()[index])
    }

    /// The plan of this id, if it is one of this version's.
    pub fn plan(&self, id: PlanId) -> Option<&Plan> {
        self.policy.plans().get(id.0.checked_sub(self.first)? as usize)
    }

    /// The ids of this version's plans.
    pub(crate) fn ids(&self) -> Range<u32> {
        self.first..self.first + self.policy.plans().len() as u32
    }

    /// Whether a later version is in force.
    #[inline]
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    pub(crate) fn supersede(&self) {
        self.superseded.store(true, Ordering::Release);
    }

    /// Whether state may be left of a version before this one.
    #[inline]
    pub(crate) fn has_replaced(&self) -> bool {
        self.replaced.load().is_some()
    }

    /// The version this one replaced, if state may be left of it.
    pub(crate) fn replaced(&self) -> Option<Arc<ActivePolicy>> {
        self.replaced.load_full()
    }

    /// Lets the versions before this one go: no state is left of them.
    pub(crate) fn forget_replaced(&self) {
        self.replaced.store(None);
    }

    /// Carries the state of `key`, kept under plan `written`, to this version.
    ///
    /// `None` if no version known has such a plan: the state is of a policy that was removed in between, and
    /// the key starts anew.
    pub fn carry_over(&self, key: &[u8], kept: &impl Cells, written: PlanId) -> Option<KeyState> {
        let mut later: Vec<Arc<ActivePolicy>> = Vec::new();
        let mut version = self.replaced();
        let old = loop {
            let candidate = version?;
            if candidate.plan(written).is_some() {
                break candidate;
            }
            version = candidate.replaced();
            later.push(candidate);
        };
        let mut plan = old.plan(written)?;
        let mut policy = &old.policy;
        let mut state = KeyState::copy_of(plan, kept);
        for version in later.iter().rev().map(|version| &**version).chain([self]) {
            let (_, next) = version.plan_for(key);
            let origins = version.policy.origins(policy);
            let unmoved = origins.iter().copied().eq((0..plan.limits().len()).map(Some));
            if next != plan || !unmoved {
                state = next.carry_over(plan, &state, &origins, Since::Known(version.since));
            }
            (plan, policy) = (next, &version.policy);
        }
        Some(state)
    }
}
