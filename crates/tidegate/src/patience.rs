//! How long whoever asks will wait: a store that does I/O is to have answered by then, by its failure policy if need be.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

thread_local! {
    static PATIENCE: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// How long whoever is asking now will wait for an answer, if that is known.
///
/// For stores: to be looked at when a check is put to them, not while it is on its way.
pub fn patience() -> Option<Duration> {
    PATIENCE.get()
}

/// A future whose checks have to be answered within a time; see [`within`].
#[derive(Debug)]
#[must_use = "nothing is asked until it is polled"]
pub struct Within<F> {
    left: Duration,
    future: F,
}

/// Runs `future`; stores that are asked in it know that whoever asks will wait no longer than `left` for each answer.
///
/// ```
/// use std::time::Duration;
/// use tidegate::store::{patience, within};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let asked = Box::pin(async { patience() });
/// assert_eq!(within(Duration::from_millis(20), asked).await, Some(Duration::from_millis(20)));
/// assert_eq!(patience(), None);
/// # }
/// ```
pub fn within<F: Future + Unpin>(left: Duration, future: F) -> Within<F> {
    Within { left, future }
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        /// Puts back what was known before, also if the future panics.
        struct Before(Option<Duration>);
        impl Drop for Before {
            fn drop(&mut self) {
                PATIENCE.set(self.0);
            }
        }
        let before = PATIENCE.get();
        let _before = Before(before);
        PATIENCE.set(Some(before.map_or(self.left, |before| before.min(self.left))));
        Pin::new(&mut self.future).poll(context)
    }
}
