//! A key's state as words of a slot, with room beside it for the plan it was written under.

use tidegate_core::{Cells, Limit, Log, MAX_WORDS, Plan, State, Timestamp, WORD_BITS};

use super::logs::Logs;
use crate::active::PlanId;

/// The bits of a word that belong to the state; those above hold half of a plan's id each.
const STATE: u64 = (1 << WORD_BITS) - 1;
const ID_HALF: u32 = PlanId::BITS / 2;

const _: () = assert!(WORD_BITS + ID_HALF <= u64::BITS, "a plan's id has to fit beside the state");

/// The plan a slot's state was written under.
#[inline]
pub(crate) fn plan_id(words: &[u64]) -> PlanId {
    let half = |word: u64| (word >> WORD_BITS) as u32;
    PlanId::new(half(words[0]) << ID_HALF | half(words[1]))
}

/// When a slot's state was last written.
#[inline]
pub(crate) fn last_of(words: &[u64]) -> Timestamp {
    Timestamp::saturating_from_micros(words[0] & STATE)
}

/// The words of a key never seen, to be written under `id`.
pub(crate) fn fresh_words(plan: &Plan, id: PlanId) -> [u64; MAX_WORDS] {
    let mut words = [0; MAX_WORDS];
    words[0] = u64::from(id.get() >> ID_HALF) << WORD_BITS;
    words[1] = u64::from(id.get() & ((1 << ID_HALF) - 1)) << WORD_BITS;
    let mut at = 1;
    for limit in plan.limits() {
        for (word, value) in words[at..].iter_mut().zip(limit.pack_untouched()).take(limit.packed_words()) {
            *word |= value;
        }
        at += limit.packed_words();
    }
    words
}

/// A key's state in the words of a slot and the logs beside the table.
pub(crate) struct SlotCells<'a> {
    plan: &'a Plan,
    words: &'a mut [u64],
    logs: &'a mut Logs,
    changed: bool,
}

impl<'a> SlotCells<'a> {
    #[inline]
    pub(crate) fn new(plan: &'a Plan, words: &'a mut [u64], logs: &'a mut Logs) -> Self {
        SlotCells { plan, words, logs, changed: false }
    }

    /// Whether anything was written.
    #[inline]
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// Where the words of the limit at `index` begin.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        1 + self.plan.limits()[..index].iter().map(Limit::packed_words).sum::<usize>()
    }

    #[inline(always)]
    fn put(&mut self, at: usize, value: u64) {
        self.words[at] = self.words[at] & !STATE | value;
    }
}

impl Cells for SlotCells<'_> {
    #[inline(always)]
    fn last(&self) -> Timestamp {
        last_of(self.words)
    }

    #[inline(always)]
    fn set_last(&mut self, last: Timestamp) {
        self.put(0, last.as_micros());
        self.changed = true;
    }

    #[inline(always)]
    fn load(&self, index: usize, limit: &Limit) -> State<'_> {
        let at = self.place(index);
        // A limit of one word does not look at the second, which may not be there.
        let second = self.words.get(at + 1).map_or(0, |word| word & STATE);
        let first = self.words[at] & STATE;
        limit.unpack([first, second]).unwrap_or_else(|| State::Log(self.logs.get(first)))
    }

    #[inline(always)]
    fn save(&mut self, index: usize, limit: &Limit, state: State<'_>) {
        let at = self.place(index);
        if let State::Log(log) = state {
            // No log and an empty one are the same, and none is cheaper.
            if !log.is_empty() || self.words[at] & STATE != 0 {
                *self.log_mut(index) = log.clone();
            }
            return;
        }
        let words = limit.pack(state);
        for (offset, word) in words.into_iter().enumerate().take(limit.packed_words()) {
            self.put(at + offset, word);
        }
    }

    fn log_mut(&mut self, index: usize) -> &mut Log {
        let at = self.place(index);
        let handle = self.logs.get_or_add(self.words[at] & STATE);
        self.put(at, handle);
        self.logs.get_mut(handle)
    }
}

/// Gives the logs of a slot that is about to be dropped back.
pub(crate) fn free_logs(plan: &Plan, words: &[u64], logs: &mut Logs) {
    let mut at = 1;
    for limit in plan.limits() {
        if limit.keeps_log() {
            logs.remove(words[at] & STATE);
        }
        at += limit.packed_words();
    }
}
