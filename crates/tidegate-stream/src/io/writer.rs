//! Bytes per second of what is written.

use std::fmt;
use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tidegate::store::Store;
use tidegate::{MemoryStore, PolicyHandle};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::bell::Bell;
use super::gate::Gate;
use super::refused;
use super::toll::Toll;

pin_project! {
    /// Writes at the pace of one or several policies, of which each has to admit every byte: one byte costs one
    /// unit.
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, Policy, Rate};
    /// use tidegate_stream::ThrottledWriter;
    /// use tokio::io::AsyncWriteExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let upload = Policy::single("upload", Limit::token_bucket(64_000, Rate::per_second(125_000)))?;
    /// let limiter = Limiter::new(upload);
    /// # let socket = Vec::new();
    /// let mut writer = ThrottledWriter::new(socket, limiter.policy("upload")?, "conn:1017");
    /// writer.write_all(b"hello").await?;
    /// # assert_eq!(writer.into_inner(), b"hello");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It pays first and writes then. What is within may take less, or nothing yet: the rest is given back at
    /// once, so that exactly what was written is paid for, and a peer that does not read holds nothing of what
    /// others could write. A write takes no more than a [`chunk`](Self::chunk).
    ///
    /// A write that is dropped while it waits has written nothing; its place in line is kept for the next one,
    /// whatever that writes, and given up by `shutdown`. Flushing and shutting down go through at once, and so
    /// does an error of what is within.
    ///
    /// Reading goes through from what is within, unlimited. Its own errors are those of a
    /// [`ThrottledReader`](crate::ThrottledReader).
    pub struct ThrottledWriter<W, S: Store = MemoryStore> {
        #[pin]
        inner: W,
        toll: Toll<S>,
        bell: Bell,
    }
}

impl<W, S: Store> ThrottledWriter<W, S> {
    /// Writes to `inner` at the pace of a policy, for `key`.
    pub fn new(inner: W, handle: PolicyHandle<S>, key: impl AsRef<[u8]>) -> Self {
        let toll = Toll::new(Gate::new(handle, key.as_ref()));
        ThrottledWriter { inner, toll, bell: Bell::default() }
    }

    /// Another policy that has to admit every byte too.
    ///
    /// All are charged at the instant bytes are written: what is waited for from one of them is not held
    /// against the others.
    #[must_use]
    pub fn also(mut self, handle: PolicyHandle<S>, key: impl AsRef<[u8]>) -> Self {
        self.toll.push(Gate::new(handle, key.as_ref()));
        self
    }

    /// The most bytes to be written in one turn, at least 1; 16 KiB unless said otherwise. It is never more
    /// than half of what the tightest limit holds.
    ///
    /// Smaller chunks make connections take turns more often; larger ones cost less.
    #[must_use]
    pub fn chunk(mut self, bytes: usize) -> Self {
        self.toll.set_chunk(bytes);
        self
    }

    /// What is within.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// What is within. To write to it is to write past the limit.
    pub fn get_mut(&mut self) -> &mut W {
        self.bell.forget();
        &mut self.inner
    }

    /// What is within.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: AsyncWrite, S: Store> AsyncWrite for ThrottledWriter<W, S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.project();
        if bytes.is_empty() {
            this.bell.forget();
            return this.inner.poll_write(context, bytes);
        }
        if this.bell.is_silent(context) {
            this.toll.go_on_refunding(context);
            return Poll::Pending;
        }
        let portion = this.toll.portion(bytes.len());
        let paid = ready!(this.toll.poll_pay(portion, context)).map_err(refused)?;
        // Fewer than were paid for, if a write was dropped and this is another.
        let bytes = &bytes[..paid.min(bytes.len())];
        let written = this.bell.listen(context, |context| this.inner.poll_write(context, bytes));
        let passed = match &written {
            Poll::Ready(Ok(passed)) => *passed,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        this.toll.give_back(paid.saturating_sub(passed), context);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.project();
        this.bell.forget();
        this.toll.go_on_refunding(context);
        this.inner.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.project();
        this.bell.forget();
        this.toll.give_up(context);
        this.toll.go_on_refunding(context);
        this.inner.poll_shutdown(context)
    }
}

impl<W: AsyncRead, S: Store> AsyncRead for ThrottledWriter<W, S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.project();
        this.bell.forget();
        this.inner.poll_read(context, buf)
    }
}

impl<W: fmt::Debug, S: Store> fmt::Debug for ThrottledWriter<W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottledWriter").field("inner", &self.inner).finish_non_exhaustive()
    }
}
