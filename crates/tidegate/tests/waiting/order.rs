//! Whose turn it is, and when.

use tidegate::{Limit, Period, Policy, PolicySet, Rate, Timestamp, Wait};

use super::{Place, micros, millis, place};

fn seconds(seconds: u32) -> Period {
    Period::from_secs(seconds).unwrap()
}

/// Waits for one unit `turns.len()` times, all at the start, and sees each admitted at its instant, woken once.
fn assert_turns(place: &mut Place, turns: &[u64]) {
    let waiters: Vec<_> = turns.iter().map(|_| place.acquire(1)).collect();
    let mut reached = 0;
    for (waiter, &turn) in waiters.iter().zip(turns) {
        if turn > reached {
            reached = turn;
            place.tasks.go_to(micros(turn - 1));
            assert!(place.tasks.is_waiting(*waiter), "admitted before {turn}");
        }
        place.tasks.go_to(micros(turn));
        assert_eq!(place.tasks.admitted(*waiter), Some(micros(turn)));
        assert_eq!(place.tasks.wakes(*waiter), usize::from(turn > 0));
    }
    assert_eq!(tidegate::clock::ManualClock::next_wake(&place.clock), None, "an alarm was left set");
}

#[test]
fn a_token_bucket_serves_whenever_a_token_is_there() {
    let mut place = place(&[Limit::token_bucket(2, Rate::per_second(7))]);
    assert_turns(&mut place, &[0, 0, 142_858, 285_715, 428_572, 571_429, 714_286, 857_143, 1_000_000]);
}

#[test]
fn gcra_serves_as_the_bucket_does() {
    let mut place = place(&[Limit::gcra(Rate::per_second(10), 1)]);
    assert_turns(&mut place, &[0, 100_000, 200_000, 300_000]);
}

#[test]
fn a_fixed_window_serves_its_limit_at_each_edge() {
    let mut place = place(&[Limit::fixed_window(2, seconds(10))]);
    assert_turns(&mut place, &[0, 0, 10_000_000, 10_000_000, 20_000_000, 20_000_000, 30_000_000]);
}

#[test]
fn a_log_serves_as_its_entries_age_out() {
    let mut place = place(&[Limit::sliding_window_log(2, seconds(10)).unwrap()]);
    place.take(1);
    place.tasks.go_to(millis(3_000));
    place.take(1);
    let waiters: Vec<_> = (0..4).map(|_| place.acquire(1)).collect();
    for (waiter, turn) in waiters.into_iter().zip([10_000, 13_000, 20_000, 23_000]) {
        place.tasks.go_to(millis(turn));
        assert_eq!(place.tasks.admitted(waiter), Some(millis(turn)));
        assert_eq!(place.tasks.wakes(waiter), 1);
    }
}

#[test]
fn a_counter_serves_as_the_last_window_loses_weight() {
    let mut place = place(&[Limit::sliding_window_counter(4, seconds(10))]);
    // Four in the window that ends at 10 s, of which one less counts every 2.5 s; then three, one less every 3.3 s.
    assert_turns(&mut place, &[0, 0, 0, 0, 12_500_000, 15_000_000, 17_500_000, 20_000_000, 23_333_334]);
}

#[test]
fn of_several_limits_each_has_to_admit() {
    let bucket = Limit::token_bucket(1, Rate::per_second(1));
    let mut place = place(&[bucket, Limit::fixed_window(3, seconds(10))]);
    assert_turns(&mut place, &[0, 1_000_000, 2_000_000, 10_000_000, 11_000_000, 12_000_000, 20_000_000]);
}

#[test]
fn first_come_first_served_whatever_the_cost() {
    let mut place = place(&[Limit::token_bucket(10, Rate::per_second(10))]);
    place.take(10);
    let (first, large, last) = (place.acquire(1), place.acquire(10), place.acquire(1));
    place.tasks.go_to(millis(100));
    assert_eq!(place.tasks.admitted(first), Some(millis(100)));
    // There are tokens for the last one all the time.
    place.tasks.go_to(millis(1_099));
    assert!(place.tasks.is_waiting(large) && place.tasks.is_waiting(last));
    place.tasks.go_to(millis(1_200));
    assert_eq!(place.tasks.admitted(large), Some(millis(1_100)));
    assert_eq!(place.tasks.admitted(last), Some(millis(1_200)));
    assert_eq!([first, large, last].map(|id| place.tasks.wakes(id)), [1, 1, 1]);
}

