//! One shard: tables of states by their width, under one lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{Cells, KeyState, MAX_WORDS, Plan, Timestamp};

use super::OnFull;
use super::cells::{SlotCells, free_logs, fresh_words, plan_id};
use super::logs::Logs;
use super::table::{Fingerprint, Slot, Table};
use super::vanish::{Spare, Vanish, Versions, as_new_at, forget};
use crate::active::{ActivePolicy, PlanId};

/// Slots looked at on each insert, so that as-new states vanish without a sweep. More than the two or so that
/// growth outruns it by, few enough not to be felt.
const STEPS: usize = 4;
/// Entries among which the one nearest to full is shed.
const SAMPLE: usize = 8;

/// What a shard does when it is full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) most: usize,
    pub(crate) on_full: OnFull,
    pub(crate) spare: Spare,
}

/// What happened to keys that did not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) shed: u64,
    pub(crate) refused: u64,
    pub(crate) vanished: u64,
}

/// Who is asked about, when, under what.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) policy: &'a Arc<ActivePolicy>,
    pub(crate) key: &'a [u8],
    pub(crate) print: Fingerprint,
    pub(crate) now: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Shard {
    /// By the number of words of a state; an empty one holds no memory.
    tables: [Table; MAX_WORDS + 1],
    logs: Logs,
    versions: Versions,
    /// The latest instant at which a state that was dropped had become as new: no stamp before it counts.
    floor: Timestamp,
    counts: Counts,
    /// For picking what to shed; any sequence that does not repeat soon will do.
    picks: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Shard {
            // A state has a word at least.
            tables: std::array::from_fn(|words| Table::new(words.max(1))),
            logs: Logs::default(),
            versions: Versions::default(),
            floor: Timestamp::EPOCH,
            counts: Counts::default(),
            picks: 0,
        }
    }
}

/// A shard had no room for a key it had not seen.
pub(crate) struct NoRoom;

impl Shard {
    /// Runs `apply` on the state of a key, whether kept or not, and keeps what it leaves.
    #[inline]
    pub(crate) fn with<R>(
        &mut self,
        question: Question<'_>,
        bounds: &Bounds,
        apply: impl FnOnce(&Plan, &mut SlotCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        if let Some((plan, mut cells, now)) = self.known(&question) {
            return Ok(apply(plan, &mut cells, now));
        }
        self.with_unknown(question, bounds, apply)
    }

    /// The state of a key that is kept under the figures in force, with them and the instant it is decided at.
    #[inline(always)]
    pub(crate) fn known<'a>(
        &'a mut self,
        question: &Question<'a>,
    ) -> Option<(&'a Plan, SlotCells<'a>, Timestamp)> {
        let (id, plan) = question.policy.plan_for(question.key);
        let table = &mut self.tables[plan.packed_words()];
        let slot = table.find(question.print)?;
        let words = table.words_mut(slot);
        let now = question.now.max(self.floor);
        (plan_id(words) == id).then(|| (plan, SlotCells::new(plan, words, &mut self.logs), now))
    }

    /// Reads where a key of `policy` has its place, so that it is at hand when it is looked for.
    #[inline]
    pub(crate) fn read_ahead(&self, policy: &ActivePolicy, print: Fingerprint) {
        // A key with figures of its own is mostly as wide as the others; if not, it is looked for a little longer.
        self.tables[policy.policy().plan().packed_words()].read_ahead(print);
    }

