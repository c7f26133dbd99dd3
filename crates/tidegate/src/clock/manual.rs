//! The clock of tests, replays and simulations.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_core::{Timestamp, Wait};

use super::{Clock, Sleep};

/// A clock that stands still until it is told otherwise, so that a test of an hour takes no time and
/// always goes the same way. A clone is another handle on the same clock.
///
/// ```
/// use std::time::Duration;
/// use tidegate::clock::{Clock, ManualClock};
/// use tidegate_core::Timestamp;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tidegate_core::QuantityError> {
/// let clock = ManualClock::new(Timestamp::from_micros(1_700_000_000_000_000)?);
/// let nap = clock.sleep_until(Timestamp::from_micros(1_700_000_000_500_000)?);
/// let sleeper = tokio::spawn(nap);
/// tokio::task::yield_now().await; // now it sleeps
///
/// clock.advance(Duration::from_millis(499));
/// tokio::task::yield_now().await;
/// assert!(!sleeper.is_finished());
///
/// clock.advance(Duration::from_millis(1));
/// tokio::task::yield_now().await;
/// assert!(sleeper.is_finished());
/// assert_eq!(clock.now().as_micros(), 1_700_000_000_500_000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Timestamp,
    /// Who sleeps until when. The number keeps those of one instant in the order in which they fell asleep.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    next_number: u64,
}

impl ManualClock {
    /// A clock that stands at `at`.
    pub fn new(at: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(State { now: at, ..State::default() })))
    }

    /// Moves the clock on by `by`, in whole microseconds, rounded down, and at most to [`Timestamp::MAX`].
    /// Wakes as [`ManualClock::set`] does. Concurrent advances add up.
    pub fn advance(&self, by: Duration) {
        self.wake(|now| now.saturating_add(Wait::from_micros(by.as_micros())));
    }

    /// Sets the clock to `at`, which may lie in the past: that is how to test what a clock that goes
    /// back does.
    ///
    /// Wakes, each once and in the order of their instants, the sleeps whose instant is reached; those of the same
    /// instant in the order in which they were first polled. All of them find the clock at `at`, whatever their
    /// own instant. To go through the instants one by one, see [`ManualClock::next_wake`]. A sleep that has been woken is over, even if the clock is set back before it is polled.
    pub fn set(&self, at: Timestamp) {
        self.wake(|_| at);
    }

    /// The earliest instant somebody sleeps until. A simulation goes from one to the next:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidegate::clock::{Clock, ManualClock};
    /// # use tidegate_core::{Timestamp, Wait};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock = ManualClock::default();
    /// let ticks = tokio::spawn({
    ///     let clock = clock.clone();
    ///     async move {
    ///         let mut ticks = Vec::new();
    ///         for _ in 0..3 {
    ///             clock.sleep_until(clock.now().saturating_add(Wait::from_micros(100))).await;
    ///             ticks.push(clock.now().as_micros());
    ///         }
    ///         ticks
    ///     }
    /// });
    /// tokio::task::yield_now().await;
    /// while let Some(at) = clock.next_wake() {
    ///     clock.set(at);
    ///     tokio::task::yield_now().await;
    /// }
    /// assert_eq!(ticks.await.unwrap(), [100, 200, 300]);
    /// # }
    /// ```
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.state().sleepers.first_key_value().map(|(&(at, _), _)| at)
    }

    fn wake(&self, new: impl FnOnce(Timestamp) -> Timestamp) {
        let mut state = self.state();
        state.now = new(state.now);
        let later = match state.now.as_micros().checked_add(1).map(Timestamp::from_micros) {
            Some(Ok(next)) => state.sleepers.split_off(&(next, 0)),
            _ => BTreeMap::new(),
        };
        let due = std::mem::replace(&mut state.sleepers, later);
        // A waker may do anything, such as ask this clock.
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No state is left half changed by a panic: whatever may panic comes after the changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep {
        Box::pin(ManualSleep { clock: self.clone(), at, number: None })
    }
}

/// A sleep; it has a number from its first poll, and an entry among the sleepers until it is woken.
struct ManualSleep {
    clock: ManualClock,
    at: Timestamp,
    number: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut state = clock.state();
        let Some(number) = self.number else {
            if state.now >= self.at {
                return Poll::Ready(());
            }
            let number = state.next_number;
            state.next_number += 1;
            state.sleepers.insert((self.at, number), context.waker().clone());
            self.number = Some(number);
            return Poll::Pending;
        };
        match state.sleepers.get_mut(&(self.at, number)) {
            Some(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.state().sleepers.remove(&(self.at, number));
        }
    }
}

#[cfg(test)]
mod tests;
