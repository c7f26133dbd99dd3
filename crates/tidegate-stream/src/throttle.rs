//! A stream whose items are handed on at the pace of a policy.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::FusedStream;
use pin_project_lite::pin_project;
use tidegate::store::Store;
use tidegate::{Acquire, AcquireError, Cost, MemoryStore, PolicyHandle};

/// What an item costs.
type CostOf<T> = Box<dyn FnMut(&T) -> Cost + Send>;

pin_project! {
    /// A stream at the pace of a policy; see [`ThrottleExt::throttle`](crate::ThrottleExt::throttle).
    ///
    /// It takes an item from the stream within, waits until that is admitted, and hands it on. The next is
    /// taken after that, so no more than one is ever held, and whatever fills the stream within feels the pace.
    /// While the stream within has nothing, nothing is charged and no place in line is held.
    ///
    /// Each item ends as `Ok` or as an `Err` that gives it back: what can never be admitted, what a full line
    /// or a store that is down turned away. An error is of one item and the stream goes on, at once: whoever
    /// only logs errors runs through a whole queue while its store is down.
    ///
    /// Nothing is lost if a `next()` of it is dropped: the item is held, and so is its place in line. Dropped
    /// itself, it gives up the place, and the item with it; see [`into_inner`](Throttle::into_inner).
    #[must_use = "a stream does nothing until it is polled"]
    pub struct Throttle<St: Stream, S: Store = MemoryStore> {
        #[pin]
        stream: St,
        handle: PolicyHandle<S>,
        key: Box<[u8]>,
        cost: CostOf<St::Item>,
        held: Option<Held<St::Item, S>>,
    }
}

/// An item that waits for its turn.
struct Held<T, S: Store> {
    item: T,
    turn: Acquire<S>,
}

impl<St: Stream, S: Store> Throttle<St, S> {
    pub(crate) fn new(stream: St, handle: PolicyHandle<S>, key: &[u8], cost: CostOf<St::Item>) -> Self {
        Throttle { stream, handle, key: key.into(), cost, held: None }
    }

    /// The stream within.
    pub fn get_ref(&self) -> &St {
        &self.stream
    }

    /// The stream within, with the item that was taken from it and not handed on. Its place in line is given
    /// up.
    pub fn into_inner(self) -> (St, Option<St::Item>) {
        (self.stream, self.held.map(|held| held.item))
    }
}

impl<St: Stream, S: Store> Stream for Throttle<St, S> {
    type Item = Result<St::Item, ThrottleError<St::Item>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let mut held = match this.held.take() {
            Some(held) => held,
            None => match ready!(this.stream.poll_next(context)) {
                Some(item) => {
                    let turn = this.handle.acquire(&*this.key, (this.cost)(&item));
                    Held { item, turn }
                }
                None => return Poll::Ready(None),
            },
        };
        match Pin::new(&mut held.turn).poll(context) {
            Poll::Ready(Ok(_)) => Poll::Ready(Some(Ok(held.item))),
            Poll::Ready(Err(reason)) => Poll::Ready(Some(Err(ThrottleError { item: held.item, reason }))),
            Poll::Pending => {
                *this.held = Some(held);
                Poll::Pending
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let held = usize::from(self.held.is_some());
        let (least, most) = self.stream.size_hint();
        (least.saturating_add(held), most.and_then(|most| most.checked_add(held)))
    }
}

impl<St: FusedStream, S: Store> FusedStream for Throttle<St, S> {
    fn is_terminated(&self) -> bool {
        self.held.is_none() && self.stream.is_terminated()
    }
}

impl<St: Stream + fmt::Debug, S: Store> fmt::Debug for Throttle<St, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle")
            .field("stream", &self.stream)
            .field("handle", &self.handle)
            .field("holds_an_item", &self.held.is_some())
            .finish_non_exhaustive()
    }
}

/// An item that was not admitted, with the reason. Nothing was charged for it, but by a store that could not
/// answer, which may have.
#[derive(Clone, PartialEq, Eq)]
pub struct ThrottleError<T> {
    /// The item, given back.
    pub item: T,
    /// Why it was not admitted.
    pub reason: AcquireError,
}

/// Of any item, whether it can be shown or not.
impl<T> fmt::Debug for ThrottleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for ThrottleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an item was not admitted: {}", self.reason)
    }
}

impl<T> Error for ThrottleError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.reason)
    }
}
