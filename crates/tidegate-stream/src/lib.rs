//! Rate limits for what flows: streams of items, loops of jobs, and bytes in and out of connections.
//!
//! Everything here waits by [`PolicyHandle::acquire`]: first come, first served for each key, a leaky bucket's
//! delay included, on any [`Store`].
//!
//! ```
//! use futures_util::{StreamExt, stream};
//! use tidegate::clock::{Clock, ManualClock};
//! use tidegate::{Limit, Limiter, Policy, Rate};
//! use tidegate_stream::ThrottleExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let clock = ManualClock::default();
//! let policy = Policy::single("emails", Limit::token_bucket(2, Rate::per_second(1)))?;
//! let limiter = Limiter::builder(policy).clock(clock.clone()).build();
//! let emails = limiter.policy("emails")?;
//!
//! let messages = stream::iter(["a", "b", "c"]); // whatever a queue's client gives you
//! let mut messages = emails.throttle(messages, "tenant:7");
//! # tokio::spawn({
//! #     let clock = clock.clone();
//! #     async move {
//! #         loop {
//! #             clock.next_wake().map(|at| clock.set(at));
//! #             tokio::task::yield_now().await;
//! #         }
//! #     }
//! # });
//! while let Some(message) = messages.next().await {
//!     println!("sending {}", message?); // two at once, then one a second
//! }
//! # assert_eq!(clock.now().as_micros(), 1_000_000);
//! # Ok(())
//! # }
//! ```
//!
//! - [`ThrottleExt::throttle`] paces any [`Stream`], such as the messages of a queue.
//! - [`ThrottleExt::pace`] paces a loop that makes its own work.
//! - `ThrottledReader` and `ThrottledWriter`, with the feature `tokio-io`, limit the bytes per second of
//!   anything that is tokio's `AsyncRead` or `AsyncWrite`, under one policy or several at a time.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tokio-io")]
mod io;
mod pace;
mod throttle;

use futures_core::Stream;
use tidegate::store::Store;
use tidegate::{Cost, PolicyHandle};

#[cfg(feature = "tokio-io")]
pub use io::{ThrottledReader, ThrottledWriter};
pub use pace::Pace;
pub use throttle::{Throttle, ThrottleError};

/// What a [`PolicyHandle`] does to things that flow.
pub trait ThrottleExt {
    /// Where the handle's limiter keeps its state.
    type Store: Store;

    /// Paces a stream: each item is handed on once `key` was admitted and charged one unit for it.
    fn throttle<St: Stream>(&self, stream: St, key: impl AsRef<[u8]>) -> Throttle<St, Self::Store> {
        self.throttle_by(stream, key, |_| Cost::ONE)
    }

    /// Paces a stream whose items are not all alike: each is handed on once `key` was admitted and charged what
    /// `cost` makes of it. An item that costs nothing is held up only by debt.
    ///
    /// ```
    /// # use futures_util::{StreamExt, stream};
    /// # use tidegate::{Limit, Limiter, Policy, Rate};
    /// # use tidegate_stream::ThrottleExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::new(Policy::single("rows", Limit::token_bucket(100, Rate::per_second(1)))?);
    /// # let rows = limiter.policy("rows")?;
    /// let batches = stream::iter([vec![1; 60], vec![2; 101], vec![3; 40]]);
    /// let mut batches = rows.throttle_by(batches, "table", |batch| batch.len() as u32);
    /// assert_eq!(batches.next().await.unwrap()?.len(), 60);
    ///
    /// // More than the bucket can ever hold: given back at once, and the stream goes on.
    /// let error = batches.next().await.unwrap().unwrap_err();
    /// assert_eq!((error.reason, error.item.len()), (tidegate::AcquireError::Never, 101));
    /// assert_eq!(batches.next().await.unwrap()?.len(), 40);
    /// assert!(batches.next().await.is_none());
    /// # Ok(())
    /// # }
    /// ```
    fn throttle_by<St: Stream, C: Into<Cost>>(
        &self,
        stream: St,
        key: impl AsRef<[u8]>,
        cost: impl FnMut(&St::Item) -> C + Send + 'static,
    ) -> Throttle<St, Self::Store>;

    /// Paces a loop: one unit of `key` for each job.
    fn pace(&self, key: impl AsRef<[u8]>) -> Pace<Self::Store> {
        self.pace_by(key, Cost::ONE)
    }

    /// Paces a loop whose jobs cost `cost` each.
    fn pace_by(&self, key: impl AsRef<[u8]>, cost: impl Into<Cost>) -> Pace<Self::Store>;
}

impl<S: Store> ThrottleExt for PolicyHandle<S> {
    type Store = S;

    fn throttle_by<St: Stream, C: Into<Cost>>(
        &self,
        stream: St,
        key: impl AsRef<[u8]>,
        mut cost: impl FnMut(&St::Item) -> C + Send + 'static,
    ) -> Throttle<St, S> {
        let cost = Box::new(move |item: &St::Item| cost(item).into());
        Throttle::new(stream, self.clone(), key.as_ref(), cost)
    }

    fn pace_by(&self, key: impl AsRef<[u8]>, cost: impl Into<Cost>) -> Pace<S> {
        Pace::new(self.clone(), key.as_ref(), cost.into())
    }
}

/// The page for users, whose code is run as doctests.
#[cfg(all(doctest, feature = "tokio-io"))]
#[doc = include_str!("../../../docs/streams.md")]
struct Page;
