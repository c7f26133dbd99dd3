//! What is read.

use std::io::ErrorKind;
use std::task::Poll;

use tidegate::{AcquireError, Limit, Period, Rate};
use tidegate_stream::ThrottledReader;
use tokio::io::{AsyncReadExt, repeat};

use super::ends::{End, Step, bytes};
use super::support::*;
use super::{burst, poll_read, read_all};

#[test]
fn bytes_come_at_the_rate_after_a_burst_of_the_capacity() {
    for (capacity, rate, chunk, room) in [
        (1_000, 250, 100, 64),
        (1_000, 250, 300, 4_096),
        (997, 1_013, 100, 70),
        (5, 3, 100, 100),
        (1, 7, 9, 3),
    ] {
        let mut place = place(&[bucket(capacity, rate)]);
        let reader = ThrottledReader::new(repeat(7), place.policy(0), "c").chunk(chunk);
        let log = read_all(&mut place, reader, room);
        assert_eq!(log.total(), capacity as usize, "the burst, to the byte");
        place.tasks.go_to(60_000);
        assert_within(&log.all(), capacity, rate);
        let admitted = (capacity + 60 * rate) as usize;
        let in_turn = chunk.min(room).min((capacity as usize / 2).max(1));
        // A bucket that is full when it holds one byte loses what a wait is rounded up by.
        assert!(log.total() <= admitted && log.total() >= admitted - in_turn, "{} bytes", log.total());
    }
}

#[test]
fn after_idling_a_burst_is_what_the_bucket_holds_to_the_byte() {
    for capacity in [1, 2, 3, 10, 11, 1_000, 1_009] {
        for chunk in [1, 7, 300, 16_384] {
            let mut place = place(&[bucket(capacity, 2)]);
            let mut reader = ThrottledReader::new(repeat(7), place.policy(0), "c").chunk(chunk);
            for hour in 1..4 {
                let allowed = capacity as usize;
                assert_eq!(burst(&mut reader, 4_096), allowed, "of {capacity} in chunks of {chunk}");
                // Whatever was read ahead comes a little later; then nothing is asked for an hour.
                place.tasks.go_to(hour * 3_600_000 - 3_000_000);
                assert!(poll_read(&mut reader, 4_096).is_ready());
                place.tasks.go_to(hour * 3_600_000);
            }
        }
    }
}

#[test]
fn any_algorithm_sets_the_pace() {
    let second = Period::SECOND;
    let pace = |limit: Limit| {
        let mut place = place(&[limit]);
        let reader = ThrottledReader::new(repeat(7), place.policy(0), "c").chunk(50);
        let log = read_all(&mut place, reader, 50);
        place.tasks.go_to(2_000);
        log.in_millis()
    };
    let leaky = Limit::leaky_bucket(100, Rate::per_second(100)).unwrap();
    assert_eq!(pace(leaky), [(0, 50), (500, 50), (1_000, 50), (1_500, 50), (2_000, 50)]);
    let window = [(0, 50), (0, 50), (1_000, 50), (1_000, 50), (2_000, 50), (2_000, 50)];
    assert_eq!(pace(Limit::fixed_window(100, second)), window);
    assert_eq!(pace(Limit::sliding_window_log(100, second).unwrap()), window);
    let gcra = [(0, 50), (0, 50), (500, 50), (1_000, 50), (1_500, 50), (2_000, 50)];
    assert_eq!(pace(Limit::gcra(Rate::per_second(100), 100)), gcra);
    // After half of a window half of the one before counts no more.
    let counter = pace(Limit::sliding_window_counter(100, second));
    assert_eq!(counter, [(0, 50), (0, 50), (1_500, 50), (2_000, 50)]);
}

#[test]
fn a_connection_on_which_nothing_comes_costs_nothing_and_holds_nobody_up() {
    let mut place = place(&[bucket(1_000, 100)]);
    let idle = End::new(&place.clock, [Step::Until(3_600_000), bytes(10)]).0;
    let idle = ThrottledReader::new(idle, place.policy(0), "c");
    let idle = read_all(&mut place, idle, 4_096);
    assert_eq!(place.remaining(0, "c"), 1_000);
    let mut busy = ThrottledReader::new(repeat(7), place.policy(0), "c");
    assert_eq!(burst(&mut busy, 4_096), 1_000);
    drop(busy);
    place.tasks.go_to(4_000_000);
    assert_eq!(idle.in_millis(), [(3_600_000, 10)]);
}

