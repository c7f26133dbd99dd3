//! Deadlines, waiters that go away, and lines that are long enough.

use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::{AcquireError, Limit, Limiter, MemoryStore, OnFull, Period, Policy, Rate, Timestamp, Wait};

use super::executor::Executor;
use super::{micros, millis, place, place_of};

fn too_late(millis: u64) -> AcquireError {
    AcquireError::TooLate { needs: Wait::from_micros(u128::from(millis) * 1_000) }
}

#[test]
fn a_timeout_too_short_is_told_at_once_and_one_just_long_enough_is_kept() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    place.take(1);
    let short = place.acquire_within(1, 999);
    assert_eq!(*place.tasks.error(short), too_late(1_000));
    let enough = place.acquire_within(1, 1_000);
    let next = place.acquire_within(1, 1_999);
    assert_eq!(*place.tasks.error(next), too_late(2_000), "those ahead count");
    let next = place.acquire_within(1, 2_000);
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(enough), Some(millis(1_000)));
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(next), Some(millis(2_000)), "nobody who failed was charged");
}

#[test]
fn no_timeout_is_too_long() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    place.take(1);
    let waiters = [Duration::MAX, Duration::from_millis(u64::MAX), Duration::from_secs(2)]
        .map(|timeout| place.tasks.spawn(place.api.acquire_within("k", 1, timeout)));
    assert!(matches!(place.tasks.error(waiters[2]), AcquireError::TooLate { .. }));
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(2_000)));
}

#[test]
fn what_lies_past_the_end_of_time_is_too_late() {
    let mut place = place(&[Limit::token_bucket(1, Rate::new(1, Period::MAX))]);
    place.take(1);
    // 366 days each: the 250th of them is served after June 2255.
    let waiters: Vec<_> = (0..250).map(|_| place.acquire(1)).collect();
    assert!(place.tasks.is_waiting(waiters[200]));
    assert!(matches!(place.tasks.error(waiters[249]), AcquireError::TooLate { .. }));
}

#[test]
fn a_deadline_gone_by_is_too_late_and_charges_nothing() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    let late = place.tasks.spawn(place.api.acquire_until("k", 1, Timestamp::EPOCH));
    assert_eq!(*place.tasks.error(late), too_late(0));
    let now = place.acquire_within(1, 0);
    assert_eq!(place.tasks.admitted(now), Some(millis(0)));
    // The timeout runs from the call, not from the first poll.
    let unpolled = place.api.acquire_within("k", 1, Duration::from_millis(1_500));
    place.tasks.go_to(millis(1_501));
    let late = place.tasks.spawn(unpolled);
    assert_eq!(*place.tasks.error(late), too_late(0));
    assert_eq!(place.api.peek("k").remaining(), 1);
}

#[test]
fn what_is_woken_late_is_not_too_late() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    place.take(1);
    let waiter = place.acquire_within(1, 1_000);
    place.clock.set(millis(1_007));
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiter), Some(millis(1_007)));
    assert_eq!(place.tasks.wakes(waiter), 1);
}

#[test]
fn a_cost_above_the_capacity_is_never_admitted_and_never_waited_for() {
    let mut place = place(&[Limit::gcra(Rate::per_second(10), 10), Limit::fixed_window(20, Period::DAY)]);
    for cost in [11, 12, 21] {
        let waiter = place.acquire(cost);
        assert_eq!(*place.tasks.error(waiter), AcquireError::Never);
    }
    place.take(10);
    // The same behind others.
    let capacity = place.acquire(10);
    for cost in [11, 12, 21] {
        let waiter = place.acquire_within(cost, 5);
        assert_eq!(*place.tasks.error(waiter), AcquireError::Never);
    }
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(capacity), Some(millis(1_000)));
}

#[test]
fn a_limit_that_never_refills_is_not_waited_for() {
    let mut place = place(&[Limit::token_bucket(2, Rate::ZERO)]);
    let first = place.acquire(1);
    assert_eq!(place.tasks.admitted(first), Some(millis(0)));
    for cost in [2, 3] {
        let waiter = place.acquire(cost);
        assert_eq!(*place.tasks.error(waiter), AcquireError::Never);
    }
    assert_eq!(place.api.peek("k").remaining(), 1);
    let blocked = Limit::token_bucket(0, Rate::per_second(1));
    let mut place = super::place(&[blocked]);
    let waiter = place.acquire(1);
    assert_eq!(*place.tasks.error(waiter), AcquireError::Never);
}

#[test]
fn whoever_goes_away_moves_those_behind_up() {
    let mut place = place(&[Limit::token_bucket(10, Rate::per_second(10))]);
    place.take(10);
    let (first, gone, third, last) = (place.acquire(1), place.acquire(5), place.acquire(2), place.acquire(1));
    place.tasks.cancel(gone);
    assert_eq!(place.tasks.wakes(third), 0, "it sleeps on");
    assert_eq!(place.api.check("k", 1).retry_after(), Some(Wait::from_micros(500_000)));
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(first), Some(millis(100)));
    assert_eq!(place.tasks.admitted(third), Some(millis(300)));
    assert_eq!(place.tasks.admitted(last), Some(millis(400)));
    assert_eq!([first, third, last].map(|id| place.tasks.wakes(id)), [1, 1, 1]);
    assert_eq!(place.api.peek("k").remaining(), 6);
}

