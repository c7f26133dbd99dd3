//! A key's entry: its stamp, its level, and the figures it was written under.

use tidegate_core::{Cells, KeyState, Limit, Log, Plan, State, Timestamp, Wait};

use super::limit::{AdHocLimit, Figures};

/// Words of an entry: the stamp, the level in the compact encoding, the figures.
pub(super) const WORDS: usize = 5;

/// The words of a key never seen, under `limit`.
pub(super) fn fresh(limit: &AdHocLimit) -> [u64; WORDS] {
    let [level, rest] = limit.limit().pack_untouched();
    let Figures([high, low]) = limit.figures();
    [0, level, rest, high, low]
}

/// The figures an entry was written under.
#[inline]
pub(super) fn figures(words: &[u64]) -> Figures {
    Figures([words[3], words[4]])
}

/// Whether an entry written under `limit` holds a full bucket, which is what an absent key has.
pub(super) fn is_full(words: &[u64], limit: &AdHocLimit) -> bool {
    words[1..3] == limit.limit().pack_untouched()
}

/// The instant, in microseconds, at which an entry is as new; `None` if never.
pub(super) fn as_new_at(words: &[u64], plan: &Plan) -> Option<u128> {
    let mut words = [words[0], words[1], words[2], words[3], words[4]];
    let cells = EntryCells::new(&mut words);
    let last = cells.last();
    plan.as_new_after(&cells, last)
        .map(|wait| Wait::from_micros(u128::from(last.as_micros())).plus(wait).as_micros())
}

/// An entry's state as the arithmetic sees it.
pub(super) struct EntryCells<'a> {
    words: &'a mut [u64],
    changed: bool,
}

impl<'a> EntryCells<'a> {
    #[inline]
    pub(super) fn new(words: &'a mut [u64]) -> Self {
        EntryCells { words, changed: false }
    }

    /// Whether anything was written.
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// Writes a plain state.
    pub(super) fn write(&mut self, plan: &Plan, state: &KeyState) {
        for (index, limit) in plan.limits().iter().enumerate() {
            self.save(index, limit, state.load(index, limit));
        }
        self.set_last(state.last());
    }
}

impl Cells for EntryCells<'_> {
    #[inline]
    fn last(&self) -> Timestamp {
        Timestamp::saturating_from_micros(self.words[0])
    }

    #[inline]
    fn set_last(&mut self, last: Timestamp) {
        self.words[0] = last.as_micros();
        self.changed = true;
    }

    #[inline]
    fn load(&self, _: usize, limit: &Limit) -> State<'_> {
        limit.unpack([self.words[1], self.words[2]]).expect("a GCRA keeps a level, not a log")
    }

    #[inline]
    fn save(&mut self, _: usize, limit: &Limit, state: State<'_>) {
        self.words[1..3].copy_from_slice(&limit.pack(state));
    }

    fn log_mut(&mut self, _: usize) -> &mut Log {
        unreachable!("a GCRA keeps a level, not a log")
    }
}
