//! Bytes per second of what is read.

use std::fmt;
use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tidegate::store::Store;
use tidegate::{MemoryStore, PolicyHandle};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::gate::Gate;
use super::refused;
use super::toll::Toll;

pin_project! {
    /// Hands bytes on at the pace of one or several policies, of which each has to admit every byte: one byte
    /// costs one unit.
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, Policy, PolicySet, Rate};
    /// use tidegate_stream::ThrottledReader;
    /// use tokio::io::AsyncReadExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A megabyte a second each, and four for all connections of a client together.
    /// let limiter = Limiter::new(PolicySet::new([
    ///     Policy::single("connection", Limit::token_bucket(256_000, Rate::per_second(1_000_000)))?,
    ///     Policy::single("client", Limit::token_bucket(1_000_000, Rate::per_second(4_000_000)))?,
    /// ])?);
    /// # let socket = &b"hello"[..];
    /// let mut reader = ThrottledReader::new(socket, limiter.policy("connection")?, "conn:1017")
    ///     .also(limiter.policy("client")?, "198.51.100.7");
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text).await?;
    /// assert_eq!(text, "hello");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It reads first and pays then, for exactly what it has read, and hands it on once that is admitted. So a
    /// connection on which nothing comes in costs nothing and holds no place in line. The end of the stream and
    /// errors are handed on at once.
    ///
    /// A read takes no more than a [`chunk`](Self::chunk), and waits in line for each: connections that share a
    /// key take turns, and none is ever more than a chunk ahead. A reader with a smaller buffer than that gets
    /// smaller turns.
    ///
    /// Nothing is lost if a pending read is dropped: what was read is held, no more than a chunk, and so is its
    /// place in line. What a policy turns away with an error is held too, and the next read asks again.
    ///
    /// Writing goes through to what is within, unlimited. Put a [`ThrottledWriter`](crate::ThrottledWriter)
    /// around a `ThrottledReader` to limit both directions.
    ///
    /// # Errors of its own
    ///
    /// With an [`AcquireError`](tidegate::AcquireError) within: `QuotaExceeded` if no byte can ever be admitted
    /// any more, `ResourceBusy` if a line or a store is full, `Other` if a store cannot answer.
    pub struct ThrottledReader<R, S: Store = MemoryStore> {
        #[pin]
        inner: R,
        toll: Toll<S>,
        // What was read and is still to be admitted.
        held: Vec<u8>,
    }
}

impl<R, S: Store> ThrottledReader<R, S> {
    /// Hands on what `inner` reads at the pace of a policy, for `key`.
    pub fn new(inner: R, handle: PolicyHandle<S>, key: impl AsRef<[u8]>) -> Self {
        let toll = Toll::new(Gate::new(handle, key.as_ref()));
        ThrottledReader { inner, toll, held: Vec::new() }
    }

    /// Another policy that has to admit every byte too.
    ///
    /// All are charged at the instant bytes are handed on: what is waited for from one of them is not held
    /// against the others.
    #[must_use]
    pub fn also(mut self, handle: PolicyHandle<S>, key: impl AsRef<[u8]>) -> Self {
        self.toll.push(Gate::new(handle, key.as_ref()));
        self
    }

    /// The most bytes to be handed on in one turn, at least 1; 16 KiB unless said otherwise. It is never more
    /// than half of what the tightest limit holds.
    ///
    /// Smaller chunks make connections take turns more often; larger ones cost less.
    #[must_use]
    pub fn chunk(mut self, bytes: usize) -> Self {
        self.toll.set_chunk(bytes);
        self
    }

    /// What is within.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// What is within. To read from it is to read past the limit, and past what is held.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// What is within, and what was read from it and not handed on.
    pub fn into_inner(self) -> (R, Vec<u8>) {
        (self.inner, self.held)
    }
}

impl<R: AsyncRead, S: Store> AsyncRead for ThrottledReader<R, S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.project();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if !this.held.is_empty() {
            let wanted = this.held.len().min(buf.remaining());
            let paid = ready!(this.toll.poll_pay(wanted, context)).map_err(refused)?;
            hand_on(this.held, paid, this.toll, buf, context);
            return Poll::Ready(Ok(()));
        }
        let (start, portion) = (buf.filled().len(), this.toll.portion(buf.remaining()));
        let read = ready!(poll_read_up_to(this.inner, portion, context, buf))?;
        if read == 0 {
            return Poll::Ready(Ok(()));
        }
        let paid = this.toll.poll_pay(read, context);
        if !matches!(paid, Poll::Ready(Ok(paid)) if paid == read) {
            this.held.extend_from_slice(&buf.filled()[start..]);
            buf.set_filled(start);
            hand_on(this.held, ready!(paid).map_err(refused)?, this.toll, buf, context);
        }
        Poll::Ready(Ok(()))
    }
}

/// Hands on what was paid for, from what was held, and gives back what was paid for more than there is room
/// for.
fn hand_on<S: Store>(
    held: &mut Vec<u8>,
    paid: usize,
    toll: &mut Toll<S>,
    buf: &mut ReadBuf<'_>,
    context: &mut Context<'_>,
) {
    let passing = paid.min(buf.remaining()).min(held.len());
    buf.put_slice(&held[..passing]);
    if passing == held.len() {
        *held = Vec::new(); // idle connections hold no memory
    } else {
        held.drain(..passing);
    }
    toll.give_back(paid - passing, context);
}

/// Reads at most `most` bytes, into whatever room there is for more. Returns how many.
fn poll_read_up_to<R: AsyncRead>(
    inner: Pin<&mut R>,
    most: usize,
    context: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<Result<usize>> {
    let start = buf.filled().len();
    if buf.remaining() <= most {
        ready!(inner.poll_read(context, buf))?;
        return Poll::Ready(Ok(buf.filled().len() - start));
    }
    let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
    ready!(inner.poll_read(context, &mut part))?;
    let read = part.filled().len();
    buf.advance(read);
    Poll::Ready(Ok(read))
}

impl<R: AsyncWrite, S: Store> AsyncWrite for ThrottledReader<R, S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.project().inner.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.project().inner.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.project().inner.poll_shutdown(context)
    }
}

impl<R: fmt::Debug, S: Store> fmt::Debug for ThrottledReader<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottledReader")
            .field("inner", &self.inner)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
