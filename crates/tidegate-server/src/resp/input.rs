//! The bytes a client has sent and that are not answered yet.

/// Bytes of room a quiet connection has.
const QUIET: usize = 4 << 10;
/// Bytes of room for a client that sends much at once; what one command takes beyond is given back after it.
const BUSY: usize = 64 << 10;

/// A buffer that grows only with what arrives: it is never more than twice what it has held, or [`QUIET`].
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// What is not taken yet.
    #[inline]
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Where the next bytes go: never empty.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize((2 * self.end).max(QUIET), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes have been put where there was room.
    pub(super) fn received(&mut self, bytes: usize) {
        self.end += bytes;
        if self.end == self.bytes.len() && self.end < BUSY {
            // There may be more: ask for more at once the next time.
            self.bytes.resize(2 * self.end, 0);
        }
    }

    /// So many bytes are done with.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Gives back what a long command took.
    pub(super) fn shrink(&mut self) {
        if self.start == self.end && self.bytes.len() > BUSY {
            *self = Input { bytes: vec![0; QUIET], start: 0, end: 0 };
        }
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(input: &mut Input, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = input.room();
            let now = room.len().min(rest.len());
            room[..now].copy_from_slice(&rest[..now]);
            input.received(now);
            rest = &rest[now..];
        }
    }

    #[test]
    fn what_is_not_taken_stays_in_order() {
        let mut input = Input::default();
        put(&mut input, b"abcdef");
        input.take(2);
        put(&mut input, b"gh");
        assert_eq!(input.unread(), b"cdefgh");
    }

    #[test]
    fn room_grows_with_what_came_and_shrinks_when_it_is_done() {
        let mut input = Input::default();
        put(&mut input, &[7; 100]);
        assert_eq!(input.heap_bytes(), QUIET);
        put(&mut input, &vec![7; 1_000_000]);
        assert!(input.heap_bytes() <= 2_100_000, "{}", input.heap_bytes());
        input.take(1_000_000);
        input.shrink();
        assert_eq!(input.unread(), [7; 100]);
        input.take(100);
        input.shrink();
        assert_eq!(input.heap_bytes(), QUIET);
    }
}
