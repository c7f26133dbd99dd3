//! Changes worked out here rather than in a script: credits, penalties, and carrying a record over to other figures.

use tidegate::{KeyState, Plan, Timestamp};
use tidegate_core::{Cells, Since, State};

use crate::names::Names;
use crate::prepared::{Prepared, logs_of};
use crate::record::{Damaged, Tag, decode, encode};
use crate::script::{Lives, LogChange, Read, Swap};

/// A record with its logs as they were read, seen under the figures in force.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The bytes that were read; empty for none.
    kept: Vec<u8>,
    /// The state, carried over if it stood under other figures.
    pub(crate) state: KeyState,
    /// Whether it was.
    pub(crate) carried: bool,
    /// For each log of the plan in force, how it was kept.
    logs: Vec<Origin>,
    /// Hashes of the names of logs that are no more.
    gone: Vec<u32>,
}

/// How a log was kept before.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Absent,
    /// Under a window of this many microseconds, with this running total.
    Kept {
        window: u64,
        total: u64,
        carried: bool,
    },
}

/// The logs that a record under other figures than `plan`'s has: hashes of their names. `None` if it stands under
/// `plan`'s or is absent.
pub(crate) fn foreign_logs(plan: &Prepared, kept: &[u8]) -> Result<Option<Vec<u32>>, Damaged> {
    if kept.is_empty() || kept.starts_with(&plan.tag) {
        return Ok(None);
    }
    let (tag, _) = Tag::decode(kept)?;
    Ok(Some(logs_of(&tag.plan, &tag.names).map(|(_, name)| name).collect()))
}

impl Seen {
    /// Of what was read with the names of the logs that the record itself says it has.
    pub(crate) fn of(plan: &Prepared, read: Read, now: Timestamp) -> Result<Seen, Damaged> {
        if read.kept.is_empty() {
            let logs = plan.logs.iter().map(|_| Origin::Absent).collect();
            let state = KeyState::new(&plan.plan);
            return Ok(Seen { kept: Vec::new(), state, carried: false, logs, gone: Vec::new() });
        }
        let (tag, length) = match read.kept.starts_with(&plan.tag) {
            true => (Tag { plan: plan.plan.clone(), names: plan.names.clone() }, plan.tag.len()),
            false => Tag::decode(&read.kept)?,
        };
        let totals = decode(&tag.plan, &read.kept[length..], Vec::new())?.totals;
        let kept = decode(&tag.plan, &read.kept[length..], read.logs(&totals))?;
        let carried = length != plan.tag.len() || !read.kept.starts_with(&plan.tag);
        let state = if carried { plan.carry_over(&tag, &kept.state, now) } else { kept.state };
        let old: Vec<(usize, u32)> = logs_of(&tag.plan, &tag.names).collect();
        let origin = |name: u32| {
            let place = old.iter().position(|(_, other)| *other == name)?;
            let window = tag.plan.limits()[old[place].0].window()?.as_micros();
            Some(Origin::Kept { window, total: totals[place], carried })
        };
        let logs = plan.logs.iter().map(|name| origin(*name).unwrap_or(Origin::Absent)).collect();
        let gone = old.iter().map(|(_, name)| *name).filter(|name| !plan.logs.contains(name)).collect();
        Ok(Seen { kept: read.kept, state, carried, logs, gone })
    }

    /// Whether nothing was kept.
    pub(crate) fn is_absent(&self) -> bool {
        self.kept.is_empty()
    }

    /// The names of all logs there may be of `record`.
    pub(crate) fn all_logs(&self, plan: &Prepared, record: &[u8]) -> Vec<Vec<u8>> {
        plan.logs.iter().chain(&self.gone).map(|name| Names::log(record, *name)).collect()
    }

