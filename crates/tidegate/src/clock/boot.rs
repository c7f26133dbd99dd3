//! The clock that counts since boot, which nobody sets.
// The ban on reading clocks is there to bring every reading here.
#![allow(clippy::disallowed_methods)]

/// A clock that counts steadily from some instant in the past. It tells how long something took, not what time it is.
pub trait Ticks: Send + Sync + 'static {
    /// Nanoseconds since that instant; never less than before.
    fn nanos(&self) -> u64;
}

/// The time since this machine was booted, its suspensions included where the system counts them (Linux, Android,
/// Fuchsia, OpenBSD and Apple's do); elsewhere the time since this value was made.
#[derive(Debug, Default)]
pub struct BootTicks(source::Source);

impl Ticks for BootTicks {
    #[inline]
    fn nanos(&self) -> u64 {
        self.0.nanos()
    }
}

#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "fuchsia",
    target_os = "openbsd",
    target_vendor = "apple"
))]
mod source {
    use rustix::time::{ClockId, clock_gettime};

    /// The clock that counts while the machine is suspended. Apple's `CLOCK_MONOTONIC` does.
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;

    #[derive(Debug, Default)]
    pub(super) struct Source;

    impl Source {
        #[inline]
        pub(super) fn nanos(&self) -> u64 {
            let time = clock_gettime(CLOCK);
            // Neither is negative: the clock begins at 0 with the machine.
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        }
    }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "fuchsia",
    target_os = "openbsd",
    target_vendor = "apple"
)))]
mod source {
    use std::time::Instant;

    #[derive(Debug)]
    pub(super) struct Source(Instant);

    impl Default for Source {
        fn default() -> Self {
            Self(Instant::now())
        }
    }

    impl Source {
        #[inline]
        pub(super) fn nanos(&self) -> u64 {
            self.0.elapsed().as_nanos() as u64
        }
    }
}
