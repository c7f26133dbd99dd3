//! The flat table under the memory store: fingerprints and states side by side in one vector.
//!
//! A slot is `[fp_lo, fp_hi, word, ...]`, so finding a key and reading its state touch the same
//! cache line. The table is kept **sorted**: a key's home slot falls as its `hi` half rises, and
//! within a run of neighbours the entries lie in falling order of `hi`. That is Robin Hood order
//! without counting distances, and it pays three times:
//!
//! * how many of the next slots hold a `hi` above the one searched for is how far to go, and an empty slot
//!   (`hi == 0`) is below them all: a search counts four slots at a time, without a branch to mispredict;
//! * the order does not depend on the capacity, so growing and shrinking are one linear copy into
//!   the new vector, and a capacity need not be a power of two: memory follows the number of keys
//!   in steps of 15 %;
//! * a pass that drops entries closes the gaps in place as it goes.
//!
//! There is no wrap-around. Runs at the end flow into a short tail behind the last home slot, whose
//! last four slots are always empty, which ends every search.
//!
//! Fingerprints are keyed hashes, uniform for anybody without the secret. Should they not be, the
//! table stays right and merely gets slow.

/// How full a table may get, in hundredths of its home slots: longer runs against more memory.
const MAX_LOAD: usize = 88;
/// How many hundredths more keys than now a new vector has room for.
const ROOM: usize = 115;
/// The least number of slots beyond the keys in a new vector, so that small tables grow in few steps.
const LEAST_SPARE: usize = 7;
/// Tables up to this many home slots never shrink: nothing worth having would come back.
const SMALL: usize = 32;
/// Slots compared at once, and kept empty at the very end. Four end two searches in
/// three at the first go in the fullest table, six in seven in a table just grown; more touch more cache lines.
const GROUP: usize = 4;
/// The longest tail a new vector gets. At the highest load a run over the end outgrows it about once in 10^7.
const LONG_TAIL: usize = 64;
/// Words in front of a slot's payload: the two halves of its fingerprint.
const HEAD: usize = 2;
/// A cache line, in words.
const LINE: usize = 8;

/// Who an entry belongs to: 128 bits of a keyed hash of policy, limit and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint {
    lo: u64,
    hi: u64,
}

impl Fingerprint {
    /// Of no key in particular.
    pub(crate) const NONE: Self = Self { lo: 0, hi: 1 };

    /// Takes the two halves of a hash. `hi == 0` marks an empty slot, so a hash that has it counts
    /// as having 1 there: one key in 2^64, at no cost while probing.
    #[inline]
    pub(crate) fn new(lo: u64, hi: u64) -> Self {
        Self { lo, hi: if hi == 0 { 1 } else { hi } }
    }

    /// The half that has no part in an entry's place in its table: shards are picked by it.
    #[inline]
    pub(crate) fn lo(self) -> u64 {
        self.lo
    }
}

/// Where an entry lies. Good until the next call that adds, removes or moves entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// An open-addressing table from fingerprints to a fixed number of words. See the module's head.
#[derive(Debug)]
pub(crate) struct Table {
    cells: Vec<u64>,
    /// The first word that is used: slots start on a cache line, so that 32-byte slots never straddle two.
    base: usize,
    stride: usize,
    /// Slots that can be somebody's home.
    homes: usize,
    /// All slots: the homes and the tail.
    slots: usize,
    len: usize,
    /// The number of the slot that `walk` looks at next.
    cursor: usize,
}

impl Table {
    /// An empty table of entries of `words` words, at least one. It allocates nothing yet.
    pub(crate) fn new(words: usize) -> Self {
        debug_assert!(words > 0, "an entry without a state says no more than its absence");
        Self { cells: Vec::new(), base: 0, stride: HEAD + words, homes: 0, slots: 0, len: 0, cursor: 0 }
    }

    fn with_homes(words: usize, homes: usize) -> Self {
        let mut table = Self::new(words);
        table.homes = homes;
        table.slots = homes + (homes / 2 + 2 * GROUP).min(LONG_TAIL);
        (table.cells, table.base) = empty_cells(table.slots * table.stride);
        table
    }

