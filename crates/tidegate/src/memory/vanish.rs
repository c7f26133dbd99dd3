//! When a state may go: once it has been as new for long enough.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Cells, MAX_WORDS, Plan, Timestamp};

use super::cells::{SlotCells, free_logs, last_of, plan_id};
use super::logs::Logs;
use crate::active::{ActivePolicy, PlanId};

/// How long a state is kept after it is as new, so that stamps this late lose nothing. In microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spare(u64);

impl From<Duration> for Spare {
    fn from(spare: Duration) -> Self {
        Spare(u64::try_from(spare.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Spare {
    /// Whether a stamp that is late at `now` may be from before `instant`, and nothing lost.
    pub(crate) fn reaches(self, instant: Timestamp, now: Timestamp) -> bool {
        now.micros_since(instant) < self.0
    }
}

/// The versions that states of a shard were written under, to know their figures without their keys. In the order
/// of their ids.
#[derive(Debug, Default)]
pub(crate) struct Versions(Vec<Arc<ActivePolicy>>);

impl Versions {
    /// Holds on to a version that state is about to be written under.
    pub(crate) fn note(&mut self, version: &Arc<ActivePolicy>) {
        let place = self.0.partition_point(|other| other.ids().start < version.ids().start);
        if self.0.get(place).is_none_or(|other| !Arc::ptr_eq(other, version)) {
            self.0.insert(place, Arc::clone(version));
        }
    }

    /// The version that has this plan, and the plan.
    pub(crate) fn get(&self, id: PlanId) -> Option<(&Arc<ActivePolicy>, &Plan)> {
        let after = self.0.partition_point(|version| version.ids().start <= id.get());
        let version = self.0.get(after.checked_sub(1)?)?;
        Some((version, version.plan(id)?))
    }

    /// Lets the versions go of which no plan is used.
    pub(crate) fn retain_used(&mut self, used: &BTreeSet<PlanId>) {
        self.0.retain(|version| version.has_any(used));
        if self.0.is_empty() {
            self.0.shrink_to_fit();
        }
    }
}

/// Decides which states may go, and frees what they keep outside their slots.
pub(crate) struct Vanish<'a> {
    pub(crate) logs: &'a mut Logs,
    pub(crate) versions: &'a Versions,
    /// The latest instant at which a state that was dropped had become as new: no stamp before it counts.
    pub(crate) floor: &'a mut Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) spare: Spare,
}

impl Vanish<'_> {
    /// Whether a state has to stay.
    #[inline]
    pub(crate) fn keep(&mut self, words: &[u64]) -> bool {
        // It was not as new before it was last written; in a flood that is all there is to say.
        if self.spare.reaches(last_of(words), self.now) {
            return true;
        }
        self.keep_old(words)
    }

    fn keep_old(&mut self, words: &[u64]) -> bool {
        let at = match as_new_at(self.versions, words, self.logs) {
            Some(at) if at + u128::from(self.spare.0) <= u128::from(self.now.as_micros()) => at,
            _ => return true,
        };
        forget(self.versions, words, self.logs);
        // It is not later than `now`, so it fits.
        *self.floor = (*self.floor).max(Timestamp::saturating_from_micros(at as u64));
        false
    }
}

/// The instant, in microseconds, by which a state is as new; `None` if it may never be.
pub(crate) fn as_new_at(versions: &Versions, words: &[u64], logs: &mut Logs) -> Option<u128> {
    let mut copy = [0; MAX_WORDS];
    let copy = &mut copy[..words.len()];
    copy.copy_from_slice(words);
    let (version, plan) = versions.get(plan_id(words))?;
    let cells = SlotCells::new(plan, copy, logs);
    let last = cells.last();
    let by_own = plan.as_new_after(&cells, last);
    version.as_new_by(last, by_own.map(|wait| u128::from(last.as_micros()) + wait.as_micros()))
}

/// Frees what a state keeps outside its slot.
pub(crate) fn forget(versions: &Versions, words: &[u64], logs: &mut Logs) {
    if let Some((_, plan)) = versions.get(plan_id(words)) {
        free_logs(plan, words, logs);
    }
}
