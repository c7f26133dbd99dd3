//! Connections that share a key.

use tidegate_stream::{ThrottledReader, ThrottledWriter};
use tokio::io::{AsyncWriteExt, repeat};

use super::ends::{End, Step, bytes};
use super::read_all;
use super::support::*;

const CHUNK: usize = 100;

/// How many bytes each of some connections got by each instant at which any got some.
fn shares(logs: &[Log<usize>]) -> Vec<(u64, Vec<usize>)> {
    let mut instants: Vec<u64> = logs.iter().flat_map(|log| log.all()).map(|(at, _)| at).collect();
    instants.sort_unstable();
    instants.dedup();
    let by = |at: u64, log: &Log<usize>| -> usize {
        log.all().iter().filter(|(when, _)| *when <= at).map(|(_, count)| count).sum()
    };
    instants.into_iter().map(|at| (at, logs.iter().map(|log| by(at, log)).collect())).collect()
}

/// What all connections got.
fn together(logs: &[Log<usize>]) -> Vec<(u64, usize)> {
    let mut events: Vec<_> = logs.iter().flat_map(|log| log.all()).collect();
    events.sort_unstable();
    events
}

fn assert_even(logs: &[Log<usize>], since: u64, within: usize) {
    let shares = shares(logs);
    let before = shares.iter().rev().find(|(at, _)| *at <= since).map(|(_, shares)| shares.clone());
    let before = before.unwrap_or_else(|| vec![0; logs.len()]);
    for (at, shares) in shares.iter().filter(|(at, _)| *at > since) {
        let got = shares.iter().zip(&before).map(|(now, before)| now - before);
        let (least, most) = (got.clone().min().unwrap(), got.max().unwrap());
        assert!(most - least <= within, "at {at} us: {shares:?}");
    }
}

#[test]
fn two_connections_of_a_client_are_never_more_than_a_chunk_apart() {
    let mut place = place(&[bucket(400, 1_000)]);
    assert!(place.policy(0).check("client", 400).is_allowed());
    let logs: Vec<_> = (0..2)
        .map(|_| {
            let reader = ThrottledReader::new(repeat(7), place.policy(0), "client").chunk(CHUNK);
            read_all(&mut place, reader, 4_096)
        })
        .collect();
    place.tasks.go_to(10_000);
    assert_even(&logs, 0, CHUNK);
    assert_within(&together(&logs), 400, 1_000);
    assert_eq!(together(&logs).iter().map(|(_, count)| count).sum::<usize>(), 10_000);
}

#[test]
fn one_that_comes_later_gets_its_share_from_then_on() {
    let mut place = place(&[bucket(400, 1_000)]);
    let of = |place: &Place| ThrottledReader::new(repeat(7), place.policy(0), "client").chunk(CHUNK);
    let reader = of(&place);
    let mut logs = vec![read_all(&mut place, reader, 4_096)];
    for (since, joining) in [(3_000, 1), (6_000, 4)] {
        place.tasks.go_to(since);
        for _ in 0..joining {
            let reader = of(&place);
            logs.push(read_all(&mut place, reader, 4_096));
        }
        place.tasks.go_to(since + 3_000);
        assert_even(&logs, since * 1_000, CHUNK);
    }
    assert_within(&together(&logs), 400, 1_000);
}

#[test]
fn readers_and_writers_of_one_key_share_too() {
    let mut place = place(&[bucket(400, 1_000)]);
    assert!(place.policy(0).check("client", 400).is_allowed());
    let reader = ThrottledReader::new(repeat(7), place.policy(0), "client").chunk(CHUNK);
    let read = read_all(&mut place, reader, 4_096);
    let mut writer = ThrottledWriter::new(tokio::io::sink(), place.policy(0), "client").chunk(CHUNK);
    let written = place.log();
    let log = written.clone();
    place.tasks.spawn(async move {
        loop {
            log.push(writer.write(&[7; 4_096]).await.unwrap());
        }
    });
    place.tasks.go_to(5_000);
    assert_even(&[read, written], 0, CHUNK);
}

#[test]
fn a_slow_connection_takes_what_it_can_and_the_others_the_rest() {
    let mut place = place(&[bucket(400, 1_000)]);
    assert!(place.policy(0).check("client", 400).is_allowed());
    // Fifty bytes each half second: a tenth of what there is.
    let trickle = (1..20).flat_map(|half| [Step::Until(half * 500), bytes(50)]);
    let slow = End::new(&place.clock, trickle).0;
    let slow = ThrottledReader::new(slow, place.policy(0), "client").chunk(CHUNK);
    let slow = read_all(&mut place, slow, 4_096);
    let busy: Vec<_> = (0..2)
        .map(|_| {
            let reader = ThrottledReader::new(repeat(7), place.policy(0), "client").chunk(CHUNK);
            read_all(&mut place, reader, 4_096)
        })
        .collect();
    place.tasks.go_to(9_800);
    assert_eq!(slow.total(), 19 * 50);
    // Each waits for no more than a turn of every other.
    for (turn, (at, count)) in slow.all().into_iter().enumerate() {
        let came = (turn as u64 + 1) * 500_000;
        assert!(count == 50 && at - came <= 250_000, "{count} bytes of {came} us at {at} us");
    }
    assert_even(&busy, 0, CHUNK);
    let all = together(&[slow, busy[0].clone(), busy[1].clone()]);
    let total: usize = all.iter().map(|(_, count)| count).sum();
    assert!(total <= 9_800 && total > 9_800 - CHUNK, "{total} bytes");
}
