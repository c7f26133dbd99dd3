//! Several policies that all have to admit each byte.

use std::task::Poll;

use tidegate::{Limit, Period, Rate};
use tidegate_stream::ThrottledReader;
use tokio::io::repeat;

use super::support::*;
use super::{burst, poll_read, read_all};

/// A connection with a limit of its own and one of its client's.
fn connection(place: &Place, name: &str, chunk: usize) -> ThrottledReader<tokio::io::Repeat> {
    ThrottledReader::new(repeat(7), place.policy(0), name).also(place.policy(1), "client").chunk(chunk)
}

#[test]
fn the_tightest_sets_the_pace_whichever_it_is() {
    for limits in [[bucket(200, 100), bucket(1_000, 1_000)], [bucket(1_000, 1_000), bucket(200, 100)]] {
        let mut place = place(&limits);
        let reader = connection(&place, "c", 50);
        let log = read_all(&mut place, reader, 4_096);
        assert_eq!(log.total(), 200);
        place.tasks.go_to(10_000);
        assert_eq!(log.total(), 1_200);
        assert_within(&log.all(), 200, 100);
    }
}

#[test]
fn a_burst_is_the_least_of_what_they_hold_to_the_byte() {
    let place = place(&[bucket(331, 1), bucket(1_001, 1)]);
    let bursts = ["a", "b", "c"].map(|name| burst(&mut connection(&place, name, 60), 4_096));
    assert_eq!(bursts, [331; 3]);
    assert_eq!(
        burst(&mut connection(&place, "d", 60), 4_096),
        0,
        "eight are left, for which a whole turn is waited"
    );
    place.policy(1).reset("client");
    place.policy(0).reset("a");
    assert!(place.policy(1).check("client", 801).is_allowed());
    assert_eq!(burst(&mut connection(&place, "a", 60), 4_096), 200);
}

#[test]
fn none_is_charged_while_another_is_waited_for() {
    let mut place = place(&[bucket(1_000, 100), bucket(1_000, 100)]);
    assert!(place.policy(1).check("client", 1_000).is_allowed());
    let mut reader = connection(&place, "c", 100);
    assert!(poll_read(&mut reader, 4_096).is_pending());
    assert_eq!(place.remaining(0, "c"), 1_000);
    place.tasks.go_to(1_000);
    assert!(matches!(poll_read(&mut reader, 4_096), Poll::Ready(Ok(read)) if read.len() == 100));
    assert_eq!((place.remaining(0, "c"), place.remaining(1, "client")), (900, 0));
    // The other way round: now the connection's own is the tighter one.
    assert!(place.policy(0).check("c", 900).is_allowed());
    place.policy(1).reset("client");
    assert!(poll_read(&mut reader, 4_096).is_pending());
    assert_eq!(place.remaining(1, "client"), 1_000);
    drop(reader);
    assert_eq!((place.remaining(0, "c"), place.remaining(1, "client")), (0, 1_000));
}

#[test]
fn what_is_waited_for_long_is_no_more_of_a_burst() {
    let mut place = place(&[bucket(200, 100), bucket(1_000, 1)]);
    assert!(place.policy(1).check("client", 1_000).is_allowed());
    let mut reader = connection(&place, "c", 100);
    assert!(poll_read(&mut reader, 4_096).is_pending());
    place.tasks.go_to(50_000);
    place.policy(1).reset("client");
    assert_eq!(
        burst(&mut reader, 4_096),
        200,
        "what the connection's own bucket holds, and no chunk besides"
    );
}

/// A connection's own limit holds to the byte although what it waits for is the client's, which comes in gushes.
#[test]
fn each_bound_holds_to_the_byte_when_the_limits_alternate() {
    let gushes = Limit::fixed_window(3_000, Period::from_secs(10).unwrap());
    let mut place = place(&[bucket(500, 100), gushes]);
    let logs: Vec<_> = ["a", "b", "c"]
        .map(|name| {
            let reader = connection(&place, name, 250);
            read_all(&mut place, reader, 4_096)
        })
        .into();
    place.tasks.go_to(100_000);
    for log in &logs {
        assert_within(&log.all(), 500, 100);
        // What comes in while the window is used up is lost but for what the bucket holds.
        assert!(log.total() > 5_000, "{} bytes", log.total());
    }
    for window in 0..10 {
        let is_in = |(at, _): &(u64, usize)| *at / 10_000_000 == window;
        let bytes: usize = logs.iter().flat_map(|log| log.all()).filter(is_in).map(|(_, count)| count).sum();
        assert!(bytes <= 3_000, "{bytes} bytes in window {window}");
    }
}

#[test]
fn a_connection_limited_by_its_own_gets_that_and_the_others_the_rest() {
    // "slow" may have 100 of the client's 1000 a second by an override of its own.
    let clock = tidegate::clock::ManualClock::new(millis(0));
    let own = tidegate::Policy::builder("own")
        .limit("own", bucket(1_000, 10_000))
        .override_for(tidegate::KeyPattern::exact("slow"), [("own", bucket(200, 100))])
        .build()
        .unwrap();
    let client = tidegate::Policy::single("client", bucket(400, 1_000)).unwrap();
    let policies = tidegate::PolicySet::new([own, client]).unwrap();
    let limiter = tidegate::Limiter::builder(policies).clock(clock.clone()).build();
    let mut place = Place { tasks: executor::Executor::new(clock.clone()), limiter, clock };
    let of = |place: &Place, name: &str| {
        let policy = |name| place.limiter.policy(name).unwrap();
        ThrottledReader::new(repeat(7), policy("own"), name).also(policy("client"), "client").chunk(100)
    };
    let logs = ["slow", "fast", "other"].map(|name| {
        let reader = of(&place, name);
        read_all(&mut place, reader, 4_096)
    });
    place.tasks.go_to(60_000);
    let [slow, fast, other] = logs.each_ref().map(Log::total);
    assert_within(&logs[0].all(), 200, 100);
    assert!((6_000..=6_200).contains(&slow), "{slow}");
    assert!(fast.abs_diff(other) <= 400, "{fast} and {other}");
    assert!(slow + fast + other > 400 + 60_000 - 100, "{}", slow + fast + other);
}

#[test]
fn connections_that_share_two_keys_all_get_on() {
    let mut place = place(&[bucket(200, 1_000), bucket(200, 1_000)]);
    // a, b: the same two in either order; c and d: one each.
    let of = |first: usize, second: Option<usize>| {
        let reader = ThrottledReader::new(repeat(7), place.policy(first), "k").chunk(100);
        match second {
            Some(second) => reader.also(place.policy(second), "k"),
            None => reader,
        }
    };
    let readers = [of(0, Some(1)), of(1, Some(0)), of(0, None), of(1, None)];
    let logs = readers.map(|reader| read_all(&mut place, reader, 4_096));
    place.tasks.go_to(30_000);
    let totals = logs.each_ref().map(Log::total);
    assert!(totals.iter().all(|total| *total > 3_000), "{totals:?}");
    for both in [0, 1] {
        let total = totals[0] + totals[1] + totals[2 + both];
        assert!(total <= 200 + 30_000, "{total}");
    }
}

#[test]
fn policies_of_different_limiters_may_be_put_together() {
    let (mut one, other) = (place(&[bucket(100, 100)]), place(&[Limit::gcra(Rate::per_second(10), 1_000)]));
    let reader = ThrottledReader::new(repeat(7), one.policy(0), "c").also(other.policy(0), "c").chunk(50);
    let log = read_all(&mut one, reader, 4_096);
    one.tasks.go_to(9_000);
    assert_eq!(log.total(), 1_000, "what the other holds: its clock stands still");
}
