//! A waiter's alarm: a sleep that wakes the waiter's own task, whoever sets it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use tidegate_core::Timestamp;

use crate::clock::{Clock, Sleep};

/// Where a waiter lives: its task, as of its last poll.
#[derive(Debug)]
pub(crate) struct Home {
    waker: Waker,
    /// Tokio's timers belong to the runtime they are first polled in and end with it. An alarm that another
    /// task, thread or runtime sets must still be one of the waiter's own runtime.
    #[cfg(feature = "tokio")]
    runtime: Option<tokio::runtime::Handle>,
}

impl Home {
    /// The task that polls.
    pub(crate) fn of(context: &Context<'_>) -> Self {
        Home {
            waker: context.waker().clone(),
            #[cfg(feature = "tokio")]
            runtime: tokio::runtime::Handle::try_current().ok(),
        }
    }

    /// Whom to wake.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(crate) fn into_waker(self) -> Waker {
        self.waker
    }

    /// Runs `poll` where this home's alarms have to be polled, at one go.
    fn run<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
        #[cfg(feature = "tokio")]
        let _entered = self.runtime.as_ref().map(tokio::runtime::Handle::enter);
        poll(&mut Context::from_waker(&self.waker))
    }
}

/// A sleep until a waiter's turn.
pub(crate) struct Alarm {
    at: Timestamp,
    sleep: Sleep,
}

impl Alarm {
    /// Sets an alarm; `None` if it is that late already.
    pub(crate) fn set(clock: &dyn Clock, at: Timestamp, home: &Home) -> Option<Self> {
        let mut alarm = Alarm { at, sleep: clock.sleep_until(at) };
        let polled = home.run(|context| alarm.poll(context));
        polled.is_pending().then_some(alarm)
    }

    /// Sets an alarm for somebody else; `None` if it is that late already, or if it cannot be set from here.
    ///
    /// A waiter may outlive the runtime that it slept on, and then its alarm panics when it is set. That is for
    /// the waiter to find out, not for whoever happens to move the line.
    pub(crate) fn set_for(clock: &dyn Clock, at: Timestamp, home: &Home) -> Option<Self> {
        catch_unwind(AssertUnwindSafe(|| Alarm::set(clock, at, home))).unwrap_or(None)
    }

    /// The instant it goes off.
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// Whether it has gone off. From now on it wakes whoever asked last.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        poll_freely(&mut self.sleep, context)
    }
}

/// A task of tokio's that has used its budget up gets no answer from a timer: whoever is to be woken by it is
/// woken at once, to try again later. Setting the alarms of others must not wake them.
#[cfg(feature = "tokio")]
fn poll_freely(sleep: &mut Sleep, context: &mut Context<'_>) -> Poll<()> {
    std::pin::pin!(tokio::task::coop::unconstrained(sleep.as_mut())).poll(context)
}

#[cfg(not(feature = "tokio"))]
fn poll_freely(sleep: &mut Sleep, context: &mut Context<'_>) -> Poll<()> {
    sleep.as_mut().poll(context)
}
