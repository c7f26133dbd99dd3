//! One shard: a table of entries under one lock.

use std::borrow::Cow;

use tidegate_core::{Plan, Since, Timestamp};

use super::entry::{self, EntryCells, WORDS};
use super::limit::AdHocLimit;
use crate::memory::{MemoryStats, OnFull, table::Fingerprint, table::Slot, table::Table};

/// Slots looked at on each insert, so that as-new entries vanish without a sweep.
const STEPS: usize = 4;
/// Entries among which the one nearest to full is shed.
const SAMPLE: usize = 8;
/// Microseconds an entry is kept after it is as new, so that stamps this late lose nothing.
const SPARE: u128 = 1_000_000;

/// What a shard does when it is full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) most: usize,
    pub(super) on_full: OnFull,
}

/// What a caller means to do to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    /// Nothing, and so nothing is kept, not even that it came with other figures.
    Look,
    /// To charge or credit it.
    Change,
}

/// A shard had no room for a key it had not seen.
pub(super) struct NoRoom;

#[derive(Debug)]
pub(super) struct Shard {
    table: Table,
    /// The latest instant at which an entry that was dropped had become as new: no stamp before it counts.
    floor: Timestamp,
    shed: u64,
    refused: u64,
    vanished: u64,
    /// For picking what to shed; any sequence that does not repeat soon will do.
    picks: u64,
}

impl Default for Shard {
    fn default() -> Self {
        let table = Table::new(WORDS);
        Shard { table, floor: Timestamp::EPOCH, shed: 0, refused: 0, vanished: 0, picks: 0 }
    }
}

