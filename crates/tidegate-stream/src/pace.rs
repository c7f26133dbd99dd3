//! A loop at the pace of a policy.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tidegate::store::Store;
use tidegate::{Acquire, AcquireError, Cost, Decision, MemoryStore, PolicyHandle};

/// Admits one job after the other; see [`ThrottleExt::pace`](crate::ThrottleExt::pace).
///
/// ```
/// # use tidegate::{Limit, Limiter, Policy, Rate};
/// # use tidegate_stream::ThrottleExt;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let limiter = Limiter::new(Policy::single("crawl", Limit::token_bucket(3, Rate::per_minute(1)))?);
/// # let mut jobs = vec!["a", "b", "c"];
/// # let mut done = Vec::new();
/// # let mut run = |job| done.push(job);
/// let mut pace = limiter.policy("crawl")?.pace("example.org");
/// while let Some(job) = jobs.pop() {
///     pace.next().await?;
///     run(job);
/// }
/// # assert_eq!(done, ["c", "b", "a"]);
/// # Ok(())
/// # }
/// ```
///
/// For each job it stands in line anew, so that loops which share a key take turns.
pub struct Pace<S: Store = MemoryStore> {
    handle: PolicyHandle<S>,
    key: Box<[u8]>,
    cost: Cost,
    turn: Option<Acquire<S>>,
}

impl<S: Store> Pace<S> {
    pub(crate) fn new(handle: PolicyHandle<S>, key: &[u8], cost: Cost) -> Self {
        Pace { handle, key: key.into(), cost, turn: None }
    }

    /// Waits until one more job is admitted, and charges it.
    ///
    /// A job is admitted when this returns, and not lost if it is dropped before: the next call goes on in the
    /// same place in line. So it may be one of the branches of a `select!` in a loop. Drop the `Pace` to give
    /// the place up.
    ///
    /// # Errors
    /// See [`AcquireError`]. It is told at once, so a loop ought to end by it or to wait.
    pub async fn next(&mut self) -> Result<Decision, AcquireError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), for futures written by hand.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, AcquireError>> {
        let turn = self.turn.get_or_insert_with(|| self.handle.acquire(&self.key, self.cost));
        let admitted = ready!(Pin::new(turn).poll(context));
        self.turn = None;
        Poll::Ready(admitted)
    }
}

impl<S: Store> fmt::Debug for Pace<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("handle", &self.handle)
            .field("cost", &self.cost)
            .field("is_waiting", &self.turn.is_some())
            .finish_non_exhaustive()
    }
}
