//! Several checks as one: all are charged, or none.

use std::sync::{Arc, MutexGuard};

use tidegate_core::{Cost, Decision, KeyState, Plan, Timestamp};

use super::shard::{NoRoom, Question, Shard, write};
use super::table::Fingerprint;
use super::{MemoryStore, lock, overloaded, superseding};
use crate::active::ActivePolicy;
use crate::adhoc::AdHocCheck;
use crate::adhoc::group::Beside;
use crate::store::{Ask, Check, Grouping, Together};

/// Checks with the shards they touch, all locked.
struct Group<'a> {
    store: &'a MemoryStore,
    now: Timestamp,
    members: Vec<Member<'a>>,
    /// In the order of their indices, so that no two groups wait for each other.
    shards: Vec<(usize, MutexGuard<'a, Shard>)>,
}

struct Member<'a> {
    policy: Arc<ActivePolicy>,
    key: &'a [u8],
    ask: Ask,
    print: Fingerprint,
    /// The place of its shard among those locked.
    shard: usize,
}

impl MemoryStore {
    pub(super) fn decide_group(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        grouping: Grouping,
    ) -> Vec<Decision> {
        let mut group = Group::lock(self, now, checks);
        let foreseen = group.foresee();
        let charge = grouping == Grouping::AllOrNothing && foreseen.iter().all(Decision::is_allowed);
        if charge { group.charge(foreseen) } else { foreseen }
    }

    /// The same with ad hoc checks in it. Their keys are locked before those of policies, always, so that no two
    /// groups wait for each other.
    pub(super) fn decide_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Together {
        let costs = checks.iter().map(|check| check.ask.most()).chain(ad_hoc.iter().map(|check| check.cost));
        let charges = grouping == Grouping::AllOrNothing && costs.into_iter().any(|cost| !cost.is_peek());
        let beside = Beside::of(&self.ad_hoc, now, ad_hoc);
        let mut beside = beside.lock(charges);
        let mut group = Group::lock(self, now, checks);
        let foreseen = Together { ad_hoc: beside.foresee(), policies: group.foresee() };
        if grouping != Grouping::AllOrNothing || !foreseen.is_allowed() {
            return foreseen;
        }
        let ad_hoc = match beside.charge(foreseen.ad_hoc.clone()) {
            Ok(charged) => charged,
            Err(ad_hoc) => return Together { ad_hoc, ..foreseen },
        };
        let policies = group.charge(foreseen.policies);
        if policies.iter().all(Decision::is_allowed) {
            return Together { policies, ad_hoc };
        }
        beside.put_back();
        Together { policies, ad_hoc: foreseen.ad_hoc }
    }
}

impl<'a> Group<'a> {
    fn lock(store: &'a MemoryStore, now: Timestamp, checks: &[Check<'a>]) -> Self {
        let prints: Vec<_> = checks.iter().map(|check| store.print(check.policy, check.key)).collect();
        let index = |print: Fingerprint| store.shard_index(print);
        let mut indices: Vec<_> = prints.iter().map(|print| index(*print)).collect();
        indices.sort_unstable();
        indices.dedup();
        let shards: Vec<_> = indices.iter().map(|index| (*index, lock(&store.shards[*index]))).collect();
        let members = checks.iter().zip(prints).map(|(check, print)| Member {
            policy: superseding(check.policy).unwrap_or_else(|| Arc::clone(check.policy)),
            key: check.key,
            ask: check.ask,
            print,
            shard: indices.partition_point(|other| *other < index(print)),
        });
        Group { store, now, members: members.collect(), shards }
    }

    /// What each would be answered, were it alone; nothing is charged.
    fn foresee(&mut self) -> Vec<Decision> {
        (0..self.members.len())
            .map(|member| {
                let ask = self.members[member].ask;
                let foreseen = self.with(member, |plan, cells, now| match ask {
                    Ask::Exactly(cost) => plan.foresee(cells, now, cost),
                    Ask::UpTo(max) => {
                        let mut copy = KeyState::copy_of(plan, cells);
                        let charged = plan.check_up_to(&mut copy, now, max).charged();
                        // At most `max`, so in range; what cannot have even one is refused that one.
                        let cost = Cost::new(charged.max(u64::from(!max.is_peek()))).unwrap_or(max);
                        plan.foresee(cells, now, cost)
                    }
                });
                foreseen.unwrap_or_else(|NoRoom| self.overloaded(member))
            })
            .collect()
    }

    /// Charges one after the other. Each fits alone, but two may share a key, and a shard may have no room left:
    /// then what was charged is put back as it was.
    fn charge(&mut self, mut foreseen: Vec<Decision>) -> Vec<Decision> {
        let mut decisions = Vec::with_capacity(foreseen.len());
        let mut before: Vec<Option<KeyState>> = Vec::with_capacity(foreseen.len());
        for member in 0..self.members.len() {
            let ask = self.members[member].ask;
            let mut kept = None;
            let decided = self.with(member, |plan, cells, now| {
                let state = KeyState::copy_of(plan, cells);
                kept = (state != KeyState::new(plan)).then_some(state);
                ask.of(plan, cells, now)
            });
            let decision = decided.unwrap_or_else(|NoRoom| self.overloaded(member));
            if !decision.is_allowed() {
                self.put_back(before);
                foreseen[member] = decision;
                return foreseen;
            }
            before.push(kept);
            decisions.push(decision);
        }
        decisions
    }

    /// Undoes the charges of the first members, whose states were as `before` says; `None` is as new.
    fn put_back(&mut self, before: Vec<Option<KeyState>>) {
        // Backwards, so that of two states of one key the older is written last.
        for (member, state) in before.into_iter().enumerate().rev() {
            match state {
                Some(state) => {
                    // A state that was shed meanwhile may find no room: then it was shed, as is told.
                    let _ = self.with(member, |plan, cells, _| write(plan, &state, cells));
                }
                None => {
                    let Member { print, shard, .. } = self.members[member];
                    self.shards[shard].1.remove(print);
                }
            }
        }
    }

    fn with<R>(
        &mut self,
        member: usize,
        apply: impl FnOnce(&Plan, &mut super::SlotCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let Member { policy, key, print, shard, .. } = &self.members[member];
        let question = Question { policy, key, print: *print, now: self.now };
        self.shards[*shard].1.with(question, &self.store.bounds, apply)
    }

    fn overloaded(&self, member: usize) -> Decision {
        let Member { policy, key, .. } = &self.members[member];
        overloaded(policy, key)
    }
}
