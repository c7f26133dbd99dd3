//! What is written.

use std::io::{ErrorKind, Result};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tidegate_stream::{ThrottledReader, ThrottledWriter};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};

use super::ends::{End, Seen, Step, bytes};
use super::support::*;
use super::{poll_read, poll_write};

/// Writes in buffers of `size` until `total` bytes are written, and logs how much went when.
fn write_all<W>(place: &mut Place, mut writer: ThrottledWriter<W>, size: usize, total: usize) -> Log<usize>
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    let log = place.log();
    let seen = log.clone();
    let data: Vec<u8> = (0..total).map(|index| index as u8).collect();
    place.tasks.spawn(async move {
        let mut from = 0;
        while from < total {
            let to = total.min(from + size);
            let written = writer.write(&data[from..to]).await.unwrap();
            seen.push(written);
            from += written;
        }
    });
    log
}

fn written(seen: &Arc<Mutex<Seen>>) -> usize {
    seen.lock().unwrap().written.len()
}

#[test]
fn bytes_go_at_the_rate_after_a_burst_of_the_capacity() {
    for (capacity, rate, chunk, size) in
        [(1_000, 250, 100, 64), (1_000, 250, 300, 4_096), (997, 1_013, 100, 70), (5, 3, 100, 100)]
    {
        let mut place = place(&[bucket(capacity, rate)]);
        let (end, seen) = End::new(&place.clock, []);
        let writer = ThrottledWriter::new(end, place.policy(0), "c").chunk(chunk);
        let log = write_all(&mut place, writer, size, 20_000);
        assert_eq!(log.total(), capacity as usize, "the burst, to the byte");
        place.tasks.go_to(10_000_000);
        assert_within(&log.all(), capacity, rate);
        assert_eq!(log.total(), 20_000);
        assert_eq!(seen.lock().unwrap().written, (0..20_000).map(|index| index as u8).collect::<Vec<_>>());
        // It took no longer than it had to.
        let (last, _) = *log.all().last().unwrap();
        let needed = (20_000 - u64::from(capacity)) * 1_000_000 / u64::from(rate);
        assert!(last.abs_diff(needed) <= 1, "{last} us instead of {needed}");
    }
}

#[test]
fn what_is_not_taken_is_not_paid_for() {
    let place = place(&[bucket(1_000, 1)]);
    let (end, seen) = End::new(&place.clock, [bytes(30), bytes(20), Step::Until(1_000)]);
    let mut writer = ThrottledWriter::new(end, place.policy(0), "c");
    for (taken, remaining) in [(30, 970), (20, 950)] {
        assert!(matches!(poll_write(&mut writer, &[7; 500]), Poll::Ready(Ok(count)) if count == taken));
        assert_eq!(place.remaining(0, "c"), remaining);
    }
    for _ in 0..3 {
        assert!(poll_write(&mut writer, &[7; 500]).is_pending());
        assert_eq!(place.remaining(0, "c"), 950, "a peer that does not read holds nothing");
    }
    place.clock.set(millis(1_000));
    // What is left of the burst: half of the bucket at once, then the rest and the one that has come in.
    assert!(matches!(poll_write(&mut writer, &[7; 999]), Poll::Ready(Ok(500))));
    assert!(matches!(poll_write(&mut writer, &[7; 999]), Poll::Ready(Ok(451))));
    assert_eq!((place.remaining(0, "c"), written(&seen)), (0, 30 + 20 + 500 + 451));
}

#[test]
fn a_slow_peer_slows_nobody_else_down() {
    let mut place = place(&[bucket(1_000, 1_000)]);
    let (blocked, mut peer) = duplex(100);
    let blocked = ThrottledWriter::new(blocked, place.policy(0), "client").chunk(100);
    let blocked = write_all(&mut place, blocked, 4_096, 1_000);
    assert_eq!((blocked.total(), place.remaining(0, "client")), (100, 900));
    let (end, seen) = End::new(&place.clock, []);
    let other = ThrottledWriter::new(end, place.policy(0), "client").chunk(100);
    write_all(&mut place, other, 4_096, 100_000);
    place.tasks.go_to(3_000);
    assert_eq!(written(&seen), 3_900);
    // The peer reads all it can, and the two share from then on.
    let read = place.log();
    let log = read.clone();
    place.tasks.spawn(async move {
        let mut buffer = [0; 100];
        while let Ok(count @ 1..) = peer.read(&mut buffer).await {
            log.push(count);
        }
    });
    place.tasks.go_to(4_000);
    assert_eq!(read.total() - 100 + written(&seen) - 3_900, 1_000);
    assert!(blocked.total().abs_diff(600) <= 100, "{}", blocked.total());
}

#[test]
fn a_dropped_write_has_written_nothing_and_keeps_its_place() {
    let mut place = place(&[bucket(100, 100)]);
    assert!(place.policy(0).check("c", 100).is_allowed());
    let (end, seen) = End::new(&place.clock, []);
    let mut writer = ThrottledWriter::new(end, place.policy(0), "c").chunk(50);
    assert!(poll_write(&mut writer, b"never written, for its writer has thought better").is_pending());
    place.tasks.go_to(1_000);
    assert_eq!(written(&seen), 0);
    // Its turn is there for another write, and what that does not need is given back.
    assert!(matches!(poll_write(&mut writer, b"hello"), Poll::Ready(Ok(5))));
    assert_eq!((&*seen.lock().unwrap().written, place.remaining(0, "c")), (&b"hello"[..], 95));
}

