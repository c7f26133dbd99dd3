//! Bytes per second, in virtual time.
#![allow(clippy::unwrap_used)]

mod ends;
mod fairness;
mod random;
mod reader;
mod several;
mod stores;
#[path = "../support/mod.rs"]
mod support;
mod writer;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use support::*;
use tidegate::store::Store;
use tidegate_stream::ThrottledReader;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Reads into a buffer of `size` until the end, and logs how much came when.
fn read_all<R, S>(place: &mut Place<S>, reader: ThrottledReader<R, S>, size: usize) -> Log<usize>
where
    R: AsyncRead + Unpin + Send + 'static,
    S: Store,
{
    let log = place.log();
    let seen = log.clone();
    place.tasks.spawn(async move {
        let (mut reader, mut buffer) = (reader, vec![0; size]);
        loop {
            match reader.read(&mut buffer).await.unwrap() {
                0 => return,
                read => seen.push(read),
            }
        }
    });
    log
}

/// Polls one read of at most `room` bytes, and drops it.
fn poll_read(reader: &mut (impl AsyncRead + Unpin), room: usize) -> Poll<std::io::Result<Vec<u8>>> {
    let mut bytes = vec![0; room];
    let mut buf = ReadBuf::new(&mut bytes);
    let polled = Pin::new(reader).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf);
    let read = buf.filled().to_vec();
    assert!(read.is_empty() || matches!(polled, Poll::Ready(Ok(()))), "bytes came without being told");
    polled.map_ok(|()| read)
}

/// Polls one write, and drops it.
fn poll_write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Poll<std::io::Result<usize>> {
    Pin::new(writer).poll_write(&mut Context::from_waker(Waker::noop()), bytes)
}

/// How much comes without waiting.
fn burst(reader: &mut (impl AsyncRead + Unpin), room: usize) -> usize {
    let read = || match poll_read(reader, room) {
        Poll::Ready(read) => Some(read.unwrap().len()),
        Poll::Pending => None,
    };
    std::iter::from_fn(read).sum()
}
