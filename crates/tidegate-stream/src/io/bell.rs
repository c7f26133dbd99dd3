//! Whether a connection that took nothing has had reason to wake its writer since.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Between a connection and the task that writes to it.
///
/// That task is woken by others too, such as a store that has taken something back. To pay anew each time only
/// to find the connection as full as before would keep both busy without end, so wakes of the connection ring a
/// bell.
#[derive(Default)]
pub(super) struct Bell {
    signal: Option<Arc<Signal>>,
    is_waited_for: bool,
}

struct Signal {
    has_rung: AtomicBool,
    task: Mutex<Waker>,
}

impl Bell {
    /// Whether the connection took nothing the last time it was asked, and has not rung since. It will wake the
    /// task that polls.
    pub(super) fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(signal) = self.signal.as_ref().filter(|_| self.is_waited_for) {
            // First of all: a ring between these two wakes the task.
            signal.wakes(context);
            self.is_waited_for = !signal.has_rung.load(Ordering::Acquire);
        }
        self.is_waited_for
    }

    /// Asks the connection.
    pub(super) fn listen<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let signal = self.signal.get_or_insert_with(|| Arc::new(Signal::new(context)));
        signal.wakes(context);
        signal.has_rung.store(false, Ordering::Release);
        let polled = poll(&mut Context::from_waker(&Waker::from(Arc::clone(signal))));
        self.is_waited_for = polled.is_pending();
        polled
    }

    /// The connection is asked something else, for which it may wake somebody else in this one's stead.
    pub(super) fn forget(&mut self) {
        self.is_waited_for = false;
    }
}

impl Signal {
    fn new(context: &Context<'_>) -> Self {
        Signal { has_rung: AtomicBool::new(false), task: Mutex::new(context.waker().clone()) }
    }

    fn wakes(&self, context: &Context<'_>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.will_wake(context.waker()) {
            let before = std::mem::replace(&mut *task, context.waker().clone());
            // Dropping a waker may do anything, so not while others may want to ring.
            drop(task);
            drop(before);
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}
