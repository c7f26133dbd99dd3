//! The clock of machines that share a store, and so its time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Timestamp;

use super::boot::{BootTicks, Ticks};
use super::seqlock::{SeqLock, Std};
use super::slew::{Course, slew};
use super::{Clock, STRETCH, Sleep, sleep_while};

/// Time that follows another clock's, such as a server's: it starts as that clock stands and never jumps or goes back.
///
/// It is advanced by the time since boot. Whoever learns what the other clock says tells it, by
/// [`follow`](FollowerClock::follow); it is then **slewed** towards it, at most 500 us in a second, as a
/// [`SystemClock`](super::SystemClock) is towards the wall clock. The wall clock of this machine is never asked: it may be
/// an hour wrong, or be set while this runs, and no reading differs.
///
/// A clone is the same clock. Sleeping is as for a [`SystemClock`](super::SystemClock).
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tidegate::clock::{Clock, FollowerClock, Ticks};
/// use tidegate_core::Timestamp;
///
/// /// A clock since boot, for the example.
/// #[derive(Clone)]
/// struct Turned(Arc<AtomicU64>);
///
/// impl Ticks for Turned {
///     fn nanos(&self) -> u64 {
///         self.0.load(Ordering::Relaxed)
///     }
/// }
///
/// let second = |n: u64| Timestamp::saturating_from_micros(n * 1_000_000);
/// let ticks = Turned(Arc::new(AtomicU64::new(5_000_000_000)));
/// // Five seconds after boot the server said that it is 1000 s since the epoch.
/// let clock = FollowerClock::starting(ticks.clone(), 5_000_000_000, second(1000));
/// assert_eq!(clock.now(), second(1000));
///
/// ticks.0.store(7_000_000_000, Ordering::Relaxed);
/// assert_eq!(clock.now(), second(1002));
///
/// // The server is a second ahead: nothing jumps, and 488 us are made up in the second that follows.
/// clock.follow(7_000_000_000, second(1003));
/// assert_eq!(clock.now(), second(1002));
/// ticks.0.store(8_000_000_000, Ordering::Relaxed);
/// assert_eq!(clock.now().as_micros(), 1_003_000_488);
/// ```
pub struct FollowerClock<T: Ticks = BootTicks>(Arc<Follower<T>>);

struct Follower<T: Ticks> {
    ticks: T,
    course: SeqLock<Std>,
}

impl<T: Ticks> FollowerClock<T> {
    /// A clock that agrees with another that said `time` when `ticks` said `at`, in nanoseconds.
    pub fn starting(ticks: T, at: u64, time: Timestamp) -> Self {
        let course = Course::starting(at, time.as_micros().saturating_mul(1000));
        Self(Arc::new(Follower { ticks, course: SeqLock::new(course) }))
    }

    /// Nanoseconds since boot, to say when the other clock was read.
    pub fn ticks(&self) -> u64 {
        self.0.ticks.nanos()
    }

    /// Heads for what the other clock says: it said `time` when [`ticks`](Self::ticks) said `at`, in nanoseconds. The
    /// last word counts. Of two callers at the same moment one may go unheard.
    pub fn follow(&self, at: u64, time: Timestamp) {
        let said = time.as_micros().saturating_mul(1000);
        let other = |ticks: u64| said.saturating_add(ticks).saturating_sub(at);
        let (_, _, version) = self.0.course.read(|| self.0.ticks.nanos());
        let change = |course, ticks| slew(course, ticks, other(ticks));
        self.0.course.replace(version, || self.0.ticks.nanos(), change);
    }

    /// By how many microseconds the other clock was ahead when it was last followed, less what has been made up since;
    /// negative if it was behind.
    pub fn still_ahead(&self) -> i64 {
        let (course, ticks, _) = self.0.course.read(|| self.0.ticks.nanos());
        let there =
            course.at(ticks).abs_diff(course.reading.saturating_add(ticks.saturating_sub(course.boot)));
        course.ahead.signum() * (course.ahead.unsigned_abs().saturating_sub(there) / 1000) as i64
    }
}

