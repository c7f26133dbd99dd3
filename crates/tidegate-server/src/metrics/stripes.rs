//! Counters that many threads add to and few read.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads are spread over so many copies of a row of counters.
const STRIPES: usize = 8;

/// A row of `N` counters, in copies, so that threads seldom write to the same cache line. A reading is the sum; it
/// never goes back, but does not show all counters at one instant.
#[derive(Debug)]
pub(super) struct Striped<const N: usize> {
    stripes: [Stripe<N>; STRIPES],
}

/// On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

impl<const N: usize> Striped<N> {
    pub fn new() -> Self {
        let row = || Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Striped { stripes: std::array::from_fn(|_| row()) }
    }

    /// Adds to the counter at `index`, which is below `N`.
    pub fn add(&self, index: usize, amount: u64) {
        self.stripes[own_stripe()].0[index].fetch_add(amount, Ordering::Relaxed);
    }

    /// All counters, summed up.
    pub fn read(&self) -> [u64; N] {
        std::array::from_fn(|index| {
            self.stripes.iter().map(|stripe| stripe.0[index].load(Ordering::Relaxed)).sum()
        })
    }
}

/// The stripe of the running thread, dealt out in turn.
fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
    }
    OWN.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_what_all_threads_added() {
        let counters = Striped::<2>::new();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1_000).for_each(|n| counters.add(n % 2, 3)));
            }
        });
        assert_eq!(counters.read(), [30_000, 30_000]);
    }
}
