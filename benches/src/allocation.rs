//! Counts the bytes allocated, while asked to.
//!
//! A crate that does this counts always, and four shared counters written for each `String` would slow down the
//! peers that need one for every check. This one costs a predictable branch while it is switched off.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// The system's allocator, with a count of live bytes.
pub struct Counting;

// SAFETY: every call goes to `System` with the arguments unchanged, and its answer comes back unchanged; so the
// contract of `GlobalAlloc` holds because it holds of `System`. Counting touches atomics only: it allocates
// nothing and cannot unwind. `alloc_zeroed` is passed on too, so that large zeroed tables stay lazily mapped.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from `System` by way of this allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as for `dealloc`, and the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn count(bytes: isize) {
    if COUNTING.load(Ordering::Relaxed) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

/// Bytes that a piece of work left allocated, and the most it had at any time.
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// Still there afterwards.
    pub left: u64,
    /// At the worst moment, when a table had just grown.
    pub peak: u64,
}

/// What `work` leaves allocated. Nobody else may be at work meanwhile.
pub fn bytes_of<T>(work: impl FnOnce() -> T) -> (T, Bytes) {
    LIVE.store(0, Ordering::Relaxed);
    PEAK.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
    let made = work();
    COUNTING.store(false, Ordering::Relaxed);
    let positive = |bytes: &AtomicIsize| bytes.load(Ordering::Relaxed).max(0) as u64;
    (made, Bytes { left: positive(&LIVE), peak: positive(&PEAK) })
}