impl<T: Ticks> Follower<T> {
    #[inline]
    fn now(&self) -> Timestamp {
        let (course, ticks, _) = self.course.read(|| self.ticks.nanos());
        Timestamp::saturating_from_micros(course.at(ticks) / 1000)
    }

    /// How long to sleep before looking again whether `at` is reached; `None` if it is.
    fn left_until(&self, at: Timestamp) -> Option<Duration> {
        let left = at.micros_since(self.now());
        (left > 0).then(|| Duration::from_micros(left).min(STRETCH))
    }
}

impl<T: Ticks> Clock for FollowerClock<T> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        let clock = Arc::clone(&self.0);
        sleep_while(move || clock.left_until(at))
    }
}

impl<T: Ticks> Clone for FollowerClock<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Ticks> fmt::Debug for FollowerClock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FollowerClock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[derive(Clone, Default)]
    struct Turned(Arc<AtomicU64>);

    impl Ticks for Turned {
        fn nanos(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Turned {
        fn run(&self, nanos: u64) {
            self.0.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    fn time(micros: u64) -> Timestamp {
        Timestamp::saturating_from_micros(micros)
    }

    #[test]
    fn a_reading_from_a_while_ago_counts_from_then() {
        let ticks = Turned::default();
        ticks.run(10 * SECOND);
        let clock = FollowerClock::starting(ticks.clone(), 8 * SECOND, time(1000));
        assert_eq!(clock.now(), time(2_001_000));
        // At 3 s the other stood at 0, so at 10 s it stands at 7 s: 4.999 s ahead.
        clock.follow(3 * SECOND, time(0));
        assert_eq!((clock.now(), clock.still_ahead()), (time(2_001_000), 4_999_000));
    }

    #[test]
    fn what_is_left_to_make_up_falls_to_nothing() {
        for (said, ahead) in [(2_000_000, 1_000_000), (0, -1_000_000_i64)] {
            let ticks = Turned::default();
            let clock = FollowerClock::starting(ticks.clone(), 0, time(1_000_000));
            clock.follow(0, time(said));
            assert_eq!(clock.still_ahead(), ahead);
            ticks.run(1024 * SECOND);
            assert_eq!(clock.still_ahead(), ahead / 2);
            ticks.run(1024 * SECOND);
            assert_eq!((clock.still_ahead(), clock.now()), (0, time(2_048_000_000 + said)));
            ticks.run(SECOND);
            assert_eq!((clock.still_ahead(), clock.now()), (0, time(2_049_000_000 + said)));
        }
    }

    proptest! {
        /// Whatever it is told: it goes on, never back, and never faster or slower than it may.
        #[test]
        fn readings_are_monotone_and_of_bounded_rate(
            told in prop::collection::vec((0..100 * SECOND, 0..100 * SECOND, 0..u64::MAX / 1000), 1..40),
        ) {
            let ticks = Turned::default();
            let clock = FollowerClock::starting(ticks.clone(), 0, time(1_700_000_000_000_000));
            for (run, ago, said) in told {
                let before = clock.now().as_micros();
                clock.follow(ticks.nanos().saturating_sub(ago), time(said));
                prop_assert_eq!(clock.now().as_micros(), before, "a jump");
                ticks.run(run);
                let (ran, run) = (clock.now().as_micros() - before, run / 1000);
                // Each of the two is rounded to whole microseconds.
                prop_assert!(ran.abs_diff(run) <= run / 2000 + 2, "{} in {}", ran, run);
            }
        }
    }

    #[tokio::test]
    async fn a_sleep_ends_when_the_time_has_come() {
        let clock = FollowerClock::starting(BootTicks::default(), 0, time(0));
        let at = time(clock.now().as_micros() + 2000);
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
        clock.sleep_until(at).await;
    }
}
