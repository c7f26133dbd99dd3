//! Sleeping without a runtime: a thread for each pending sleep.

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use super::Sleep;

/// Resolves when `left` says that nothing is left to sleep. The thread starts with the first poll
/// that finds something left, and ends when the sleep is over or dropped.
///
/// # Panics
/// When polled and the system gives out no more threads.
pub(super) fn sleep_while(left: impl Fn() -> Option<Duration> + Send + Sync + 'static) -> Sleep {
    Box::pin(ThreadSleep { left: Arc::new(left), sleeper: None })
}

struct ThreadSleep {
    left: Arc<dyn Fn() -> Option<Duration> + Send + Sync>,
    sleeper: Option<Arc<Sleeper>>,
}

/// What the sleep and its thread share.
struct Sleeper {
    /// Whom to wake; nobody any more once the sleep is dropped.
    waker: Mutex<Option<Waker>>,
    dropped: Condvar,
}

impl Future for ThreadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(sleeper) = &self.sleeper {
            sleeper.wake_instead(context.waker());
        }
        if (self.left)().is_none() {
            return Poll::Ready(());
        }
        if self.sleeper.is_none() {
            let waker = Mutex::new(Some(context.waker().clone()));
            let sleeper = Arc::new(Sleeper { waker, dropped: Condvar::new() });
            let (left, theirs) = (Arc::clone(&self.left), Arc::clone(&sleeper));
            thread::spawn(move || theirs.sleep_while(&*left));
            self.sleeper = Some(sleeper);
        }
        Poll::Pending
    }
}

impl Drop for ThreadSleep {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            *sleeper.waker.lock().unwrap_or_else(PoisonError::into_inner) = None;
            sleeper.dropped.notify_one();
        }
    }
}

impl Sleeper {
    fn wake_instead(&self, waker: &Waker) {
        let mut kept = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_mut() {
            kept.clone_from(waker);
        }
    }

    fn sleep_while(&self, left: &dyn Fn() -> Option<Duration>) {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        while waker.is_some() {
            let Some(left) = left() else { break };
            waker = self.dropped.wait_timeout(waker, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let woken = waker.take();
        drop(waker);
        if let Some(woken) = woken {
            woken.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;

    use tidegate_core::Timestamp;

    use super::*;
    use crate::clock::{Clock, ManualClock};

    struct Tells(mpsc::Sender<&'static str>, &'static str);

    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            // A test that has heard enough no longer listens.
            let _ = self.0.send(self.1);
        }
    }

    /// A sleep of a clock that is moved by hand; its thread looks at it every millisecond.
    fn sleep(clock: &ManualClock, at: u64) -> Sleep {
        let (clock, at) = (clock.clone(), Timestamp::saturating_from_micros(at));
        sleep_while(move || (clock.now() < at).then_some(Duration::from_millis(1)))
    }

    #[test]
    fn a_sleep_wakes_its_last_waker_once_when_nothing_is_left() {
        let clock = ManualClock::default();
        let (sender, woken) = mpsc::channel();
        let waker = |name| Waker::from(Arc::new(Tells(sender.clone(), name)));
        let mut sleep = sleep(&clock, 10);
        for name in ["first", "second"] {
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker(name))).is_pending());
        }
        assert_eq!(woken.try_recv(), Err(mpsc::TryRecvError::Empty));
        clock.advance(Duration::from_micros(10));
        assert_eq!(woken.recv(), Ok("second"));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker("third"))).is_ready());
        drop((sleep, sender));
        // All wakers are gone, the thread's too, and none told anything more.
        assert_eq!(woken.recv(), Err(mpsc::RecvError));
    }

    #[test]
    fn a_dropped_sleep_wakes_nobody_and_ends_its_thread() {
        let clock = ManualClock::default();
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Tells(sender.clone(), "dropped")));
        // Its thread would sleep for a minute, and holds on to a sender.
        let mut sleep = sleep_while(move || {
            let _held = &sender;
            (clock.now() == Timestamp::EPOCH).then_some(Duration::from_secs(60))
        });
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop((sleep, waker));
        assert_eq!(woken.recv(), Err(mpsc::RecvError));
    }

    #[test]
    fn a_sleep_with_nothing_left_needs_no_thread() {
        let mut sleep = sleep(&ManualClock::default(), 0);
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