impl Shard {
    /// Runs `apply` on the state of a key, whether kept or not, and keeps what it leaves.
    #[inline]
    pub(super) fn with<R>(
        &mut self,
        limit: &AdHocLimit,
        print: Fingerprint,
        now: Timestamp,
        touch: Touch,
        bounds: &Bounds,
        apply: impl FnOnce(&Plan, &mut EntryCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let now = now.max(self.floor);
        match self.table.find(print) {
            Some(slot) => {
                let words = self.table.words_mut(slot);
                if entry::figures(words) == limit.figures() {
                    return Ok(apply(limit.plan(), &mut EntryCells::new(words), now));
                }
                Ok(carried(words, limit, now, touch, apply))
            }
            None => self.with_unfound(limit, print, now, bounds, apply),
        }
    }

    /// A key that is not held.
    #[cold]
    #[inline(never)]
    fn with_unfound<R>(
        &mut self,
        limit: &AdHocLimit,
        print: Fingerprint,
        now: Timestamp,
        bounds: &Bounds,
        apply: impl FnOnce(&Plan, &mut EntryCells<'_>, Timestamp) -> R,
    ) -> Result<R, NoRoom> {
        let mut words = entry::fresh(limit);
        let mut cells = EntryCells::new(&mut words);
        let result = apply(limit.plan(), &mut cells, now);
        if !cells.changed() || entry::is_full(&words, limit) {
            return Ok(result);
        }
        if !self.make_way(limit, now, bounds) {
            self.refused += 1;
            return Err(NoRoom);
        }
        let Shard { table, floor, .. } = self;
        let mut vanish = Vanish { limit, floor, now };
        let dropped = if table.needs_growth() {
            table.make_room(|words| vanish.keep(words))
        } else {
            table.walk(STEPS, |words| vanish.keep(words))
        };
        self.vanished += dropped as u64;
        self.table.insert(print, &words);
        Ok(result)
    }

    /// Makes sure that one more key may be kept; `false` if it may not.
    fn make_way(&mut self, limit: &AdHocLimit, now: Timestamp, bounds: &Bounds) -> bool {
        if self.table.len() < bounds.most {
            return true;
        }
        // A full shard of as-new entries is not full: look at some before turning anybody away.
        let mut vanish = Vanish { limit, floor: &mut self.floor, now };
        self.vanished += self.table.walk(SAMPLE, |words| vanish.keep(words)) as u64;
        if self.table.len() < bounds.most {
            return true;
        }
        match bounds.on_full {
            OnFull::RefuseNew => false,
            OnFull::Shed => self.shed(limit),
        }
    }

    /// Drops, among a few, the entry that is soonest as new. `false` if there is none to drop.
    fn shed(&mut self, limit: &AdHocLimit) -> bool {
        self.picks = self.picks.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let as_new = |slot: &Slot| {
            let words = self.table.words(*slot);
            // Never is shed last.
            entry::as_new_at(words, limit_of(words, limit).plan()).unwrap_or(u128::MAX)
        };
        let Some(slot) = self.table.sample(self.picks, SAMPLE).min_by_key(as_new) else { return false };
        self.table.remove(slot);
        self.shed += 1;
        true
    }

    /// Forgets a key. Whether it was held.
    pub(super) fn remove(&mut self, print: Fingerprint) -> bool {
        let Some(slot) = self.table.find(print) else { return false };
        self.table.remove(slot);
        true
    }

    /// A key's entry, if it is held.
    pub(super) fn entry(&self, print: Fingerprint) -> Option<[u64; WORDS]> {
        self.table.words(self.table.find(print)?).try_into().ok()
    }

    /// Makes a key's entry what it was; one that was shed meanwhile stays shed, as is told.
    pub(super) fn put_back(&mut self, print: Fingerprint, before: Option<&[u64; WORDS]>) {
        let Some(slot) = self.table.find(print) else { return };
        match before {
            Some(words) => self.table.words_mut(slot).copy_from_slice(words),
            None => self.table.remove(slot),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn add_to(&self, stats: &mut MemoryStats) {
        stats.keys += self.table.len() as u64;
        stats.bytes += self.table.bytes() as u64;
        stats.shed += self.shed;
        stats.refused += self.refused;
        stats.vanished += self.vanished;
    }
}

/// Runs `apply` on an entry written under other figures, carried over to `limit`. What is only looked at stays
/// as it was; what may be changed is kept under the new figures, whatever came of it.
#[cold]
#[inline(never)]
fn carried<R>(
    kept: &mut [u64],
    limit: &AdHocLimit,
    now: Timestamp,
    touch: Touch,
    apply: impl FnOnce(&Plan, &mut EntryCells<'_>, Timestamp) -> R,
) -> R {
    let old = entry::figures(kept).limit();
    let since = Since::Unknown(now);
    let state = limit.plan().carry_over(old.plan(), &EntryCells::new(kept), &[Some(0)], since);
    let mut words = entry::fresh(limit);
    let mut cells = EntryCells::new(&mut words);
    cells.write(limit.plan(), &state);
    let result = apply(limit.plan(), &mut cells, now);
    if touch == Touch::Change {
        kept.copy_from_slice(&words);
    }
    result
}

/// The limit an entry was written under; most often the one at hand.
fn limit_of<'a>(words: &[u64], at_hand: &'a AdHocLimit) -> Cow<'a, AdHocLimit> {
    let figures = entry::figures(words);
    if figures == at_hand.figures() { Cow::Borrowed(at_hand) } else { Cow::Owned(figures.limit()) }
}

/// Decides which entries may go: those that have been as new for the spare time.
struct Vanish<'a> {
    /// The limit at hand.
    limit: &'a AdHocLimit,
    floor: &'a mut Timestamp,
    now: Timestamp,
}

impl Vanish<'_> {
    fn keep(&mut self, words: &[u64]) -> bool {
        match entry::as_new_at(words, limit_of(words, self.limit).plan()) {
            Some(at) if at + SPARE <= u128::from(self.now.as_micros()) => {
                // It is not later than `now`, so it fits.
                *self.floor = (*self.floor).max(Timestamp::saturating_from_micros(at as u64));
                false
            }
            _ => true,
        }
    }
}
