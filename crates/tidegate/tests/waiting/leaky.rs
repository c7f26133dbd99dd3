//! A leaky bucket's delay is part of the waiting.

use tidegate::{AcquireError, Limit, Period, Rate, Wait};

use super::{millis, place};

fn leaky() -> Limit {
    Limit::leaky_bucket(3, Rate::per_second(1)).unwrap()
}

#[test]
fn work_leaves_evenly_spaced() {
    let mut place = place(&[leaky()]);
    let waiters: Vec<_> = (0..6).map(|_| place.acquire(1)).collect();
    assert_eq!(place.api.peek("k").remaining(), 0, "three were admitted at once");
    place.tasks.go_to(millis(10_000));
    for (second, waiter) in waiters.iter().enumerate() {
        assert_eq!(place.tasks.admitted(*waiter), Some(millis(second as u64 * 1_000)));
    }
    // Once to be admitted, if that was not at once, and once to leave, if that was later.
    let wakes: Vec<_> = waiters.iter().map(|waiter| place.tasks.wakes(*waiter)).collect();
    assert_eq!(wakes, [0, 1, 1, 2, 2, 2]);
    let delays = waiters.iter().map(|waiter| place.tasks.result(*waiter).unwrap().as_ref().unwrap().delay());
    assert_eq!(delays.map(|delay| delay.as_secs_ceil()).collect::<Vec<_>>(), [0, 1, 2, 2, 2, 2]);
}

#[test]
fn a_deadline_counts_the_delay() {
    let mut place = place(&[leaky()]);
    let first = place.acquire_within(1, 0);
    assert_eq!(place.tasks.admitted(first), Some(millis(0)));
    let short = place.acquire_within(1, 999);
    let needs = |seconds: u128| AcquireError::TooLate { needs: Wait::from_micros(seconds * 1_000_000) };
    assert_eq!(*place.tasks.error(short), needs(1));
    assert_eq!(place.api.peek("k").remaining(), 2, "it was charged nothing");
    let (second, third) = (place.acquire_within(1, 1_000), place.acquire_within(1, 2_000));
    // Admitted in one second, leaving in three.
    let short = place.acquire_within(1, 2_999);
    assert_eq!(*place.tasks.error(short), needs(3));
    let fourth = place.acquire_within(1, 3_000);
    place.tasks.go_to(millis(3_000));
    assert_eq!(place.tasks.admitted(second), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(third), Some(millis(2_000)));
    assert_eq!(place.tasks.admitted(fourth), Some(millis(3_000)));
}

#[test]
fn whoever_goes_away_before_leaving_gives_it_back() {
    let mut place = place(&[leaky()]);
    let waiters: Vec<_> = (0..4).map(|_| place.acquire(1)).collect();
    assert_eq!(place.api.peek("k").remaining(), 0);
    place.tasks.cancel(waiters[2]);
    // The one in line is admitted in its stead, to leave where it stands.
    place.tasks.go_to(millis(1_999));
    assert!(place.tasks.is_waiting(waiters[3]));
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(waiters[3]), Some(millis(2_000)));
}

#[test]
fn what_was_given_back_is_there_for_plain_checks() {
    let mut place = place(&[leaky()]);
    place.take(1);
    let gone = place.acquire(2);
    assert!(place.tasks.is_waiting(gone) && !place.api.check("k", 1).is_allowed());
    place.tasks.cancel(gone);
    assert_eq!(place.api.peek("k").remaining(), 2);
    assert_eq!(place.clock.next_wake(), None);
}

#[test]
fn with_another_limit_both_are_waited_for() {
    let window = Limit::fixed_window(2, Period::from_secs(10).unwrap());
    let mut place = place(&[leaky(), window]);
    let waiters: Vec<_> = (0..4).map(|_| place.acquire(1)).collect();
    place.tasks.go_to(millis(11_000));
    for (waiter, leaves) in waiters.into_iter().zip([0, 1_000, 10_000, 11_000]) {
        assert_eq!(place.tasks.admitted(waiter), Some(millis(leaves)));
    }
}

#[test]
fn a_penalty_between_turn_and_leaving_does_not_hold_work_up() {
    let mut place = place(&[leaky()]);
    let waiters: Vec<_> = (0..3).map(|_| place.acquire(1)).collect();
    place.api.penalize("k", 3);
    let behind = place.acquire_within(1, 5_000);
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(2_000)));
    // Level -3: one token in four seconds, and two more until it has leaked out.
    assert!(
        matches!(place.tasks.error(behind), AcquireError::TooLate { needs } if needs.as_secs_ceil() == 6)
    );
}
