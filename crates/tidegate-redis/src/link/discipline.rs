//! The clock of a node, disciplined to the store's.
//!
//! The instant of a check is the node's to say. Were nodes' clocks to differ, one that is ahead would mint tokens and
//! hold the others back. So each asks the servers for their time, and follows it.

use std::time::Duration;

use tidegate::clock::{BootTicks, FollowerClock, Ticks};
use tokio::task::JoinHandle;

use super::backoff::Backoff;
use super::{Failure, Link};

mod estimate;

use estimate::Estimates;

/// At the start the servers are asked so many times, for the estimate to be a good one.
const AT_FIRST: usize = 8;
/// Then again after no less and no more than this, at moments that differ from node to node.
const EVERY: Duration = Duration::from_secs(5);
/// An answer that takes longer says little of the time.
const WITHIN: Duration = Duration::from_millis(500);

/// A clock that follows the servers', and the task that asks them. The clock goes on when this is dropped, but
/// follows nobody.
#[derive(Debug)]
pub(crate) struct Discipline<T: Ticks = BootTicks> {
    clock: FollowerClock<T>,
    error: Duration,
    keeper: JoinHandle<()>,
}

impl Discipline {
    /// Asks the servers, and starts a clock that agrees with them.
    pub(crate) async fn start(link: &Link) -> Result<Self, Failure> {
        Self::start_with(link, BootTicks::default()).await
    }
}

impl<T: Ticks> Discipline<T> {
    /// As [`Discipline::start`], with another clock to count by between two answers.
    pub(crate) async fn start_with(link: &Link, ticks: T) -> Result<Self, Failure> {
        let mut estimates = Estimates::default();
        for _ in 0..AT_FIRST {
            estimates.take(link.times(&|| ticks.nanos(), WITHIN).await);
        }
        let at = ticks.nanos();
        let Some(agreed) = estimates.agreed(at) else {
            // The reason, by asking for something that tells it.
            link.ping(WITHIN).await?;
            return Err(Failure::NotRun("no server tells the time (TIME)".to_owned()));
        };
        let error = Duration::from_nanos(agreed.error);
        let clock = FollowerClock::starting(ticks, at, agreed.time);
        let keeper = tokio::spawn(keep(link.clone(), clock.clone(), estimates));
        Ok(Self { clock, error, keeper })
    }

    /// The clock.
    pub(crate) fn clock(&self) -> FollowerClock<T> {
        self.clock.clone()
    }

    /// By how much the clock may have been wrong at the start: half the time that an answer took, and what clocks may
    /// drift meanwhile.
    pub(crate) fn error(&self) -> Duration {
        self.error
    }
}

impl<T: Ticks> Drop for Discipline<T> {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

async fn keep<T: Ticks>(link: Link, clock: FollowerClock<T>, mut estimates: Estimates) {
    let mut waits = Backoff::between(EVERY, EVERY);
    loop {
        tokio::time::sleep(waits.next()).await;
        estimates.take(link.times(&|| clock.ticks(), WITHIN).await);
        let at = clock.ticks();
        // While nobody answers it goes on as it was.
        if let Some(agreed) = estimates.agreed(at) {
            clock.follow(at, agreed.time);
        }
    }
}

#[cfg(test)]
mod tests;
