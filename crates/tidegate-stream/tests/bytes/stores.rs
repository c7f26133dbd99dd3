//! On a store that does I/O the same bytes pass, within the same bounds; one that is down loses none.

use std::io::ErrorKind;
use std::task::{Context, Poll, Waker};

use tidegate::AcquireError;
use tidegate_stream::{ThrottledReader, ThrottledWriter};
use tokio::io::{AsyncWriteExt, repeat};

use super::ends::{End, Step, bytes};
use super::support::executor::Executor;
use super::support::slow::Slow;
use super::support::*;
use super::{poll_read, read_all};

/// What is left of a key.
fn remaining(place: &Place<Slow>, policy: usize, key: &str) -> u64 {
    let mut peek = place.policy(policy).peek(key);
    loop {
        if let Poll::Ready(seen) = peek.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return seen.unwrap().remaining();
        }
    }
}

#[test]
fn however_long_the_store_takes_the_bounds_and_shares_are_the_same() {
    for yields in 0..4 {
        let store = Slow::yielding(yields);
        let mut place = place_of(&[bucket(300, 700), bucket(400, 1_000)], |builder| builder.store(store));
        let logs: Vec<_> = ["a", "b"]
            .map(|name| {
                let reader = ThrottledReader::new(repeat(7), place.policy(0), name);
                let reader = reader.also(place.policy(1), "client").chunk(100);
                read_all(&mut place, reader, 4_096)
            })
            .into();
        place.tasks.go_to(10_000);
        for log in &logs {
            assert_within(&log.all(), 300, 700);
            assert!(log.total().abs_diff(5_200) <= 300, "{} with {yields}", log.total());
        }
        let total: usize = logs.iter().map(Log::total).sum();
        assert!(total <= 10_400 && total > 10_400 - 100, "{total} with {yields}");
        // Nothing is charged but what has passed: the client's bucket is full when that says so.
        place.tasks = Executor::new(place.clock.clone());
        assert!(remaining(&place, 1, "client") < 100);
    }
}

#[test]
fn asking_it_is_not_waiting_for_the_others() {
    // Each answer takes a while, but both admit, so neither is let go for the other and asked twice.
    let mut place = place_of(&[bucket(1_000, 1), bucket(500, 1)], |builder| builder.store(Slow::yielding(3)));
    let reader = ThrottledReader::new(repeat(7), place.policy(0), "c").also(place.policy(1), "c").chunk(100);
    let log = read_all(&mut place, reader, 4_096);
    assert_eq!(log.events(), [100; 5]);
    assert_eq!((remaining(&place, 0, "c"), remaining(&place, 1, "c")), (500, 0));
}

#[test]
fn dropped_while_one_store_is_asked_it_gives_back_what_another_has_granted() {
    let silent = Slow::default();
    let one = place_of(&[bucket(1_000, 1)], |builder| builder.store(Slow::default()));
    let other = place_of(&[bucket(1_000, 1)], |builder| builder.store(silent.clone()));
    let of = || ThrottledReader::new(repeat(7), one.policy(0), "c").also(other.policy(0), "c").chunk(100);
    silent.shut();
    let mut reader = of();
    assert!(poll_read(&mut reader, 4_096).is_pending());
    assert_eq!(remaining(&one, 0, "c"), 900);
    drop(reader);
    assert_eq!(remaining(&one, 0, "c"), 1_000);
}

#[test]
fn what_is_not_written_is_given_back_before_the_next_payment() {
    for yields in 0..4 {
        let mut place = place_of(&[bucket(1_000, 1)], |builder| builder.store(Slow::yielding(yields)));
        let room = (0..20).flat_map(|second| [Step::Until(second), bytes(7)]);
        let (end, seen) = End::new(&place.clock, room);
        let mut writer = ThrottledWriter::new(end, place.policy(0), "c").chunk(100);
        place.tasks.spawn(async move {
            writer.write_all(&[7; 140]).await.unwrap();
            writer.flush().await.unwrap();
            std::future::pending::<()>().await;
            drop(writer);
        });
        place.tasks.go_to(100);
        assert_eq!(seen.lock().unwrap().written.len(), 140);
        assert_eq!(remaining(&place, 0, "c"), 860, "with {yields}");
    }
}

#[test]
fn a_store_that_is_down_is_an_error_that_loses_nothing() {
    let store = Slow::default();
    let place = place_of(&[bucket(1_000, 1)], |builder| builder.store(store.clone()));
    let (end, _) = End::new(&place.clock, [bytes(50)]);
    let mut reader = ThrottledReader::new(end, place.policy(0), "c");
    store.fail(true);
    for _ in 0..2 {
        let Poll::Ready(Err(error)) = poll_read(&mut reader, 100) else { panic!("no error") };
        assert_eq!(error.kind(), ErrorKind::Other);
        let within = error.get_ref().and_then(|within| within.downcast_ref());
        assert!(matches!(within, Some(AcquireError::Store(_))), "{error:?}");
    }
    store.fail(false);
    let Poll::Ready(Ok(read)) = poll_read(&mut reader, 100) else { panic!("it is up again") };
    assert_eq!(read, (0..50).collect::<Vec<u8>>());
}
