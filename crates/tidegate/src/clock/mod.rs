//! Where the time of a check comes from: the one place in Tidegate that reads a clock.
//!
//! Everything below is told the time as an argument; everything above asks a [`Clock`]. There are
//! three: [`SystemClock`] for production, [`FollowerClock`] where several machines share a store and so its time, and
//! [`ManualClock`] for tests, replays and simulations.

mod boot;
mod follower;
mod manual;
mod seqlock;
mod slew;
mod system;
#[cfg(any(test, not(feature = "tokio")))]
mod thread_sleep;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Timestamp;

pub use boot::{BootTicks, Ticks};
pub use follower::FollowerClock;
pub use manual::ManualClock;
pub use system::SystemClock;

/// A wait for an instant of a [`Clock`]. It does nothing until polled, and costs nothing once dropped.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time stamps that never goes back, and of waits for them.
///
/// Limits stay right under a clock that does go back, for each key remembers the newest stamp it was
/// charged at; but a clock that goes back keeps its clients waiting.
///
/// ```
/// use tidegate::clock::{Clock, Sleep, SystemClock};
/// use tidegate_core::Timestamp;
///
/// /// The system's time, as it is in a place that is an hour ahead.
/// struct HourAhead(SystemClock);
///
/// const HOUR: u64 = 3_600_000_000;
///
/// impl Clock for HourAhead {
///     fn now(&self) -> Timestamp {
///         Timestamp::saturating_from_micros(self.0.now().as_micros() + HOUR)
///     }
///
///     fn sleep_until(&self, at: Timestamp) -> Sleep {
///         self.0.sleep_until(Timestamp::saturating_from_micros(at.as_micros().saturating_sub(HOUR)))
///     }
/// }
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The present instant. Called once for each check, so it ought to take nanoseconds.
    fn now(&self) -> Timestamp;

    /// Resolves when the clock has reached `at`, not before; at once if it has already.
    fn sleep_until(&self, at: Timestamp) -> Sleep;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        (**self).sleep_until(at)
    }
}

/// The longest single stretch of a sleep. Timers stand still while the machine is suspended and clocks that run by
/// the time since boot do not, so a sleeper looks at its clock again at least this often.
const STRETCH: Duration = Duration::from_secs(60);

/// Sleeps, again and again, for as long as something is left.
#[cfg(feature = "tokio")]
fn sleep_while(left: impl Fn() -> Option<Duration> + Send + Sync + 'static) -> Sleep {
    Box::pin(async move {
        while let Some(left) = left() {
            tokio::time::sleep(left).await;
        }
    })
}

#[cfg(not(feature = "tokio"))]
use thread_sleep::sleep_while;
