//! Many checks at once: what they will look at is read ahead together, so that one waits for memory while others do.

use std::sync::{MutexGuard, TryLockError};

use tidegate_core::{Decision, Timestamp};

use super::shard::Shard;
use super::table::Fingerprint;
use super::{MemoryStore, lock};
use crate::store::Check;

/// Checks read ahead together. More would hold more locks for longer than the waits they save are worth.
const AT_ONCE: usize = 16;

impl MemoryStore {
    /// Decides checks that are independent of one another, in their order.
    pub(super) fn decide_batch(&self, now: Timestamp, checks: &[Check<'_>]) -> Vec<Decision> {
        let mut decisions = Vec::with_capacity(checks.len());
        for checks in checks.chunks(AT_ONCE) {
            let mut members = [Member { print: Fingerprint::NONE, place: 0 }; AT_ONCE];
            for (member, check) in members.iter_mut().zip(checks) {
                member.print = self.print(check.policy, check.key);
            }
            let mut begun = 0;
            while begun < checks.len() {
                begun += self.decide_run(now, &checks[begun..], &mut members[begun..], &mut decisions);
            }
        }
        decisions
    }

    /// Decides as many of the first checks as the locks allow, one at least, and returns how many.
    fn decide_run(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        members: &mut [Member],
        decisions: &mut Vec<Decision>,
    ) -> usize {
        let mut held = Held::default();
        let mut run = 0;
        for member in members.iter_mut().take(checks.len()) {
            let Some(place) = held.take(self, self.shard_index(member.print)) else { break };
            member.place = place;
            run += 1;
        }
        let (checks, members) = (&checks[..run], &members[..run]);
        // Between these reads there is nothing to wait for, no lock either: their misses overlap.
        for (check, member) in checks.iter().zip(members) {
            held.shard(member.place).read_ahead(check.policy, member.print);
        }
        for (check, member) in checks.iter().zip(members) {
            let shard = held.shard(member.place);
            self.decide_in(shard, member.print, now, check, |decision| decisions.push(decision));
        }
        run
    }
}

/// A check's key, and the place of its shard among those held.
#[derive(Clone, Copy)]
struct Member {
    print: Fingerprint,
    place: usize,
}

/// Shards that are locked.
#[derive(Default)]
struct Held<'a> {
    shards: [Option<(usize, MutexGuard<'a, Shard>)>; AT_ONCE],
    count: usize,
    /// The lowest bits of their numbers, as a set: those that are not in it are not looked for.
    seen: u64,
}

impl<'a> Held<'a> {
    /// Locks the shard of this number, if it is not held yet; `None` if somebody else has it.
    ///
    /// Waits for it only while no other is held, so that no two wait for each other.
    #[inline]
    fn take(&mut self, store: &'a MemoryStore, index: usize) -> Option<usize> {
        let bit = 1 << (index % 64);
        if self.seen & bit != 0
            && let Some(place) = self.place_of(index)
        {
            return Some(place);
        }
        let shard = &store.shards[index];
        let guard = match shard.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if self.count == 0 => lock(shard),
            Err(TryLockError::WouldBlock) => return None,
        };
        let place = self.count;
        self.shards[place] = Some((index, guard));
        self.count += 1;
        self.seen |= bit;
        Some(place)
    }

    fn place_of(&self, index: usize) -> Option<usize> {
        let is_it = |held: &Option<(usize, _)>| held.as_ref().is_some_and(|(other, _)| *other == index);
        self.shards[..self.count].iter().position(is_it)
    }

    #[inline]
    fn shard(&mut self, place: usize) -> &mut Shard {
        // Places are those that `take` returned.
        &mut self.shards[place].as_mut().expect("it was taken").1
    }
}
