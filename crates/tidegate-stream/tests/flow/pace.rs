//! Loops at the pace of a policy.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tidegate::{AcquireError, Decision};
use tidegate_stream::{Pace, ThrottleExt};

use super::support::*;

/// Polls a `next` once and drops it.
fn poll(pace: &mut Pace) -> Poll<Result<Decision, AcquireError>> {
    pin!(pace.next()).poll(&mut Context::from_waker(Waker::noop()))
}

/// A loop that notes each job it may do, for ever.
fn work(place: &mut Place, mut pace: Pace, name: &'static str, log: &Log<&'static str>) {
    let log = log.clone();
    place.tasks.spawn(async move {
        loop {
            pace.next().await.unwrap();
            log.push(name);
        }
    });
}

#[test]
fn jobs_are_done_as_they_are_admitted() {
    let mut place = place(&[bucket(2, 4)]);
    let (log, pace) = (place.log(), place.policy(0).pace("k"));
    work(&mut place, pace, "job", &log);
    place.tasks.go_to(1_000);
    assert_eq!(log.in_millis().iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 0, 250, 500, 750, 1_000]);
}

#[test]
fn loops_of_one_key_take_turns_and_jobs_have_their_cost() {
    let mut place = place(&[bucket(3, 10)]);
    let log = place.log();
    assert!(place.policy(0).check("k", 3).is_allowed());
    let (heavy, light) = (place.policy(0).pace_by("k", 3), place.policy(0).pace("k"));
    work(&mut place, heavy, "heavy", &log);
    work(&mut place, light, "light", &log);
    place.tasks.go_to(1_100);
    let expected = [(300, "heavy"), (400, "light"), (700, "heavy"), (800, "light"), (1_100, "heavy")];
    assert_eq!(log.in_millis(), expected);
}

#[test]
fn a_dropped_next_keeps_its_place_and_the_pace_itself_gives_it_up() {
    let mut place = place(&[bucket(1, 1)]);
    let of = || place.policy(0).pace("k");
    let (mut first, mut second, mut third) = (of(), of(), of());
    assert!(poll(&mut first).is_ready());
    for pace in [&mut first, &mut second, &mut third] {
        assert!(poll(pace).is_pending());
    }
    place.tasks.go_to(1_000);
    assert!(poll(&mut third).is_pending() && poll(&mut second).is_pending());
    assert!(poll(&mut first).is_ready());
    drop(second);
    place.tasks.go_to(2_000);
    assert!(poll(&mut third).is_ready());
    assert_eq!(place.remaining(0, "k"), 0);
    place.tasks.go_to(3_000);
    assert!(poll(&mut first).is_ready(), "nobody waits any more");
}

#[test]
fn what_cannot_be_is_told_at_once_and_each_time() {
    let place = place(&[bucket(3, 10)]);
    let mut pace = place.policy(0).pace_by("k", 4);
    for _ in 0..2 {
        assert!(matches!(poll(&mut pace), Poll::Ready(Err(AcquireError::Never))));
    }
    assert_eq!(place.remaining(0, "k"), 3);
    assert!(format!("{pace:?}").contains("is_waiting: false"), "{pace:?}");
}
