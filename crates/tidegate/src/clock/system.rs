//! The clock of production.
// The ban on reading clocks is there to bring every reading here.
#![allow(clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_core::Timestamp;

use super::boot::{BootTicks, Ticks};
use super::seqlock::{SeqLock, Std};
use super::slew::{Course, slew};
use super::{Clock, Sleep};
use super::{STRETCH, sleep_while};

/// Nanoseconds after which the wall clock is asked again.
const ESTIMATE_EVERY: u64 = 1_000_000_000;
/// Nanoseconds within which the wall clock and the clock since boot must be read to be compared.
/// More means the thread was interrupted between the two.
const SIMULTANEOUS: u64 = 1_000_000;
/// Wall time made monotonic: it starts as the system's wall clock and never jumps or goes back.
///
/// It is advanced by the time since boot, and about once a second compared with the wall
/// clock and **slewed** towards it: sped up or slowed down by at most 500 us in a second (488 in
/// fact, one part in 2048), never stepped. So what NTP corrects by steering is followed exactly, and a step
/// of the wall clock, whoever makes it, neither refills buckets nor locks clients out. It is absorbed
/// slowly: a step of 1 ms in 2 seconds, of 1 s in 34 minutes, of 1 h in 85 days. A process
/// that was started under a badly wrong wall clock wants a restart once that is mended, if it has
/// limits whose windows are aligned to the calendar.
///
/// The time since boot is `CLOCK_BOOTTIME` on Linux, Android, Fuchsia and OpenBSD, and its like on Apple's systems,
/// because that counts while the machine is suspended: one that wakes after an hour gives its clients the
/// hour's tokens, as the wall clock would. `CLOCK_MONOTONIC`, and with it [`std::time::Instant`], stands still
/// meanwhile on Linux. Elsewhere `Instant` has to do, and what it misses
/// in a suspension is slewed like a step of the wall clock.
///
/// Reading writes nothing that threads share, and waits only while another thread is in the middle of the few
/// stores by which it puts a new estimate in force, once a second. Readings go up across all threads.
///
/// A clone is the same clock. Two clocks made by
/// [`SystemClock::new`] agree only as well as the wall clock did with itself between the two calls.
///
/// # Sleeping
/// With the feature `tokio` (on by default) [`Clock::sleep_until`] sleeps on tokio's timer and panics when polled
/// outside a tokio runtime with time enabled. Without it, every pending sleep holds a thread: simple, and
/// meant for few sleepers. Either way the clock is asked again on waking, so a sleep never ends early.
/// Under tokio's paused time use a [`ManualClock`](super::ManualClock): this clock does not pause.
///
/// ```
/// use tidegate::clock::{Clock, SystemClock};
/// let clock = SystemClock::new();
/// let then = clock.now();
/// assert!(clock.now() >= then);
/// ```
#[derive(Clone)]
pub struct SystemClock(Arc<Steered<Os>>);

impl SystemClock {
    /// A clock that starts now, in agreement with the system's wall clock.
    pub fn new() -> Self {
        Self(Arc::new(Steered::new(Os::default())))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SystemClock").field(&self.now()).finish()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        sleep_until(Arc::clone(&self.0), at)
    }
}

fn sleep_until<S: Sources>(clock: Arc<Steered<S>>, at: Timestamp) -> Sleep {
    sleep_while(move || clock.left_until(at))
}

/// The raw clocks, in nanoseconds.
trait Sources: Send + Sync + 'static {
    /// Since some instant in the past, never going back.
    fn boot(&self) -> u64;
    /// Since the Unix epoch, whatever the system believes.
    fn wall(&self) -> u64;
}

/// A clock advanced by one source and steered by another.
struct Steered<S: Sources> {
    sources: S,
    course: SeqLock<Std>,
}

impl<S: Sources> Steered<S> {
    fn new(sources: S) -> Self {
        let course = Course::starting(sources.boot(), sources.wall());
        Self { sources, course: SeqLock::new(course) }
    }

    #[inline]
    fn now(&self) -> Timestamp {
        let (course, boot, version) = self.course.read(|| self.sources.boot());
        if boot.saturating_sub(course.boot) >= ESTIMATE_EVERY
            && let Some(ahead) = self.wall_ahead_of_boot()
        {
            let wall = |boot: u64| boot.saturating_add_signed(ahead);
            let change = |course, boot| slew(course, boot, wall(boot));
            self.course.replace(version, || self.sources.boot(), change);
        }
        Timestamp::saturating_from_micros(course.at(boot) / 1000)
    }

    /// By how much the wall clock's figure is above the other's; `None` if the two could not be
    /// read at about the same time, and the next caller will try again.
    fn wall_ahead_of_boot(&self) -> Option<i64> {
        let before = self.sources.boot();
        let wall = self.sources.wall();
        let between = self.sources.boot().saturating_sub(before);
        // Both figures are below 2^63 nanoseconds, which is 292 years.
        (between <= SIMULTANEOUS).then(|| wall as i64 - (before + between / 2) as i64)
    }

    /// How long to sleep before looking again whether `at` is reached; `None` if it is.
    fn left_until(&self, at: Timestamp) -> Option<Duration> {
        let left = at.micros_since(self.now());
        (left > 0).then(|| Duration::from_micros(left).min(STRETCH))
    }
}

/// The operating system's clocks.
#[derive(Default)]
struct Os(BootTicks);

impl Sources for Os {
    #[inline]
    fn boot(&self) -> u64 {
        self.0.nanos()
    }

    fn wall(&self) -> u64 {
        // A wall clock before 1970 counts as 1970, one after 2262 as 2262.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since_epoch.as_nanos().min(i64::MAX as u128) as u64
    }
}

#[cfg(test)]
mod tests;