#[test]
fn what_trickles_in_is_handed_on_at_once_and_leaves_no_debt() {
    let mut place = place(&[bucket(1_000, 100)]);
    let trickle = (0..50).flat_map(|second| [Step::Until(second * 1_000), bytes(100)]);
    let reader = ThrottledReader::new(End::new(&place.clock, trickle).0, place.policy(0), "c");
    let log = read_all(&mut place, reader, 4_096);
    place.tasks.go_to(50_000);
    let expected: Vec<_> = (0..50).map(|second| (second * 1_000, 100)).collect();
    assert_eq!(log.in_millis(), expected);
    assert_eq!(place.remaining(0, "c"), 1_000);
}

#[test]
fn the_end_and_errors_come_at_once_and_after_what_was_read_before() {
    let mut place = place(&[bucket(100, 100)]);
    assert!(place.policy(0).check("c", 100).is_allowed());
    let (empty, _) = End::new(&place.clock, []);
    let mut reader = ThrottledReader::new(empty, place.policy(0), "c");
    assert!(matches!(poll_read(&mut reader, 10), Poll::Ready(Ok(read)) if read.is_empty()));

    let (failing, _) = End::new(&place.clock, [Step::Fail(ErrorKind::ConnectionReset)]);
    let mut reader = ThrottledReader::new(failing, place.policy(0), "c");
    let Poll::Ready(Err(error)) = poll_read(&mut reader, 10) else { panic!("no error") };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let (both, _) = End::new(&place.clock, [bytes(50), Step::Fail(ErrorKind::BrokenPipe)]);
    let mut reader = ThrottledReader::new(both, place.policy(0), "c");
    assert!(poll_read(&mut reader, 100).is_pending());
    place.tasks.go_to(500);
    assert!(matches!(poll_read(&mut reader, 100), Poll::Ready(Ok(read)) if read.len() == 50));
    let Poll::Ready(Err(error)) = poll_read(&mut reader, 100) else { panic!("no error") };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn no_room_is_no_end_and_costs_nothing() {
    let place = place(&[bucket(100, 100)]);
    let (end, seen) = End::new(&place.clock, [bytes(50)]);
    let mut reader = ThrottledReader::new(end, place.policy(0), "c");
    assert!(matches!(poll_read(&mut reader, 0), Poll::Ready(Ok(read)) if read.is_empty()));
    assert_eq!((place.remaining(0, "c"), seen.lock().unwrap().taken), (100, 0));
}

#[test]
fn a_dropped_read_loses_nothing_and_holds_its_place() {
    let mut place = place(&[bucket(100, 100)]);
    assert!(place.policy(0).check("c", 100).is_allowed());
    let (end, seen) = End::new(&place.clock, [bytes(200)]);
    let mut first = ThrottledReader::new(end, place.policy(0), "c").chunk(50);
    for _ in 0..3 {
        assert!(poll_read(&mut first, 100).is_pending());
        assert_eq!(seen.lock().unwrap().taken, 50, "no more than a chunk is read ahead");
    }
    let mut second = ThrottledReader::new(repeat(7), place.policy(0), "c").chunk(50);
    assert!(poll_read(&mut second, 100).is_pending());
    place.tasks.go_to(500);
    assert!(poll_read(&mut second, 100).is_pending());
    let Poll::Ready(Ok(read)) = poll_read(&mut first, 100) else { panic!("it was its turn") };
    assert_eq!(read, (0..50).collect::<Vec<u8>>());
    assert!(poll_read(&mut first, 100).is_pending());
    place.tasks.go_to(1_000);
    assert!(matches!(poll_read(&mut second, 100), Poll::Ready(Ok(read)) if read.len() == 50));
}

#[test]
fn what_there_is_no_room_for_is_given_back_and_handed_on_later() {
    let mut place = place(&[bucket(100, 100)]);
    assert!(place.policy(0).check("c", 100).is_allowed());
    let mut reader = ThrottledReader::new(End::new(&place.clock, [bytes(50)]).0, place.policy(0), "c");
    assert!(poll_read(&mut reader, 100).is_pending());
    place.tasks.go_to(1_000);
    for (from, to) in [(0, 20), (20, 40), (40, 50)] {
        let Poll::Ready(Ok(read)) = poll_read(&mut reader, 20) else { panic!("there is enough") };
        assert_eq!(read, (from..to).collect::<Vec<u8>>());
        assert_eq!(place.remaining(0, "c"), 100 - u64::from(to), "what was handed on is charged, no more");
    }
}

#[test]
fn it_comes_apart_with_what_it_holds_and_gives_its_place_up() {
    let mut place = place(&[bucket(100, 100)]);
    assert!(place.policy(0).check("c", 100).is_allowed());
    let mut reader = ThrottledReader::new(End::new(&place.clock, [bytes(70)]).0, place.policy(0), "c");
    assert!(poll_read(&mut reader, 30).is_pending());
    let (mut rest, held) = reader.into_inner();
    assert_eq!(held, (0..30).collect::<Vec<u8>>());
    assert!(matches!(poll_read(&mut rest, 100), Poll::Ready(Ok(read)) if read.len() == 40));
    place.tasks.go_to(1_000);
    assert!(place.policy(0).check("c", 100).is_allowed());
}

#[test]
fn what_can_never_pass_is_an_error_that_loses_nothing() {
    let place = place(&[bucket(0, 100)]);
    let (end, seen) = End::new(&place.clock, [bytes(50)]);
    let mut reader = ThrottledReader::new(end, place.policy(0), "c");
    for _ in 0..2 {
        let Poll::Ready(Err(error)) = poll_read(&mut reader, 50) else { panic!("it passed") };
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        let within = error.get_ref().and_then(|within| within.downcast_ref());
        assert_eq!(within, Some(&AcquireError::Never));
    }
    assert_eq!(seen.lock().unwrap().taken, 1);
    place.limiter.reload(policies(&[bucket(100, 1)])).unwrap();
    let mut read = Vec::new();
    while let Poll::Ready(Ok(more)) = poll_read(&mut reader, 50) {
        if more.is_empty() {
            break;
        }
        read.extend(more);
    }
    assert_eq!(read, (0..50).collect::<Vec<u8>>());
}

#[test]
fn a_full_line_is_an_error_that_loses_nothing() {
    let mut place = place_of(&[bucket(100, 100)], |builder| builder.max_waiters_per_key(1));
    assert!(place.policy(0).check("c", 100).is_allowed());
    let of = || ThrottledReader::new(repeat(7), place.policy(0), "c").chunk(50);
    let (mut first, mut second) = (of(), of());
    assert!(poll_read(&mut first, 100).is_pending());
    let Poll::Ready(Err(error)) = poll_read(&mut second, 100) else { panic!("there was room") };
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    drop(first);
    place.tasks.go_to(500);
    assert!(matches!(poll_read(&mut second, 100), Poll::Ready(Ok(read)) if read.len() == 50));
}

#[test]
fn figures_may_change_under_one_who_waits() {
    let mut place = place(&[bucket(1_000, 100)]);
    assert!(place.policy(0).check("c", 1_000).is_allowed());
    let reader = ThrottledReader::new(End::new(&place.clock, [bytes(500)]).0, place.policy(0), "c");
    let log = read_all(&mut place, reader, 4_096);
    place.tasks.go_to(1_000);
    // Less than it waits for fits into the new bucket.
    place.limiter.reload(policies(&[bucket(200, 100)])).unwrap();
    place.tasks.go_to(10_000);
    assert_eq!(log.in_millis(), [(1_000, 100), (2_000, 100), (3_000, 100), (4_000, 100), (5_000, 100)]);
}

#[test]
fn it_can_be_sent_and_shown_and_written_through() {
    fn assert_send<T: Send>(_: T) {}
    let mut place = place(&[bucket(10, 10)]);
    let (end, seen) = End::new(&place.clock, []);
    let mut reader = ThrottledReader::new(end, place.policy(0), "c");
    assert_send(reader.read_u8());
    assert!(matches!(super::poll_write(&mut reader, &[7; 5_000]), Poll::Ready(Ok(5_000))));
    assert_eq!(seen.lock().unwrap().written.len(), 5_000);
    place.tasks.finish();
    assert_eq!(place.remaining(0, "c"), 10);
    let shown = ThrottledReader::new((), place.policy(0), "c");
    assert_eq!(format!("{shown:?}"), "ThrottledReader { inner: (), held: 0, .. }");
}