#[test]
fn a_large_cost_is_not_starved_by_small_ones() {
    let mut place = place(&[Limit::token_bucket(10, Rate::per_second(10))]);
    place.take(10);
    let large = place.acquire(10);
    let mut small = Vec::new();
    for turn in 0..20 {
        place.tasks.go_to(millis(turn * 50));
        small.push(place.acquire(1));
        assert!(!place.api.check("k", 1).is_allowed());
    }
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(large), Some(millis(1_000)));
    place.tasks.go_to(millis(3_000));
    for (nth, small) in small.into_iter().enumerate() {
        assert_eq!(place.tasks.admitted(small), Some(millis(1_100 + 100 * nth as u64)));
        assert_eq!(place.tasks.wakes(small), 1);
    }
}

#[test]
fn keys_and_policies_wait_apart() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    let other = Policy::single("other", Limit::token_bucket(1, Rate::per_second(1))).unwrap();
    let policies = PolicySet::new([Policy::clone(&place.api.policy()), other]).unwrap();
    place.limiter.reload(policies).unwrap();
    place.take(1);
    let waiter = place.acquire(1);
    assert!(place.api.check("another", 1).is_allowed());
    assert!(place.limiter.policy("other").unwrap().check("k", 1).is_allowed());
    assert!(!place.api.check("k", 1).is_allowed());
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiter), Some(millis(1_000)));
}

#[test]
fn plain_checks_do_not_overtake_and_are_told_when_to_come_back() {
    let mut place = place(&[Limit::token_bucket(10, Rate::per_second(10))]);
    place.take(10);
    let waiters = [place.acquire(10), place.acquire(5)];
    place.tasks.go_to(millis(900));
    let peek = place.api.peek("k");
    assert!(peek.is_allowed());
    assert_eq!(peek.remaining(), 9, "a peek shows how the key stands");
    let refused = place.api.check("k", 3);
    assert!(!refused.is_allowed());
    assert_eq!((refused.remaining(), refused.charged()), (0, 0));
    // 100 ms until the first is served, 500 ms for the second, 300 ms for three more.
    assert_eq!(refused.retry_after(), Some(Wait::from_micros(900_000)));
    assert_eq!(place.api.check_up_to("k", 7).retry_after(), Some(Wait::from_micros(700_000)));
    let never = place.api.check("k", 11);
    assert_eq!(never.outcome().as_str(), "cost_exceeds_capacity");
    assert_eq!(never.retry_after(), None);

    place.tasks.go_to(micros(1_799_999));
    assert!(!place.api.check("k", 3).is_allowed(), "still denied one microsecond before");
    place.tasks.go_to(millis(1_800));
    assert!(place.api.check("k", 3).is_allowed(), "admitted at that instant");
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(1_000)));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_500)));
}

#[test]
fn a_plain_check_behind_a_long_line_waits_its_own_turn_too() {
    let mut place = place(&[Limit::fixed_window(2, seconds(10))]);
    place.take(2);
    let waiters: Vec<_> = (0..3).map(|_| place.acquire(1)).collect();
    assert_eq!(place.api.check("k", 1).retry_after(), Some(Wait::from_micros(20_000_000)));
    assert_eq!(place.api.check("k", 2).retry_after(), Some(Wait::from_micros(30_000_000)));
    place.tasks.go_to(millis(20_000));
    assert!(place.api.check("k", 1).is_allowed());
    assert!(waiters.into_iter().all(|waiter| place.tasks.admitted(waiter).is_some()));
}

