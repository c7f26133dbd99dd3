//! The logs of sliding window logs, beside the table: a slot's word holds a log's handle.

use std::collections::BTreeSet;

use tidegate_core::Log;

/// The handle of no log.
const NONE: u64 = 0;
static EMPTY: Log = Log::new();

/// Logs under handles that are used again once a log is removed, the lowest first: so the last ones get free, and
/// memory comes back, though a handle once given out never changes.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// The last one is in use.
    logs: Vec<Log>,
    /// Places before that which are not.
    free: BTreeSet<u32>,
}

impl Logs {
    /// The log of this handle; an empty one for the handle of none.
    pub(crate) fn get(&self, handle: u64) -> &Log {
        Self::place(handle).and_then(|place| self.logs.get(place)).unwrap_or(&EMPTY)
    }

    /// The log of a handle that [`get_or_add`](Self::get_or_add) returned.
    pub(crate) fn get_mut(&mut self, handle: u64) -> &mut Log {
        let place = Self::place(handle).unwrap_or(0);
        &mut self.logs[place]
    }

    /// `handle`, or the handle of a new log if it is that of none.
    pub(crate) fn get_or_add(&mut self, handle: u64) -> u64 {
        if handle != NONE {
            return handle;
        }
        let place = self.free.pop_first().unwrap_or_else(|| {
            self.logs.push(Log::new());
            // There are fewer logs than slots, and a table of 2^32 slots does not fit into memory.
            (self.logs.len() - 1) as u32
        });
        u64::from(place) + 1
    }

    /// Lets a log go.
    pub(crate) fn remove(&mut self, handle: u64) {
        let Some(place) = Self::place(handle) else { return };
        self.logs[place] = Log::new();
        self.free.insert(place as u32);
        while self.free.last().is_some_and(|last| *last as usize + 1 == self.logs.len()) {
            self.free.pop_last();
            self.logs.pop();
        }
        if self.logs.len() < self.logs.capacity() / 4 {
            self.logs.shrink_to(self.logs.len() * 2);
        }
    }

    /// Bytes of heap held, about.
    pub(crate) fn bytes(&self) -> usize {
        let logs = self.logs.capacity() * size_of::<Log>();
        logs + self.free.len() * BYTES_A_PLACE + self.logs.iter().map(Log::heap_bytes).sum::<usize>()
    }

    fn place(handle: u64) -> Option<usize> {
        usize::try_from(handle).ok()?.checked_sub(1)
    }
}

/// What a place takes in a set: its number in a node that is at least half full.
const BYTES_A_PLACE: usize = 2 * size_of::<u32>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_used_again_and_none_is_empty() {
        let mut logs = Logs::default();
        let (a, b) = (logs.get_or_add(NONE), logs.get_or_add(NONE));
        assert_eq!((a, b), (1, 2));
        assert_eq!(logs.get_or_add(b), b);
        logs.remove(a);
        assert_eq!(logs.get_or_add(NONE), a);
        logs.remove(b);
        logs.remove(NONE);
        assert_eq!(logs.get_or_add(NONE), b);
        logs.remove(a);
        logs.remove(b);
        assert_eq!(logs.bytes(), 0);
        assert!(logs.get(NONE).is_empty() && logs.get(99).is_empty());
    }

    #[test]
    fn memory_comes_back_from_the_end_and_places_fill_from_the_start() {
        let mut logs = Logs::default();
        let handles: Vec<u64> = (0..1_000).map(|_| logs.get_or_add(NONE)).collect();
        let full = logs.bytes();
        // All but every hundredth go, and the last ones are among them.
        handles.iter().filter(|handle| **handle % 100 != 1).for_each(|handle| logs.remove(*handle));
        assert_eq!(logs.logs.len(), 901);
        let moved: Vec<u64> = (0..9).map(|_| logs.get_or_add(NONE)).collect();
        assert_eq!(moved, (2..=10).collect::<Vec<u64>>());
        (1..10).for_each(|hundred| logs.remove(hundred * 100 + 1));
        assert_eq!((logs.logs.len(), logs.free.len()), (10, 0));
        assert!(logs.bytes() < full / 10, "{} bytes of {full}", logs.bytes());
    }
}