#[test]
fn when_the_head_goes_away_whoever_fits_is_served_at_once() {
    let mut place = place(&[Limit::token_bucket(10, Rate::per_second(10))]);
    place.take(10);
    let (head, small, large) = (place.acquire(10), place.acquire(3), place.acquire(8));
    place.tasks.go_to(millis(400));
    place.tasks.cancel(head);
    assert_eq!(place.tasks.admitted(small), Some(millis(400)));
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(large), Some(millis(1_100)));
    assert_eq!((place.tasks.wakes(small), place.tasks.wakes(large)), (1, 1));
}

#[test]
fn when_all_go_away_nothing_is_left_behind() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    place.take(1);
    let waiters: Vec<_> = (0..10).map(|_| place.acquire(1)).collect();
    for waiter in [9, 0, 4, 1, 2, 3, 5, 7, 6, 8] {
        place.tasks.cancel(waiters[waiter]);
    }
    assert_eq!(place.clock.next_wake(), None);
    place.tasks.go_to(millis(1_000));
    assert!(place.api.check("k", 1).is_allowed());
}

#[test]
fn what_was_granted_to_somebody_who_never_knew_is_given_back() {
    let mut place = place(&[Limit::token_bucket(2, Rate::per_second(1))]);
    place.take(2);
    let (gone, behind) = (place.acquire(1), place.acquire(2));
    place.tasks.freeze(gone);
    place.tasks.go_to(millis(1_000));
    // Somebody comes by and has it granted.
    assert!(!place.api.check("k", 1).is_allowed());
    assert_eq!(place.api.peek("k").remaining(), 0);
    place.tasks.cancel(gone);
    assert_eq!(place.api.peek("k").remaining(), 1);
    place.tasks.go_to(millis(3_000));
    assert_eq!(place.tasks.admitted(behind), Some(millis(2_000)));
    assert_eq!(place.tasks.wakes(behind), 1);
}

#[test]
fn what_is_given_back_by_the_last_of_a_line_is_there_for_anybody() {
    let mut place = place(&[Limit::fixed_window(1, Period::SECOND)]);
    place.take(1);
    let gone = place.acquire(1);
    place.tasks.freeze(gone);
    place.tasks.go_to(millis(1_000));
    assert!(!place.api.check("k", 1).is_allowed());
    place.tasks.cancel(gone);
    assert!(place.api.check("k", 1).is_allowed());
}

#[test]
fn whoever_has_got_it_keeps_it() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    let had = place.acquire(1);
    assert_eq!(place.tasks.admitted(had), Some(millis(0)));
    place.tasks.cancel(had);
    assert_eq!(place.api.peek("k").remaining(), 0);
}

#[test]
fn a_line_is_as_long_as_it_may_be() {
    let policy = Policy::single("api", Limit::token_bucket(1, Rate::per_second(1))).unwrap();
    let mut place = place_of(policy, |builder| builder.max_waiters_per_key(2));
    place.take(1);
    let waiters = [place.acquire(1), place.acquire(1)];
    let third = place.acquire(1);
    assert_eq!(*place.tasks.error(third), AcquireError::QueueFull);
    let elsewhere = place.tasks.spawn(place.api.acquire("another", 1));
    assert_eq!(place.tasks.admitted(elsewhere), Some(millis(0)));
    place.tasks.cancel(waiters[0]);
    let third = place.acquire(1);
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(third), Some(millis(2_000)));
}

#[test]
fn unless_said_otherwise_1024_wait_for_a_key() {
    let mut place = place(&[Limit::fixed_window(1, Period::SECOND)]);
    place.take(1);
    for _ in 0..1_024 {
        let waiter = place.acquire(1);
        assert!(place.tasks.is_waiting(waiter));
    }
    let one_more = place.acquire(1);
    assert_eq!(*place.tasks.error(one_more), AcquireError::QueueFull);
}

#[test]
fn a_new_key_in_a_full_store_is_told_so() {
    let clock = ManualClock::new(micros(0));
    let store = MemoryStore::builder().max_keys(1).on_full(OnFull::RefuseNew).build();
    let policy = Policy::single("api", Limit::token_bucket(1, Rate::per_second(1))).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(clock.clone()).build();
    let api = limiter.policy("api").unwrap();
    let mut tasks = Executor::new(clock);
    assert!(api.check("held", 1).is_allowed());
    let new = tasks.spawn(api.acquire("new", 1));
    assert_eq!(*tasks.error(new), AcquireError::Overloaded);
    let held = tasks.spawn(api.acquire("held", 1));
    tasks.go_to(millis(1_000));
    assert_eq!(tasks.admitted(held), Some(millis(1_000)));
}

#[test]
fn errors_say_what_would_help() {
    let errors = [AcquireError::Never, too_late(1_500), AcquireError::QueueFull, AcquireError::Overloaded];
    let words = errors.map(|error| error.to_string());
    assert!(words[0].contains("raise the limit"), "{}", words[0]);
    assert!(words[1].contains("1500000 us"), "{}", words[1]);
    assert!(words[2].contains("max_waiters_per_key"), "{}", words[2]);
    assert!(words[3].contains("max_keys"), "{}", words[3]);
}
