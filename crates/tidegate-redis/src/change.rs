//! Changes worked out here rather than in a script: credits, penalties, and carrying a record over to other figures.

use tidegate::{KeyState, Timestamp};
use tidegate_core::{Cells, Since};

use crate::prepared::Prepared;
use crate::record::{Damaged, Tag, decode, encode, logs_in, width};
use crate::script::{Lives, Swap};

/// A record as it was read, seen under the figures in force.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The bytes that were read; empty for none.
    kept: Vec<u8>,
    /// The state, carried over if it stood under other figures.
    pub(crate) state: KeyState,
    /// Whether it was.
    pub(crate) carried: bool,
}

impl Seen {
    /// Of a record that was read.
    pub(crate) fn of(plan: &Prepared, kept: Vec<u8>, now: Timestamp) -> Result<Seen, Damaged> {
        if kept.is_empty() {
            return Ok(Seen { kept, state: KeyState::new(&plan.plan), carried: false });
        }
        let (tag, length) = match kept.starts_with(&plan.tag) {
            true => (Tag { plan: plan.plan.clone(), names: plan.names.clone() }, plan.tag.len()),
            false => Tag::decode(&kept)?,
        };
        let state = &kept[length..];
        let logs = logs_in(&tag.plan, state)?;
        let state = decode(&tag.plan, &state[..8 * width(&tag.plan)], logs)?;
        let carried = kept[..length] != plan.tag[..];
        let state = if carried { plan.carry_over(&tag, &state, now) } else { state };
        Ok(Seen { kept, state, carried })
    }

    /// Whether nothing was kept.
    pub(crate) fn is_absent(&self) -> bool {
        self.kept.is_empty()
    }

    /// The swap after which the record holds `after`, which became of [`state`](Self::state).
    pub(crate) fn swap(self, plan: &Prepared, record: &[u8], after: &KeyState, life: &Life) -> Swap {
        let at = life.now.max(after.last());
        let as_new = plan.plan.as_new_after(after, at);
        let mut bytes = plan.tag.clone();
        encode(&plan.plan, after, &mut bytes);
        let life = life.of(at, as_new.map(|wait| wait.as_micros()));
        Swap { record: record.to_vec(), before: self.kept, after: bytes, life }
    }

    /// The swap after which there is no record.
    pub(crate) fn forget(self, record: &[u8]) -> Swap {
        Swap { record: record.to_vec(), before: self.kept, after: Vec::new(), life: None }
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
        let millis = as_new.map(|micros| {
            let micros = u128::from(at.micros_since(self.now)) + micros;
            micros.div_ceil(1000) + u128::from(self.lives.spare) + 1
        });
        let ends = millis.and_then(|millis| u64::try_from(millis).ok()).filter(|millis| *millis < LONGEST);
        ends.or(self.lives.unending)
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