    /// A state that is not there, or there under other figures.
    #[cold]
    #[inline(never)]
    pub(crate) fn with_unknown<R>(
        &mut self,
        question: Question<'_>,
        bounds: &Bounds,
        apply: impl FnOnce(&Plan, &mut SlotCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let Question { policy, key, print, .. } = question;
        let now = question.now.max(self.floor);
        let (id, plan) = policy.plan_for(key);
        let mut words = fresh_words(plan, id);
        let words = &mut words[..plan.packed_words()];
        let carried = self.take_carried(question);
        let is_new = carried.is_none();
        let mut cells = SlotCells::new(plan, words, &mut self.logs);
        if let Some(state) = carried {
            write(plan, &state, &mut cells);
        }
        let at = if is_new { policy.decided_at(key, now) } else { now };
        let result = apply(plan, &mut cells, at);
        if is_new && !cells.changed() {
            return Ok(result);
        }
        if is_new && !self.make_way(words.len(), now, bounds) {
            free_logs(plan, words, &mut self.logs);
            self.counts.refused += 1;
            return Err(NoRoom);
        }
        self.insert(policy, print, words, now, bounds.spare);
        Ok(result)
    }

    /// Takes out a state kept under other figures, carried over to those in force.
    fn take_carried(&mut self, Question { policy, key, print, .. }: Question<'_>) -> Option<KeyState> {
        let own = policy.plan_for(key).1.packed_words();
        // Another width can hold the key only if the policy has changed.
        let (width, slot) = match policy.has_replaced() {
            true => self.find_any(print)?,
            false => (own, self.tables[own].find(print)?),
        };
        let carried = self.read(width, slot, |cells, written| policy.carry_over(key, cells, written));
        self.drop_slot(width, slot);
        carried?
    }

    fn find_any(&self, print: Fingerprint) -> Option<(usize, Slot)> {
        let mut tables = self.tables.iter().enumerate();
        tables.find_map(|(width, table)| Some((width, table.find(print)?)))
    }

    /// Reads a state as it was written.
    fn read<R>(
        &mut self,
        width: usize,
        slot: Slot,
        read: impl FnOnce(&SlotCells<'_>, PlanId) -> R,
    ) -> Option<R> {
        let words = self.tables[width].words_mut(slot);
        let id = plan_id(words);
        let (_, plan) = self.versions.get(id)?;
        Some(read(&SlotCells::new(plan, words, &mut self.logs), id))
    }

    fn drop_slot(&mut self, width: usize, slot: Slot) {
        let table = &mut self.tables[width];
        forget(&self.versions, table.words(slot), &mut self.logs);
        table.remove(slot);
    }

    fn insert(
        &mut self,
        version: &Arc<ActivePolicy>,
        print: Fingerprint,
        words: &[u64],
        now: Timestamp,
        spare: Spare,
    ) {
        self.versions.note(version);
        let table = &mut self.tables[words.len()];
        let mut vanish =
            Vanish { logs: &mut self.logs, versions: &self.versions, floor: &mut self.floor, now, spare };
        let dropped = if table.needs_growth() {
            table.make_room(|words| vanish.keep(words))
        } else {
            table.walk(STEPS, |words| vanish.keep(words))
        };
        self.counts.vanished += dropped as u64;
        table.insert(print, words);
    }

    /// Makes sure that one more key may be kept; `false` if it may not.
    fn make_way(&mut self, width: usize, now: Timestamp, bounds: &Bounds) -> bool {
        if self.len() < bounds.most {
            return true;
        }
        // A full shard of as-new states is not full: look at some before turning anybody away.
        self.vanish(SAMPLE, now, bounds.spare);
        if self.len() < bounds.most {
            return true;
        }
        match bounds.on_full {
            OnFull::RefuseNew => false,
            OnFull::Shed => self.shed(width),
        }
    }

    /// Lets the as-new states among the next `steps` slots of every table go.
    fn vanish(&mut self, steps: usize, now: Timestamp, spare: Spare) {
        let mut vanish =
            Vanish { logs: &mut self.logs, versions: &self.versions, floor: &mut self.floor, now, spare };
        for table in &mut self.tables {
            self.counts.vanished += table.walk(steps, |words| vanish.keep(words)) as u64;
        }
    }

    /// Drops, among a few, the state that is soonest as new. `false` if there is none to drop.
    ///
    /// Looks among states as wide as the one that is to come, which are mostly of the same policy.
    fn shed(&mut self, width: usize) -> bool {
        self.picks = self.picks.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let holds = |width: &usize| self.tables[*width].len() > 0;
        let Some(width) = std::iter::once(width).chain(0..=MAX_WORDS).find(holds) else { return false };
        let table = &self.tables[width];
        // Those that are never as new go last.
        let rank =
            |slot: &Slot| as_new_at(&self.versions, table.words(*slot), &mut self.logs).unwrap_or(u128::MAX);
        let Some(slot) = table.sample(self.picks, SAMPLE).min_by_key(rank) else { return false };
        self.drop_slot(width, slot);
        self.counts.shed += 1;
        true
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, print: Fingerprint) {
        if let Some((width, slot)) = self.find_any(print) {
            self.drop_slot(width, slot);
        }
    }

    /// Drops what is as new and what `stays` does not want kept; returns the plans that states are still kept under.
    pub(crate) fn sweep(
        &mut self,
        now: Timestamp,
        spare: Spare,
        stays: impl Fn(&ActivePolicy) -> bool,
    ) -> BTreeSet<PlanId> {
        let mut used = BTreeSet::new();
        let (logs, versions) = (&mut self.logs, &self.versions);
        let mut vanish = Vanish { logs, versions, floor: &mut self.floor, now, spare };
        for table in &mut self.tables {
            table.retain(|words| {
                let id = plan_id(words);
                if !versions.get(id).is_some_and(|(version, _)| stays(version)) {
                    forget(versions, words, vanish.logs);
                    return false;
                }
                let kept = vanish.keep(words);
                if kept {
                    used.insert(id);
                }
                kept
            });
        }
        self.versions.retain_used(&used);
        used
    }

    /// Carries all states of earlier versions of `policy` over to it whose keys it need not know for that.
    pub(crate) fn carry_unnamed(&mut self, policy: &Arc<ActivePolicy>, now: Timestamp, spare: Spare) {
        let ids: BTreeSet<u32> = policy.earlier().flat_map(|version| version.ids()).collect();
        for width in 0..=MAX_WORDS {
            for print in self.tables[width].prints(|words| ids.contains(&plan_id(words).get())) {
                // What was inserted since may have led others to vanish.
                let Some(slot) = self.tables[width].find(print) else { continue };
                let carried = self.read(width, slot, |cells, id| policy.carry_unnamed(cells, id));
                let Some(Some((id, state))) = carried else { continue };
                let Some(plan) = policy.plan(id) else { continue };
                self.drop_slot(width, slot);
                let mut words = fresh_words(plan, id);
                let words = &mut words[..plan.packed_words()];
                write(plan, &state, &mut SlotCells::new(plan, words, &mut self.logs));
                self.insert(policy, print, words, now, spare);
            }
        }
    }

    /// Keys held.
    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    /// Bytes of heap held.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum::<usize>() + self.logs.bytes()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

/// Writes a plain state into a slot's words.
pub(super) fn write(plan: &Plan, state: &KeyState, cells: &mut SlotCells<'_>) {
    for (index, limit) in plan.limits().iter().enumerate() {
        cells.save(index, limit, state.load(index, limit));
    }
    cells.set_last(state.last());
}