    /// Entries held.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of heap held.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u64>()
    }

    /// The entry of `key`.
    #[inline]
    pub(crate) fn find(&self, key: Fingerprint) -> Option<Slot> {
        if self.len == 0 {
            return None;
        }
        let mut at = self.search(key.hi);
        // Hardly ever more than one.
        while self.cells[at + 1] == key.hi {
            if self.cells[at] == key.lo {
                return Some(Slot(at));
            }
            at += self.stride;
        }
        None
    }

    /// Reads what a search for `key` looks at first. Nobody waits for what it reads: that is a prefetch, safely.
    #[inline]
    pub(crate) fn read_ahead(&self, key: Fingerprint) {
        if self.len > 0 {
            let home = self.home(key.hi);
            let read = (0..GROUP).fold(0, |read, i| read | self.cells[home + i * self.stride + 1]);
            std::hint::black_box(read);
        }
    }

    /// The words of an entry.
    #[inline]
    pub(crate) fn words(&self, slot: Slot) -> &[u64] {
        &self.cells[slot.0 + HEAD..slot.0 + self.stride]
    }

    /// The words of an entry, to be changed.
    #[inline]
    pub(crate) fn words_mut(&mut self, slot: Slot) -> &mut [u64] {
        &mut self.cells[slot.0 + HEAD..slot.0 + self.stride]
    }

    /// Adds `key`, which must not be there yet, growing the table if it is full.
    pub(crate) fn insert(&mut self, key: Fingerprint, words: &[u64]) -> Slot {
        debug_assert!(self.find(key).is_none(), "inserted twice: {key:?}");
        if self.needs_growth() {
            self.rebuild(homes_for(self.len + 1));
        }
        let (place, hole) = loop {
            let place = self.search(key.hi);
            let mut hole = place;
            while self.cells[hole + 1] != 0 {
                hole += self.stride;
            }
            if hole < self.start_of(self.slots - GROUP) {
                break (place, hole);
            }
            self.lengthen_tail();
        };
        self.cells.copy_within(place..hole, place + self.stride);
        self.cells[place] = key.lo;
        self.cells[place + 1] = key.hi;
        self.words_mut(Slot(place)).copy_from_slice(words);
        self.len += 1;
        Slot(place)
    }

    /// Whether the next insert would grow the table. The time for [`Table::make_room`].
    #[inline]
    pub(crate) fn needs_growth(&self) -> bool {
        self.len >= self.homes * MAX_LOAD / 100
    }

    /// Makes room for more entries: drops those not kept and, if that frees less than a sixteenth,
    /// grows. So the pass over all entries is paid for by at least one insert in sixteen entries,
    /// however few each pass finds to drop. Returns how many were dropped.
    pub(crate) fn make_room(&mut self, keep: impl FnMut(&[u64]) -> bool) -> usize {
        let full = self.homes * MAX_LOAD / 100;
        let dropped = self.retain(keep);
        if self.len >= full - full / 16 {
            self.rebuild(homes_for(self.len + 1));
        }
        dropped
    }

    /// Removes an entry and closes the gap: those behind it that are away from home move one slot nearer.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let gap = slot.0;
        let mut end = gap + self.stride;
        while self.cells[end + 1] != 0 && self.home(self.cells[end + 1]) < end {
            end += self.stride;
        }
        self.cells.copy_within(gap + self.stride..end, gap);
        self.cells[end - self.stride..end].fill(0);
        self.len -= 1;
        // What `walk` was to see next has moved before its cursor: follow it.
        let cursor = self.start_of(self.cursor);
        if gap < cursor && cursor < end {
            self.cursor -= 1;
        }
    }

    /// Drops every entry whose words are not kept, in one pass and in place, and gives memory back
    /// if the table is sparse afterwards. Returns how many were dropped.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&[u64]) -> bool) -> usize {
        let before = self.len;
        let cursor = self.start_of(self.cursor);
        let (mut free, mut cursor_slot) = (self.base, self.slots);
        let end = self.start_of(self.slots);
        for at in (self.base..end).step_by(self.stride) {
            let hi = self.cells[at + 1];
            if hi == 0 {
                continue;
            }
            if !keep(self.words(Slot(at))) {
                self.cells[at..at + self.stride].fill(0);
                self.len -= 1;
                continue;
            }
            // Never behind `at`: with fewer entries before it, an entry only moves nearer to its home.
            let place = self.home(hi).max(free);
            if place < at {
                self.cells.copy_within(at..at + self.stride, place);
                self.cells[at..at + self.stride].fill(0);
            }
            if at >= cursor {
                cursor_slot = cursor_slot.min((place - self.base) / self.stride);
            }
            free = place + self.stride;
        }
        self.cursor = cursor_slot;
        let dropped = before - self.len;
        self.shrink_if_sparse();
        dropped
    }

    /// Looks at the next `steps` slots, occupied or not, from where the last walk ended, and drops
    /// the entries not kept. Walks together go round and round the table; each round sees every
    /// entry that was there at its start and still is, whatever is inserted, removed or grown in
    /// between, and gives memory back at its end if the table is sparse. Returns how many were dropped.
    pub(crate) fn walk(&mut self, steps: usize, mut keep: impl FnMut(&[u64]) -> bool) -> usize {
        let mut dropped = 0;
        for _ in 0..steps {
            if self.cursor >= self.slots {
                self.cursor = 0;
                self.shrink_if_sparse();
            }
            if self.len == 0 && self.homes <= SMALL {
                break;
            }
            let at = self.start_of(self.cursor);
            if self.cells[at + 1] == 0 || keep(self.words(Slot(at))) {
                self.cursor += 1;
            } else {
                // The cursor stays: the next entry may have moved here.
                self.remove(Slot(at));
                dropped += 1;
            }
        }
        dropped
    }

    /// Up to `want` entries in a row from a place chosen by `start`, a random number. Neighbours
    /// are as unrelated as their hashes, so a row is as good a sample as scattered picks, for a
    /// fraction of the cache misses.
    pub(crate) fn sample(&self, start: u64, want: usize) -> impl Iterator<Item = Slot> + '_ {
        let first = multiply_high(start, self.slots);
        (first..self.slots)
            .chain(0..first)
            .map(|slot| self.start_of(slot))
            .filter(|&at| self.cells[at + 1] != 0)
            .map(Slot)
            .take(want)
    }

    /// Whose entries have words that are wanted.
    pub(crate) fn prints(&self, wanted: impl Fn(&[u64]) -> bool) -> Vec<Fingerprint> {
        let found = self.occupied().filter(|at| wanted(self.words(Slot(*at))));
        found.map(|at| Fingerprint { lo: self.cells[at], hi: self.cells[at + 1] }).collect()
    }

    fn occupied(&self) -> impl Iterator<Item = usize> + '_ {
        (self.base..self.start_of(self.slots)).step_by(self.stride).filter(|&at| self.cells[at + 1] != 0)
    }

    /// The first word of the slot where an entry would lie if it were alone.
    #[inline]
    fn home(&self, hi: u64) -> usize {
        self.base + multiply_high(!hi, self.homes) * self.stride
    }

    #[inline]
    fn start_of(&self, slot: usize) -> usize {
        self.base + slot * self.stride
    }

    /// The first slot, from the home of `hi` on, that holds nothing above `hi`: its place.
    #[inline]
    fn search(&self, hi: u64) -> usize {
        let mut at = self.home(hi);
        loop {
            let above =
                (0..GROUP).map(|i| usize::from(self.cells[at + i * self.stride + 1] > hi)).sum::<usize>();
            at += above * self.stride;
            if above < GROUP {
                return at;
            }
        }
    }

    fn shrink_if_sparse(&mut self) {
        if self.homes <= SMALL || self.len > self.homes / 4 {
            return;
        }
        if self.len == 0 {
            *self = Self::new(self.stride - HEAD);
        } else {
            self.rebuild(homes_for(self.len));
        }
    }

    /// Moves everything, in its order, to a new vector with so many home slots.
    fn rebuild(&mut self, homes: usize) {
        let mut fresh = Self::with_homes(self.stride - HEAD, homes);
        let cursor = self.start_of(self.cursor);
        let (mut free, mut cursor_slot) = (0, None);
        for at in self.occupied() {
            let slot = multiply_high(!self.cells[at + 1], homes).max(free);
            while slot + GROUP >= fresh.slots {
                fresh.lengthen_tail();
            }
            let place = fresh.start_of(slot);
            fresh.cells[place..place + self.stride].copy_from_slice(&self.cells[at..at + self.stride]);
            if at >= cursor {
                cursor_slot.get_or_insert(slot);
            }
            free = slot + 1;
        }
        fresh.len = self.len;
        fresh.cursor = cursor_slot.unwrap_or(fresh.slots);
        *self = fresh;
    }

    /// Doubles the tail: a run over the end has filled it.
    fn lengthen_tail(&mut self) {
        let used = self.base..self.start_of(self.slots);
        self.slots += self.slots - self.homes;
        let (mut cells, base) = empty_cells(self.slots * self.stride);
        cells[base..base + used.len()].copy_from_slice(&self.cells[used]);
        (self.cells, self.base) = (cells, base);
    }
}

/// The number of home slots in a new vector for `len` entries.
fn homes_for(len: usize) -> usize {
    (len * ROOM / MAX_LOAD).max(len + LEAST_SPARE)
}

/// `words` zeroes from the beginning of a cache line on, and the index where they begin.
fn empty_cells(words: usize) -> (Vec<u64>, usize) {
    let cells = vec![0; words + LINE - 1];
    let to_line = cells.as_ptr().addr().wrapping_neg() % (LINE * size_of::<u64>());
    (cells, to_line / size_of::<u64>())
}

/// `part / 2^64` of `whole`, rounded down: spreads a random number over any number of slots without dividing.
#[inline]
fn multiply_high(part: u64, whole: usize) -> usize {
    ((u128::from(part) * whole as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
