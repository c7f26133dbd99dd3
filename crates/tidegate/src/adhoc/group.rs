//! Ad hoc checks in a group with others: their keys are locked until the whole is decided, so that nobody else ever
//! sees a charge that did not count.

use std::sync::{Arc, MutexGuard};

use tidegate_core::{Decision, Plan, Timestamp};

use super::entry::{EntryCells, WORDS};
use super::shard::{Bounds, NoRoom, Shard, Touch};
use super::space::Spaces;
use super::{AdHocCheck, AdHocStore, lock};
use crate::memory::table::Fingerprint;

/// Ad hoc checks of one group, on their way to their keys.
pub(crate) struct Beside<'c> {
    now: Timestamp,
    members: Vec<Member<'c>>,
}

struct Member<'c> {
    check: AdHocCheck<'c>,
    print: Fingerprint,
    store: Arc<AdHocStore>,
    /// The places of its store and of its shard in it.
    place: (usize, usize),
}

/// The same with the shards they touch, all locked.
pub(crate) struct Locked<'a> {
    now: Timestamp,
    touch: Touch,
    members: Vec<Held<'a>>,
    /// In the order of their places, so that no two groups wait for each other.
    shards: Vec<MutexGuard<'a, Shard>>,
    /// The entries of members charged, as they were before.
    before: Vec<Option<[u64; WORDS]>>,
}

struct Held<'a> {
    check: AdHocCheck<'a>,
    print: Fingerprint,
    bounds: Bounds,
    /// The place of its shard among those locked.
    shard: usize,
}

impl<'c> Beside<'c> {
    pub(crate) fn of(spaces: &Spaces, now: Timestamp, checks: &[AdHocCheck<'c>]) -> Self {
        let mut members: Vec<Member<'c>> = Vec::with_capacity(checks.len());
        for check in checks {
            let (space, store) = spaces.placed(check.space);
            let print = store.print(check.key);
            let twin = members.iter().find(|other| other.place.0 == space && other.print == print);
            let limit = twin.map_or(check.limit, |twin| twin.check.limit);
            let place = (space, store.shard_index(print));
            members.push(Member { check: AdHocCheck { limit, ..*check }, print, store, place });
        }
        Beside { now, members }
    }

    /// Locks what they touch. Whoever also locks shards of policies' keys does so afterwards. With `charges` some
    /// check of the group is to charge, and keys that came with other figures are kept under these from now on.
    pub(crate) fn lock(&self, charges: bool) -> Locked<'_> {
        let mut places: Vec<_> = self.members.iter().map(|member| (member.place, &member.store)).collect();
        places.sort_unstable_by_key(|(place, _)| *place);
        places.dedup_by_key(|(place, _)| *place);
        let shards = places.iter().map(|((_, shard), store)| lock(&store.shards[*shard])).collect();
        let members = self.members.iter().map(|member| Held {
            check: member.check,
            print: member.print,
            bounds: member.store.bounds,
            shard: places.partition_point(|(place, _)| *place < member.place),
        });
        Locked {
            now: self.now,
            touch: if charges { Touch::Change } else { Touch::Look },
            members: members.collect(),
            shards,
            before: Vec::new(),
        }
    }
}

impl Locked<'_> {
    /// What each would be answered, were it alone; nothing is charged.
    pub(crate) fn foresee(&mut self) -> Vec<Decision> {
        let foresee = |locked: &mut Self, member: usize| {
            let cost = locked.members[member].check.cost;
            locked.with(member, |plan, cells, now| plan.foresee(cells, now, cost))
        };
        (0..self.members.len()).map(|member| foresee(self, member)).collect()
    }

    /// Charges one after the other. Each fits alone, but two may be of one key, and a shard may have no room left:
    /// then the one that does not fit is told, and nothing is charged.
    ///
    /// # Errors
    /// What is answered then.
    pub(crate) fn charge(&mut self, mut foreseen: Vec<Decision>) -> Result<Vec<Decision>, Vec<Decision>> {
        let mut decisions = Vec::with_capacity(foreseen.len());
        for member in 0..self.members.len() {
            let Held { check, print, shard, .. } = self.members[member];
            let before = self.shards[shard].entry(print);
            let decision = self.with(member, |plan, cells, now| plan.check(cells, now, check.cost));
            if !decision.is_allowed() {
                self.put_back();
                foreseen[member] = decision;
                return Err(foreseen);
            }
            self.before.push(before);
            decisions.push(decision);
        }
        Ok(decisions)
    }

    /// Undoes what was charged.
    pub(crate) fn put_back(&mut self) {
        // Backwards, so that of two entries of one key the older is written last.
        while let Some(before) = self.before.pop() {
            let Held { print, shard, .. } = self.members[self.before.len()];
            self.shards[shard].put_back(print, before.as_ref());
        }
    }

    fn with(
        &mut self,
        member: usize,
        apply: impl FnOnce(&Plan, &mut EntryCells<'_>, Timestamp) -> Decision,
    ) -> Decision {
        let Held { check, print, bounds, shard } = &self.members[member];
        let decided = self.shards[*shard].with(check.limit, *print, self.now, self.touch, bounds, apply);
        decided.unwrap_or_else(|NoRoom| Decision::overloaded(check.limit.limit().capacity()))
    }
}