#[test]
fn nobody_has_to_be_awake_for_others_to_be_served() {
    let mut place = place(&[Limit::token_bucket(2, Rate::per_second(1))]);
    place.take(2);
    let (asleep, behind) = (place.acquire(1), place.acquire(1));
    place.tasks.freeze(asleep);
    place.tasks.go_to(millis(1_999));
    // Nobody has asked for the first at its own turn; it is asked for when somebody comes by.
    assert!(place.tasks.is_waiting(behind));
    assert!(!place.api.check("k", 1).is_allowed());
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(behind), Some(millis(2_000)));
    place.tasks.thaw(asleep);
    assert!(place.tasks.admitted(asleep).is_some());
    assert_eq!((place.tasks.wakes(asleep), place.tasks.wakes(behind)), (1, 1));
}

#[test]
fn a_plain_check_serves_those_ahead_first() {
    let mut place = place(&[Limit::token_bucket(2, Rate::per_second(1))]);
    place.take(2);
    let waiter = place.acquire(1);
    place.tasks.freeze(waiter);
    place.tasks.go_to(millis(1_500));
    assert!(!place.api.check("k", 1).is_allowed(), "the token is the waiter's");
    assert_eq!(place.api.check("k", 1).retry_after(), Some(Wait::from_micros(500_000)));
    place.tasks.go_to(millis(2_000));
    assert!(place.api.check("k", 1).is_allowed());
    place.tasks.thaw(waiter);
    assert!(place.tasks.admitted(waiter).is_some());
    assert_eq!(place.tasks.wakes(waiter), 1);
}

#[test]
fn those_of_one_instant_are_served_in_order() {
    let mut place = place(&[Limit::fixed_window(3, seconds(10))]);
    place.take(3);
    let waiters: Vec<_> = (0..5).map(|_| place.acquire(1)).collect();
    // The last of the first window comes by first, and serves those ahead of it.
    place.tasks.freeze(waiters[0]);
    place.tasks.freeze(waiters[1]);
    place.tasks.go_to(millis(10_000));
    assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(10_000)));
    assert!(place.tasks.is_waiting(waiters[3]));
    place.tasks.thaw(waiters[0]);
    place.tasks.thaw(waiters[1]);
    place.tasks.go_to(millis(20_000));
    for (nth, waiter) in waiters.into_iter().enumerate() {
        let turn = if nth < 3 { 10_000 } else { 20_000 };
        assert_eq!(place.tasks.admitted(waiter), Some(millis(turn)));
        assert_eq!(place.tasks.wakes(waiter), 1);
    }
}

#[test]
fn a_cost_of_nothing_passes_the_line_but_waits_for_debt() {
    let mut place = place(&[Limit::token_bucket(2, Rate::per_second(1))]);
    place.take(2);
    let waiter = place.acquire(2);
    let peek = place.acquire(0);
    assert_eq!(place.tasks.admitted(peek), Some(millis(0)));
    place.tasks.cancel(waiter);
    place.api.penalize("k", 2);
    let peek = place.acquire(0);
    assert!(place.tasks.is_waiting(peek));
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(peek), Some(millis(2_000)));
    assert_eq!(place.api.peek("k").remaining(), 0);
}

#[test]
fn a_stamp_of_the_future_delays_whoever_waits_behind_it() {
    let mut place = place(&[Limit::token_bucket(1, Rate::per_second(1))]);
    assert!(place.api.check_at("k", 1, millis(5_000)).is_allowed());
    let waiter = place.acquire(1);
    place.tasks.go_to(millis(6_000));
    assert_eq!(place.tasks.admitted(waiter), Some(millis(6_000)));
    assert_eq!(place.tasks.wakes(waiter), 1);
}

#[test]
fn the_instants_are_right_from_the_first_to_the_last_of_a_long_line() {
    let mut place = place(&[Limit::token_bucket(3, Rate::new(3, seconds(7)))]);
    place.take(3);
    let waiters: Vec<_> = (0..1_000).map(|_| place.acquire(1)).collect();
    place.tasks.go_to(millis(7_000_000));
    for (nth, waiter) in waiters.into_iter().enumerate() {
        let turn = ((nth as u64 + 1) * 7_000_000).div_ceil(3);
        assert_eq!(place.tasks.admitted(waiter), Some(micros(turn)), "{nth}");
        assert_eq!(place.tasks.wakes(waiter), 1);
    }
    assert_eq!(place.clock.next_wake(), None::<Timestamp>);
}
