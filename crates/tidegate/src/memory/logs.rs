//! The logs of sliding window logs, beside the table: a slot's word holds a log's handle.

use tidegate_core::Log;

/// The handle of no log.
const NONE: u64 = 0;
static EMPTY: Log = Log::new();

/// Logs under handles that are used again once a log is removed.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    logs: Vec<Log>,
    free: Vec<u32>,
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
        let place = self.free.pop().unwrap_or_else(|| {
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
        self.free.push(place as u32);
        if self.free.len() == self.logs.len() {
            // Nobody holds a handle: give the memory back.
            *self = Logs::default();
        }
    }

    /// Bytes of heap held.
    pub(crate) fn bytes(&self) -> usize {
        let logs = self.logs.capacity() * size_of::<Log>() + self.free.capacity() * size_of::<u32>();
        logs + self.logs.iter().map(Log::heap_bytes).sum::<usize>()
    }

    fn place(handle: u64) -> Option<usize> {
        usize::try_from(handle).ok()?.checked_sub(1)
    }
}

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
}
