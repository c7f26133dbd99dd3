//! One shard: tables of states by their width, under one lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_core::{Cells, KeyState, MAX_WORDS, Plan, Timestamp, Wait};

use super::cells::{SlotCells, free_logs, fresh_words, plan_id};
use super::logs::Logs;
use super::table::{Fingerprint, Slot, Table};
use super::{OnFull, Spare};
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

#[derive(Debug)]
pub(crate) struct Shard {
    /// By the number of words of a state; none is made before it is needed.
    tables: [Option<Box<Table>>; MAX_WORDS + 1],
    logs: Logs,
    /// The versions that states here were written under, to know their figures without their keys.
    versions: HashMap<PlanId, Arc<ActivePolicy>>,
    /// The latest instant at which a state that was dropped had become as new: no stamp before it counts.
    floor: Timestamp,
    counts: Counts,
    /// For picking what to shed; any sequence that does not repeat soon will do.
    picks: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Shard {
            tables: std::array::from_fn(|_| None),
            logs: Logs::default(),
            versions: HashMap::new(),
            floor: Timestamp::EPOCH,
            counts: Counts::default(),
            picks: 0,
        }
    }
}

/// A shard had no room for a key it had not seen.
pub(crate) struct NoRoom;

impl Shard {
    /// Runs `apply` on the state of `key`, whether kept or not, and keeps what it leaves.
    #[inline]
    pub(crate) fn with<R>(
        &mut self,
        policy: &Arc<ActivePolicy>,
        (key, print): (&[u8], Fingerprint),
        now: Timestamp,
        bounds: &Bounds,
        apply: impl FnOnce(&Plan, &mut SlotCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let (id, plan) = policy.plan_for(key);
        let now = now.max(self.floor);
        if let Some(table) = &mut self.tables[plan.packed_words()]
            && let Some(slot) = table.find(print)
        {
            let words = table.words_mut(slot);
            if plan_id(words) == id {
                return Ok(apply(plan, &mut SlotCells::new(plan, words, &mut self.logs), now));
            }
        }
        self.with_unfound(policy, (key, print), now, bounds, apply)
    }

    /// A state that is not there, or there under other figures.
    #[cold]
    #[inline(never)]
    fn with_unfound<R>(
        &mut self,
        policy: &Arc<ActivePolicy>,
        (key, print): (&[u8], Fingerprint),
        now: Timestamp,
        bounds: &Bounds,
        apply: impl FnOnce(&Plan, &mut SlotCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let (id, plan) = policy.plan_for(key);
        let mut words = fresh_words(plan, id);
        let words = &mut words[..plan.packed_words()];
        let carried = self.take_carried(policy, key, print);
        let was_kept = carried.is_some();
        if let Some(state) = carried {
            write(plan, &state, &mut SlotCells::new(plan, words, &mut self.logs));
        }
        let mut cells = SlotCells::new(plan, words, &mut self.logs);
        let result = apply(plan, &mut cells, now);
        if !cells.changed() && !was_kept {
            return Ok(result);
        }
        if !was_kept && !self.make_way(plan.packed_words(), now, bounds) {
            free_logs(plan, words, &mut self.logs);
            self.counts.refused += 1;
            return Err(NoRoom);
        }
        self.insert(policy, id, print, words, now, bounds.spare);
        Ok(result)
    }

    /// Takes out a state kept under other figures, carried over to those in force.
    fn take_carried(&mut self, policy: &ActivePolicy, key: &[u8], print: Fingerprint) -> Option<KeyState> {
        let own = policy.plan_for(key).1.packed_words();
        // Another width can hold the key only if the policy has changed.
        let (width, slot) = match policy.has_replaced() {
            true => self.find_any(print)?,
            false => (own, self.tables[own].as_ref()?.find(print)?),
        };
        let table = self.tables[width].as_deref_mut()?;
        let written = plan_id(table.words(slot));
        let version = self.versions.get(&written).cloned()?;
        let old = version.plan(written)?;
        let cells = SlotCells::new(old, table.words_mut(slot), &mut self.logs);
        let state = policy.carry_over(key, &cells, written);
        free_logs(old, table.words(slot), &mut self.logs);
        table.remove(slot);
        state
    }

    fn find_any(&self, print: Fingerprint) -> Option<(usize, Slot)> {
        let tables =
            self.tables.iter().enumerate().filter_map(|(width, table)| Some((width, table.as_ref()?)));
        tables.filter_map(|(width, table)| Some((width, table.find(print)?))).next()
    }

    fn insert(
        &mut self,
        policy: &Arc<ActivePolicy>,
        id: PlanId,
        print: Fingerprint,
        words: &[u64],
        now: Timestamp,
        spare: Spare,
    ) {
        self.versions.entry(id).or_insert_with(|| Arc::clone(policy));
        let width = words.len();
        let table = self.tables[width].get_or_insert_with(|| Box::new(Table::new(width)));
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
        for table in self.tables.iter_mut().flatten() {
            self.counts.vanished += table.walk(steps, |words| vanish.keep(words)) as u64;
        }
    }

    /// Drops, among a few, the state that is soonest as new. `false` if there is none to drop.
    fn shed(&mut self, width: usize) -> bool {
        self.picks = self.picks.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let held = |table: &Option<Box<Table>>| table.as_ref().is_some_and(|table| table.len() > 0);
        let fuller = || self.tables.iter().position(held);
        let Some(width) = Some(width).filter(|width| held(&self.tables[*width])).or_else(fuller) else {
            return false;
        };
        let Some(table) = self.tables[width].as_deref_mut() else { return false };
        let slots: Vec<Slot> = table.sample(self.picks, SAMPLE).collect();
        let mut best: Option<(Option<u128>, Slot)> = None;
        for slot in slots {
            let mut words = [0; MAX_WORDS];
            words[..width].copy_from_slice(table.words(slot));
            let as_new = as_new_at(&self.versions, &mut words[..width], &mut self.logs);
            // `None` is never: it is shed last.
            let rank = |at: Option<u128>| at.unwrap_or(u128::MAX);
            if best.is_none_or(|(other, _)| rank(as_new) < rank(other)) {
                best = Some((as_new, slot));
            }
        }
        let Some((_, slot)) = best else { return false };
        forget(&self.versions, table.words(slot), &mut self.logs);
        table.remove(slot);
        self.counts.shed += 1;
        true
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, print: Fingerprint) {
        let Some((width, slot)) = self.find_any(print) else { return };
        let Some(table) = self.tables[width].as_deref_mut() else { return };
        forget(&self.versions, table.words(slot), &mut self.logs);
        table.remove(slot);
    }

    /// Drops what is as new and what `gone` says belongs to a policy that is no more; returns the plans that
    /// states are still kept under.
    pub(crate) fn sweep(
        &mut self,
        now: Timestamp,
        spare: Spare,
        gone: impl Fn(&ActivePolicy) -> bool,
    ) -> Vec<PlanId> {
        let mut used = HashSet::new();
        for table in self.tables.iter_mut().flatten() {
            let logs = &mut self.logs;
            let mut vanish = Vanish { logs, versions: &self.versions, floor: &mut self.floor, now, spare };
            table.retain(|words| {
                let id = plan_id(words);
                let is_gone = vanish.versions.get(&id).is_none_or(|version| gone(version));
                if is_gone {
                    forget(vanish.versions, words, vanish.logs);
                    return false;
                }
                let kept = vanish.keep(words);
                if kept {
                    used.insert(id);
                }
                kept
            });
        }
        self.versions.retain(|id, _| used.contains(id));
        used.into_iter().collect()
    }

    /// Keys held.
    pub(crate) fn len(&self) -> usize {
        self.tables.iter().flatten().map(|table| table.len()).sum()
    }

    /// Bytes of heap held.
    pub(crate) fn bytes(&self) -> usize {
        let tables: usize =
            self.tables.iter().flatten().map(|table| table.bytes() + size_of::<Table>()).sum();
        tables + self.logs.bytes()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

/// Decides which states may go: those that have been as new for the spare time.
struct Vanish<'a> {
    logs: &'a mut Logs,
    versions: &'a HashMap<PlanId, Arc<ActivePolicy>>,
    floor: &'a mut Timestamp,
    now: Timestamp,
    spare: Spare,
}

impl Vanish<'_> {
    fn keep(&mut self, words: &[u64]) -> bool {
        let mut copy = [0; MAX_WORDS];
        copy[..words.len()].copy_from_slice(words);
        let at = match as_new_at(self.versions, &mut copy[..words.len()], self.logs) {
            Some(at) if at + self.spare.micros() <= u128::from(self.now.as_micros()) => at,
            _ => return true,
        };
        forget(self.versions, words, self.logs);
        // It is not later than `now`, so it fits.
        *self.floor = (*self.floor).max(Timestamp::saturating_from_micros(at as u64));
        false
    }
}

/// The instant, in microseconds, at which a state is as new; `None` if never.
fn as_new_at(
    versions: &HashMap<PlanId, Arc<ActivePolicy>>,
    words: &mut [u64],
    logs: &mut Logs,
) -> Option<u128> {
    let id = plan_id(words);
    let plan = versions.get(&id)?.plan(id)?;
    let cells = SlotCells::new(plan, words, logs);
    let last = cells.last();
    plan.as_new_after(&cells, last)
        .map(|wait| Wait::from_micros(u128::from(last.as_micros())).plus(wait).as_micros())
}

/// Frees what a state keeps outside its slot.
fn forget(versions: &HashMap<PlanId, Arc<ActivePolicy>>, words: &[u64], logs: &mut Logs) {
    let id = plan_id(words);
    if let Some(plan) = versions.get(&id).and_then(|version| version.plan(id)) {
        free_logs(plan, words, logs);
    }
}

/// Writes a plain state into a slot's words.
fn write(plan: &Plan, state: &KeyState, cells: &mut SlotCells<'_>) {
    for (index, limit) in plan.limits().iter().enumerate() {
        cells.save(index, limit, state.load(index, limit));
    }
    cells.set_last(state.last());
}
