//! The other ends of connections: where bytes come from and where they go, as a script says.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use tidegate::clock::{Clock, ManualClock, Sleep};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::support::millis;

#[derive(Debug, Clone)]
pub enum Step {
    /// Bytes that come in at once; or, where bytes go, as many as are taken at once.
    Bytes(Vec<u8>),
    /// Nothing until so many milliseconds after the start.
    Until(u64),
    Fail(ErrorKind),
}

pub fn bytes(count: usize) -> Step {
    Step::Bytes((0..count).map(|index| index as u8).collect())
}

/// An end that does what the script says, and after it the stream ends, or takes everything.
pub struct End {
    clock: ManualClock,
    script: VecDeque<Step>,
    sleep: Option<Sleep>,
    seen: Arc<Mutex<Seen>>,
}

/// What an end has been told.
#[derive(Debug, Default)]
pub struct Seen {
    pub taken: usize,
    pub written: Vec<u8>,
    pub flushes: usize,
    pub shutdowns: usize,
}

impl End {
    pub fn new(clock: &ManualClock, script: impl IntoIterator<Item = Step>) -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::default();
        let script = script.into_iter().collect();
        (End { clock: clock.clone(), script, sleep: None, seen: Arc::clone(&seen) }, seen)
    }

    /// The next bytes of the script; `None` after it.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<&mut Vec<u8>>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            match self.script.front() {
                Some(Step::Bytes(bytes)) if !bytes.is_empty() => break,
                None => return Poll::Ready(Ok(None)),
                _ => {}
            }
            match self.script.pop_front() {
                Some(Step::Until(at)) => self.sleep = Some(self.clock.sleep_until(millis(at))),
                Some(Step::Fail(kind)) => return Poll::Ready(Err(Error::new(kind, "as the script says"))),
                _ => {}
            }
        }
        let Some(Step::Bytes(bytes)) = self.script.front_mut() else { unreachable!("looked at above") };
        Poll::Ready(Ok(Some(bytes)))
    }
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let seen = Arc::clone(&self.seen);
        if let Some(bytes) = ready!(self.poll_bytes(context))? {
            let count = bytes.len().min(buf.remaining());
            buf.put_slice(&bytes[..count]);
            bytes.drain(..count);
            seen.lock().unwrap().taken += count;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for End {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let seen = Arc::clone(&self.seen);
        let count = match ready!(self.poll_bytes(context))? {
            Some(room) => {
                let count = room.len().min(bytes.len());
                room.drain(..count);
                count
            }
            None => bytes.len(),
        };
        seen.lock().unwrap().written.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        self.seen.lock().unwrap().flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        self.seen.lock().unwrap().shutdowns += 1;
        Poll::Ready(Ok(()))
    }
}
