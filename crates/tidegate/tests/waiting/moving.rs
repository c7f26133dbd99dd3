//! What moves a line other than waiters: credits, penalties, resets, reloads, and clocks.

use tidegate::{AcquireError, Limit, Period, Policy, PolicySet, Rate, Wait};

use super::{Place, millis, place};

fn bucket() -> Limit {
    Limit::token_bucket(10, Rate::per_second(10))
}

fn emptied() -> Place {
    let place = place(&[bucket()]);
    place.take(10);
    place
}

#[test]
fn a_credit_serves_whoever_it_reaches() {
    let mut place = emptied();
    let waiters = [place.acquire(4), place.acquire(4), place.acquire(4)];
    place.tasks.go_to(millis(100));
    // What is left of five and one, and so is the rest of the line.
    assert_eq!(place.api.credit("k", 5).remaining(), 6);
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(100)));
    assert_eq!(place.api.peek("k").remaining(), 2);
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(300)));
    assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(700)));
    assert_eq!(waiters.map(|waiter| place.tasks.wakes(waiter)), [1, 1, 1]);
}

#[test]
fn a_penalty_puts_all_turns_off_and_tells_who_cannot_wait_that_long() {
    let mut place = emptied();
    let (first, hurried, last) = (place.acquire(5), place.acquire_within(5, 1_000), place.acquire(5));
    place.tasks.go_to(millis(200));
    place.api.penalize("k", 5);
    place.tasks.run();
    assert_eq!(*place.tasks.error(hurried), AcquireError::TooLate { needs: Wait::from_micros(1_300_000) });
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(first), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(last), Some(millis(1_500)));
    assert_eq!([first, hurried, last].map(|waiter| place.tasks.wakes(waiter)), [1, 1, 1]);
}

#[test]
fn a_reset_serves_all_who_fit_into_a_full_bucket() {
    let mut place = emptied();
    place.api.penalize("k", 10);
    let waiters = [place.acquire(6), place.acquire(4), place.acquire(1)];
    place.api.reset("k");
    place.tasks.go_to(millis(100));
    let admitted = waiters.map(|waiter| place.tasks.admitted(waiter).unwrap());
    assert_eq!(admitted, [millis(0), millis(0), millis(100)]);
    assert_eq!(waiters.map(|waiter| place.tasks.wakes(waiter)), [1, 1, 1]);
}

fn reload(place: &Place, limit: Limit) {
    let policy = Policy::builder("api").limit("limit0", limit).build().unwrap();
    place.limiter.reload(policy).unwrap();
}

#[test]
fn a_raised_limit_is_felt_at_once() {
    let mut place = emptied();
    let waiters = [place.acquire(10), place.acquire(10)];
    place.tasks.go_to(millis(500));
    reload(&place, Limit::token_bucket(10, Rate::per_second(100)));
    assert_eq!(place.api.check("k", 1).retry_after(), Some(Wait::from_micros(160_000)));
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(550)));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(650)));
    assert_eq!(waiters.map(|waiter| place.tasks.wakes(waiter)), [1, 1]);
}

#[test]
fn a_lowered_limit_turns_away_what_no_longer_fits() {
    let mut place = emptied();
    let (large, small, hurried) = (place.acquire(10), place.acquire(5), place.acquire_within(1, 2_000));
    reload(&place, Limit::token_bucket(5, Rate::per_second(1)));
    place.tasks.run();
    assert_eq!(*place.tasks.error(large), AcquireError::Never);
    assert_eq!(*place.tasks.error(hurried), AcquireError::TooLate { needs: Wait::from_micros(6_000_000) });
    place.tasks.go_to(millis(5_000));
    assert_eq!(place.tasks.admitted(small), Some(millis(5_000)));
    assert_eq!(place.tasks.wakes(small), 1);
    let frozen = place.acquire(1);
    reload(&place, Limit::token_bucket(5, Rate::ZERO));
    place.tasks.run();
    assert_eq!(*place.tasks.error(frozen), AcquireError::Never);
}

#[test]
fn another_algorithm_starts_anew_for_those_in_line_too() {
    let mut place = emptied();
    let waiters = [place.acquire(3), place.acquire(3), place.acquire(3)];
    reload(&place, Limit::fixed_window(6, Period::SECOND));
    place.tasks.go_to(millis(1_000));
    let admitted = waiters.map(|waiter| place.tasks.admitted(waiter).unwrap());
    assert_eq!(admitted, [millis(0), millis(0), millis(1_000)]);
}

#[test]
fn a_policy_that_did_not_change_keeps_its_turns() {
    let mut place = emptied();
    let waiter = place.acquire(10);
    let unchanged = Policy::clone(&place.api.policy());
    let policies = PolicySet::new([unchanged, Policy::single("new", bucket()).unwrap()]).unwrap();
    place.limiter.reload(policies).unwrap();
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiter), Some(millis(1_000)));
    assert_eq!(place.tasks.wakes(waiter), 1);
}

#[test]
fn those_who_wait_under_a_policy_that_is_no_more_are_served_all_the_same() {
    let mut place = emptied();
    let waiter = place.acquire(10);
    place.limiter.reload(Policy::single("other", bucket()).unwrap()).unwrap();
    // Its state is gone, so the bucket is full.
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiter), Some(millis(0)));
}

#[test]
fn a_clock_set_back_makes_waiters_wait_for_it() {
    let mut place = emptied();
    let waiters = [place.acquire(10), place.acquire(5)];
    place.clock.set(millis(1_000));
    place.clock.set(millis(200));
    // Woken, and too early again by the time they look.
    place.tasks.run();
    assert!(place.tasks.is_waiting(waiters[0]));
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_500)));
    assert_eq!(place.tasks.wakes(waiters[0]), 2);
}

#[test]
fn a_clock_that_jumps_serves_in_order_as_much_as_there_is() {
    let mut place = emptied();
    let waiters = [place.acquire(8), place.acquire(2), place.acquire(1), place.acquire(1)];
    place.clock.set(millis(60_000));
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(60_000)));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(60_000)));
    assert!(place.tasks.is_waiting(waiters[2]) && place.tasks.is_waiting(waiters[3]));
    place.tasks.go_to(millis(60_200));
    assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(60_100)));
    assert_eq!(place.tasks.admitted(waiters[3]), Some(millis(60_200)));
}

#[test]
fn a_line_served_late_goes_on_from_there() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    place.take(1);
    let waiters = [place.acquire(1), place.acquire(1), place.acquire(1)];
    place.clock.set(millis(1_003));
    place.tasks.run();
    assert_eq!(place.api.check("k", 1).retry_after(), Some(Wait::from_micros(3_000_000)));
    place.tasks.go_to(millis(5_000));
    let admitted = waiters.map(|waiter| place.tasks.admitted(waiter).unwrap());
    assert_eq!(admitted, [millis(1_003), millis(2_003), millis(3_003)]);
    assert_eq!(waiters.map(|waiter| place.tasks.wakes(waiter)), [1, 1, 1]);
}