    /// The swap after which the record holds `after`, which became of [`state`](Self::state) at `now`.
    pub(crate) fn swap(&self, plan: &Prepared, record: &[u8], after: &KeyState, life: &Life) -> Swap {
        let at = life.now.max(after.last());
        let mut changes = Vec::new();
        let mut totals = Vec::new();
        for ((index, _), origin) in logs_of(&plan.plan, &plan.names).zip(&self.logs) {
            let window = plan.plan.limits()[index].window().map_or(0, |window| window.as_micros());
            let (before, used) =
                (used(&plan.plan, &self.state, index, at), used(&plan.plan, after, index, at));
            let (aged_out, from) = match *origin {
                Origin::Absent => (None, 0),
                Origin::Kept { window: old, total, carried } => {
                    let shorter = if carried { window.min(old) } else { window };
                    (at.as_micros().checked_sub(shorter), total)
                }
            };
            let to = (from + used).saturating_sub(before);
            totals.push(to);
            let life = life.millis(at, u128::from(window));
            changes.push(LogChange::Keep { aged_out, from, to, at: at.as_micros(), life });
        }
        changes.extend(self.gone.iter().map(|_| LogChange::Forget));
        let mut bytes = plan.tag.clone();
        encode(&plan.plan, after, &totals, &mut bytes);
        let as_new = plan.plan.as_new_after(after, at);
        Swap {
            keys: std::iter::once(record.to_vec()).chain(self.all_logs(plan, record)).collect(),
            before: self.kept.clone(),
            after: bytes,
            life: life.of(at, as_new.map(|wait| wait.as_micros())),
            logs: changes,
        }
    }

    /// The swap after which there is no record.
    pub(crate) fn forget(&self, plan: &Prepared, record: &[u8]) -> Swap {
        let logs = self.all_logs(plan, record);
        Swap {
            before: self.kept.clone(),
            after: Vec::new(),
            life: None,
            logs: logs.iter().map(|_| LogChange::Forget).collect(),
            keys: std::iter::once(record.to_vec()).chain(logs).collect(),
        }
    }
}

/// In milliseconds, longer than any server lives: the scripts write what would live so long without an expiry.
const LONGEST: u64 = 1_000_000_000_000_000;

/// When something is written, and how long it lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) now: Timestamp,
    pub(crate) lives: Lives,
}

impl Life {
    /// Milliseconds that a record lives which is as new so many microseconds after `at`; for ever if `None`.
    fn of(&self, at: Timestamp, as_new: Option<u128>) -> Option<u64> {
        let life = as_new.map(|micros| self.millis(at, micros)).filter(|life| *life < LONGEST);
        life.or(self.lives.unending)
    }

    /// Milliseconds until `micros` after `at`, and the spare ones.
    fn millis(&self, at: Timestamp, micros: u128) -> u64 {
        let micros = u128::from(at.micros_since(self.now)) + micros;
        (micros.div_ceil(1000) + u128::from(self.lives.spare) + 1).min(u128::from(LONGEST)) as u64
    }
}

impl Prepared {
    /// `kept`, which stands under `old`, under this plan's figures: nobody knows since when they are in force.
    fn carry_over(&self, old: &Tag, kept: &KeyState, now: Timestamp) -> KeyState {
        let place = |name: &u32| old.names.iter().position(|other| other == name);
        let origins: Vec<Option<usize>> = self.names.iter().map(place).collect();
        self.plan.carry_over(&old.plan, kept, &origins, Since::Unknown(now))
    }
}

/// The cost that a log counts at `at`.
fn used(plan: &Plan, state: &KeyState, index: usize, at: Timestamp) -> u64 {
    let limit = &plan.limits()[index];
    let window = limit.window().map_or(0, |window| window.as_micros());
    match state.load(index, limit) {
        State::Log(log) => {
            let live = |stamp: Timestamp| stamp.as_micros() + window > at.as_micros();
            log.entries().filter(|(stamp, _)| live(*stamp)).map(|(_, cost)| cost).sum()
        }
        _ => 0,
    }
}