/// A connection that wakes whoever asked last, whatever for, as TLS does.
#[derive(Clone, Default)]
struct OneWaker(Arc<Mutex<(bool, Option<Waker>)>>);

impl OneWaker {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let (is_open, waker) = &mut *self.0.lock().unwrap();
        *waker = Some(context.waker().clone());
        if *is_open { Poll::Ready(()) } else { Poll::Pending }
    }

    fn open(&self) {
        self.0.lock().unwrap().0 = true;
        let waker = self.0.lock().unwrap().1.take();
        waker.unwrap().wake();
    }
}

impl AsyncWrite for OneWaker {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.poll(context).map(|()| Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll(context).map(Ok)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll(context).map(Ok)
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_full_connection_wakes_whoever_polled_last() {
    let place = place(&[bucket(100, 100)]);
    let (connection, woken) = (OneWaker::default(), Arc::new(Woken::default()));
    let mut writer = ThrottledWriter::new(connection.clone(), place.policy(0), "c");
    assert!(poll_write(&mut writer, &[7; 10]).is_pending());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut writer).poll_write(&mut context, &[7; 10]).is_pending());
    connection.open();
    assert!(woken.0.load(Ordering::Relaxed));
    assert!(matches!(poll_write(&mut writer, &[7; 10]), Poll::Ready(Ok(10))));
}

#[test]
fn a_flush_that_takes_the_wake_of_a_write_does_not_leave_it_waiting() {
    let place = place(&[bucket(100, 100)]);
    let connection = OneWaker::default();
    let mut writer = ThrottledWriter::new(connection.clone(), place.policy(0), "c");
    assert!(poll_write(&mut writer, &[7; 10]).is_pending());
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut writer).poll_flush(&mut context).is_pending());
    connection.open();
    assert!(matches!(poll_write(&mut writer, &[7; 10]), Poll::Ready(Ok(10))));
    assert_eq!(place.remaining(0, "c"), 90);
}

#[test]
fn flush_and_shutdown_go_through_while_bytes_wait() {
    let mut place = place(&[bucket(100, 100)]);
    assert!(place.policy(0).check("c", 100).is_allowed());
    let (end, seen) = End::new(&place.clock, []);
    let mut writer = ThrottledWriter::new(end, place.policy(0), "c");
    assert!(poll_write(&mut writer, &[7; 10]).is_pending());
    let finished = place.tasks.spawn(async move {
        writer.flush().await.unwrap();
        writer.shutdown().await.unwrap();
        std::future::pending::<()>().await;
        drop(writer);
    });
    let Seen { flushes, shutdowns, .. } = *seen.lock().unwrap();
    assert_eq!((flushes, shutdowns), (1, 1));
    assert!(!place.tasks.is_done(finished));
    // The place in line is given up with the shutdown.
    place.tasks.go_to(1_000);
    assert!(place.policy(0).check("c", 100).is_allowed());
}

#[test]
fn an_error_of_the_connection_is_handed_on_and_costs_nothing() {
    let place = place(&[bucket(100, 100)]);
    let (end, _) = End::new(&place.clock, [Step::Fail(ErrorKind::BrokenPipe)]);
    let mut writer = ThrottledWriter::new(end, place.policy(0), "c");
    let Poll::Ready(Err(error)) = poll_write(&mut writer, &[7; 10]) else { panic!("no error") };
    assert_eq!((error.kind(), place.remaining(0, "c")), (ErrorKind::BrokenPipe, 100));
}

#[test]
fn nothing_costs_nothing_and_what_can_never_pass_is_an_error() {
    let place = place(&[bucket(0, 100)]);
    let (end, seen) = End::new(&place.clock, []);
    let mut writer = ThrottledWriter::new(end, place.policy(0), "c");
    assert!(matches!(poll_write(&mut writer, &[]), Poll::Ready(Ok(0))));
    let Poll::Ready(Err(error)) = poll_write(&mut writer, &[7; 10]) else { panic!("it passed") };
    assert_eq!((error.kind(), written(&seen)), (ErrorKind::QuotaExceeded, 0));
}

#[test]
fn one_around_the_other_limits_both_directions() {
    let mut place = place(&[bucket(100, 1), bucket(10, 1)]);
    let (near, mut far) = duplex(1_000);
    let reader = ThrottledReader::new(near, place.policy(0), "c");
    let mut both = ThrottledWriter::new(reader, place.policy(1), "c");
    place.tasks.spawn(async move {
        far.write_all(&[7; 200]).await.unwrap();
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, [8; 10]);
    });
    assert_eq!(super::burst(&mut both, 1_000), 100);
    assert!(poll_read(&mut both, 1_000).is_pending());
    assert_eq!(
        std::iter::from_fn(|| match poll_write(&mut both, &[8; 6]) {
            Poll::Ready(count) => Some(count.unwrap()),
            Poll::Pending => None,
        })
        .sum::<usize>(),
        10
    );
    drop(both);
    place.tasks.run();
}
