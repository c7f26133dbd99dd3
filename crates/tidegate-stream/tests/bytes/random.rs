//! Random lives: whatever the chunks, the buffers, the pauses and the reads and writes that are dropped, the same
//! bytes come out, each is charged once, and no bound is broken.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use tidegate::{Limit, Period};
use tidegate_stream::{ThrottledReader, ThrottledWriter};
use tokio::io::AsyncWrite;

use super::ends::{End, Step};
use super::support::*;
use super::{poll_read, poll_write};

/// So many bytes, no two of which are alike nearby, in steps with pauses between them.
fn script(sizes: &[(u64, usize)]) -> (Vec<Step>, Vec<u8>) {
    let (mut at, mut all, mut steps) = (0, Vec::new(), Vec::new());
    for (pause, size) in sizes {
        at += pause;
        let bytes: Vec<u8> = (all.len()..all.len() + size).map(|index| (index % 251) as u8).collect();
        all.extend_from_slice(&bytes);
        steps.extend([Step::Until(at), Step::Bytes(bytes)]);
    }
    (steps, all)
}

/// Two buckets, and a window so large that it only counts.
const CAPACITIES: [u32; 2] = [97, 150];
const RATES: [u32; 2] = [300, 210];
const MANY: u32 = 1_000_000;

fn counted() -> Place {
    let counter = Limit::fixed_window(MANY, Period::MAX);
    place(&[bucket(CAPACITIES[0], RATES[0]), bucket(CAPACITIES[1], RATES[1]), counter])
}

/// That exactly what passed was charged, and that no bucket let more pass than it may.
fn assert_exact(place: &Place, log: &Log<usize>) {
    assert_eq!(u64::from(MANY) - place.remaining(2, "c"), log.total() as u64, "charged once each");
    for bucket in 0..2 {
        assert_within(&log.all(), CAPACITIES[bucket], RATES[bucket]);
    }
}

/// Some time passes, but not past the instant at which somebody is to be woken.
fn pause(place: &mut Place, pauses: &mut impl Iterator<Item = u64>) {
    let at = millis(place.now() + pauses.next().unwrap());
    let wake = place.clock.next_wake().unwrap_or(at);
    place.tasks.go_to_instant(wake.min(at));
}

fn reader(place: &Place, end: End, chunk: usize) -> ThrottledReader<End> {
    let reader = ThrottledReader::new(end, place.policy(0), "c").chunk(chunk);
    reader.also(place.policy(1), "c").also(place.policy(2), "c")
}

fn writer(place: &Place, end: End, chunk: usize) -> ThrottledWriter<End> {
    let writer = ThrottledWriter::new(end, place.policy(0), "c").chunk(chunk);
    writer.also(place.policy(1), "c").also(place.policy(2), "c")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn reading(
        sizes in prop::collection::vec((0u64..300, 0usize..200), 0..12),
        rooms in prop::collection::vec(1usize..120, 1..8),
        pauses in prop::collection::vec(1u64..200, 1..8),
        chunk in 1usize..100,
    ) {
        let (steps, expected) = script(&sizes);
        let mut place = counted();
        let (end, seen) = End::new(&place.clock, steps);
        let mut reader = reader(&place, end, chunk);
        let (mut read, log) = (Vec::new(), place.log());
        let (mut rooms, mut pauses) = (rooms.into_iter().cycle(), pauses.into_iter().cycle());
        loop {
            match poll_read(&mut reader, rooms.next().unwrap()) {
                Poll::Ready(Ok(more)) if more.is_empty() => break,
                Poll::Ready(Ok(more)) => {
                    log.push(more.len());
                    read.extend(more);
                }
                Poll::Ready(Err(error)) => panic!("{error}"),
                Poll::Pending => pause(&mut place, &mut pauses),
            }
            let ahead = seen.lock().unwrap().taken - read.len();
            prop_assert!(ahead <= chunk, "{} bytes ahead", ahead);
        }
        prop_assert_eq!(read, expected);
        assert_exact(&place, &log);
    }

    #[test]
    fn writing(
        room in prop::collection::vec((0u64..300, 0usize..200), 0..12),
        sizes in prop::collection::vec(1usize..120, 1..8),
        pauses in prop::collection::vec(1u64..200, 1..8),
        chunk in 1usize..100,
        total in 0usize..800,
    ) {
        let mut place = counted();
        let (end, seen) = End::new(&place.clock, script(&room).0);
        let mut writer = writer(&place, end, chunk);
        let data = script(&[(0, total)]).1;
        let (mut written, log) = (0, place.log());
        let (mut sizes, mut pauses) = (sizes.into_iter().cycle(), pauses.into_iter().cycle());
        while written < total {
            let to = total.min(written + sizes.next().unwrap());
            match poll_write(&mut writer, &data[written..to]) {
                Poll::Ready(count) => {
                    log.push(count.unwrap());
                    written += log.events().last().unwrap();
                }
                Poll::Pending => pause(&mut place, &mut pauses),
            }
        }
        let shut = Pin::new(&mut writer).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        prop_assert!(shut.is_ready());
        prop_assert_eq!(&seen.lock().unwrap().written, &data);
        assert_exact(&place, &log);
    }

    /// Two connections of one client, with limits of their own too, read from tasks that are woken.
    #[test]
    fn two_at_once(
        sizes in prop::collection::vec((0u64..300, 0usize..200), 2..12),
        chunk in 1usize..100,
        room in 1usize..120,
    ) {
        let mut place = counted();
        let (steps, expected) = script(&sizes);
        let logs = ["a", "b"].map(|name| {
            let reader = ThrottledReader::new(End::new(&place.clock, steps.clone()).0, place.policy(0), name)
                .also(place.policy(1), "client")
                .also(place.policy(2), "client")
                .chunk(chunk);
            super::read_all(&mut place, reader, room)
        });
        place.tasks.go_to(60_000);
        let mut all: Vec<_> = logs.iter().flat_map(|log| log.all()).collect();
        all.sort_unstable();
        for log in &logs {
            prop_assert_eq!(log.total(), expected.len());
            assert_within(&log.all(), CAPACITIES[0], RATES[0]);
        }
        assert_within(&all, CAPACITIES[1], RATES[1]);
        let charged = u64::from(MANY) - place.remaining(2, "client");
        prop_assert_eq!(charged, 2 * expected.len() as u64);
    }
}
