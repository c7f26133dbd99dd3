//! Other figures under live state, to the microsecond: what has been used stays used.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tidegate_core::{Cells, Cost, KeyState, Limit, Period, Plan, Rate, Since, Timestamp, Units};

const SECOND: u64 = 1_000_000;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

fn seconds(seconds: u64) -> Timestamp {
    at(seconds * SECOND)
}

fn bucket(capacity: u32, amount: u32, per_seconds: u32) -> Plan {
    Plan::single(Limit::token_bucket(capacity, Rate::new(amount, Period::from_secs(per_seconds).unwrap())))
}

fn window(limit: u32, seconds: u32) -> Plan {
    Plan::single(Limit::fixed_window(limit, Period::from_secs(seconds).unwrap()))
}

fn counter(limit: u32, seconds: u32) -> Plan {
    Plan::single(Limit::sliding_window_counter(limit, Period::from_secs(seconds).unwrap()))
}

fn log(limit: u32, seconds: u32) -> Plan {
    Plan::single(Limit::sliding_window_log(limit, Period::from_secs(seconds).unwrap()).unwrap())
}

/// A key charged by force, in order: (second, units).
fn charged(plan: &Plan, charges: &[(u64, u32)]) -> KeyState {
    let mut key = KeyState::new(plan);
    for (second, units) in charges {
        plan.penalize(&mut key, seconds(*second), Units::from(*units));
    }
    key
}

fn carried(new: &Plan, old: &Plan, key: &KeyState, since: Since) -> KeyState {
    new.carry_over(old, key, &[Some(0)], since)
}

fn known(second: u64) -> Since {
    Since::Known(seconds(second))
}

fn unknown(second: u64) -> Since {
    Since::Unknown(seconds(second))
}

/// What a peek finds: remaining, and microseconds until as new.
fn found(plan: &Plan, key: &KeyState, now: Timestamp) -> (u64, Option<u128>) {
    let peek = plan.peek(key, now);
    (peek.remaining(), peek.reset_after().map(|wait| wait.as_micros()))
}

#[test]
fn a_bucket_earns_at_the_old_rate_until_and_at_the_new_one_from_then_on() {
    for (old_rate, new_rate, left_at_12) in
        [(1, 2, 10 + 2 * 2), (2, 1, 10 * 2 + 2), (0, 3, 2 * 3), (5, 0, 50)]
    {
        let (old, new) = (bucket(100, old_rate, 1), bucket(100, new_rate, 1));
        let key = carried(&new, &old, &charged(&old, &[(0, 100)]), known(10));
        assert_eq!(key.last(), seconds(10));
        assert_eq!(found(&new, &key, seconds(12)).0, left_at_12, "{old_rate} to {new_rate}");
    }
}

#[test]
fn where_the_instant_is_unknown_all_is_earned_at_the_slower_rate() {
    for (old_rate, new_rate, left_at_12) in [(1, 2, 12), (2, 1, 12), (0, 3, 0), (5, 0, 0), (4, 4, 48)] {
        let (old, new) = (bucket(100, old_rate, 1), bucket(100, new_rate, 1));
        let key = carried(&new, &old, &charged(&old, &[(0, 100)]), unknown(12));
        assert_eq!(key.last(), seconds(12));
        assert_eq!(found(&new, &key, seconds(12)).0, left_at_12, "{old_rate} to {new_rate}");
    }
}

#[test]
fn a_bucket_full_at_the_change_is_full_afterwards() {
    let old = bucket(10, 1, 1);
    for (capacity, since) in
        [(50, known(10)), (50, unknown(10)), (3, known(10)), (3, unknown(10)), (0, known(10))]
    {
        let new = bucket(capacity, 1, 60);
        let key = carried(&new, &old, &charged(&old, &[(0, 10)]), since);
        assert_eq!(found(&new, &key, seconds(10)), (u64::from(capacity), Some(0)), "{since:?}");
    }
    // A microsecond earlier it is not, and keeps its 9.999999.
    let (since, new) = (at(10 * SECOND - 1), bucket(50, 1, 60));
    let key = carried(&new, &old, &charged(&old, &[(0, 10)]), Since::Known(since));
    assert_eq!(found(&new, &key, since), (9, Some(2_400_000_060)));
}

#[test]
fn what_is_left_is_cut_to_the_capacity_and_debt_to_what_is_allowed() {
    let old = bucket(100, 0, 1);
    let cases = [(40, 7, 7), (93, 20, 7), (130, 20, -20), (130, 30, -30), (200, 0, 0)];
    for (units, capacity, level) in cases {
        let new = bucket(capacity, 1, 1);
        let key = carried(&new, &old, &charged(&old, &[(0, units)]), known(5));
        let full_in = i128::from(capacity) - level;
        let expected = (level.max(0) as u64, Some(full_in as u128 * u128::from(SECOND)));
        assert_eq!(found(&new, &key, seconds(5)), expected, "{units} of 100, then {capacity}");
    }
}

#[test]
fn fractions_are_kept_as_far_as_the_new_rate_can_say_them() {
    // A third of a token after one second; in halves of a microsecond's two-millionths that is 666,666.
    let (old, new) = (bucket(10, 1, 3), bucket(10, 1, 2));
    let key = carried(&new, &old, &charged(&old, &[(0, 10)]), known(1));
    let refused = new.peek(&key, seconds(1));
    assert_eq!(refused.binding().grows_after().unwrap().as_micros(), 2_000_000 - 666_666);
    // In debt, down is deeper: two thirds of a token below zero are 1,333,334 two-millionths.
    let key = carried(&new, &old, &charged(&old, &[(0, 11)]), known(1));
    assert_eq!(new.peek(&key, seconds(1)).retry_after().unwrap().as_micros(), 1_333_334);
}

#[test]
fn a_charge_later_than_the_change_is_when_it_is_settled() {
    let (old, new) = (bucket(100, 1, 1), bucket(100, 10, 1));
    for since in [known(10), unknown(10)] {
        let key = carried(&new, &old, &charged(&old, &[(20, 100)]), since);
        assert_eq!(key.last(), seconds(20));
        assert_eq!(found(&new, &key, seconds(15)).0, 0);
        assert_eq!(found(&new, &key, seconds(21)).0, 10);
    }
}

#[test]
fn window_counts_are_kept_whatever_the_limit_becomes() {
    let old = window(10, 60);
    let key = charged(&old, &[(61, 8)]);
    for since in [known(70), unknown(70)] {
        let lower = carried(&window(5, 60), &old, &key, since);
        assert_eq!(found(&window(5, 60), &lower, seconds(70)), (0, Some(50_000_000)));
        let higher = carried(&window(20, 60), &window(5, 60), &lower, since);
        assert_eq!(found(&window(20, 60), &higher, seconds(70)), (12, Some(50_000_000)));
    }
    // The window that was counted in is over at the change.
    let over = carried(&window(5, 60), &old, &key, known(120));
    assert_eq!(found(&window(5, 60), &over, seconds(120)), (5, Some(0)));
}

#[test]
fn another_window_length_takes_the_count_into_the_new_window() {
    let old = window(10, 60);
    for (length, ends_in) in [(7, 7), (3_600, 3_530)] {
        let new = window(10, length);
        let key = carried(&new, &old, &charged(&old, &[(61, 8)]), known(70));
        assert_eq!(found(&new, &key, seconds(70)), (2, Some(ends_in * u128::from(SECOND))), "{length} s");
    }
}

#[test]
fn a_counter_keeps_both_counts_or_their_estimate_where_its_length_changes() {
    let old = counter(50, 60);
    let key = charged(&old, &[(0, 40), (75, 10)]);
    let same_length = carried(&counter(30, 60), &old, &key, known(75));
    // 40 * 45/60 + 10 are 40 of 30; at the end of the next window nothing is left.
    assert_eq!(found(&counter(30, 60), &same_length, seconds(75)), (0, Some(105_000_000)));
    let shorter = carried(&counter(50, 10), &old, &key, known(75));
    assert_eq!(found(&counter(50, 10), &shorter, seconds(75)), (10, Some(15_000_000)));
    // Half of the 40 is in view then.
    assert_eq!(found(&counter(50, 10), &shorter, seconds(85)).0, 30);
}

#[test]
fn a_log_keeps_what_is_live_at_the_change_and_lets_it_go_at_its_own_age() {
    let old = log(10, 60);
    let key = charged(&old, &[(0, 1), (20, 2), (50, 3)]);
    for since in [known(61), unknown(61)] {
        let shorter = carried(&log(10, 40), &old, &key, since);
        assert_eq!(found(&log(10, 40), &shorter, seconds(61)), (7, Some(29_000_000)));
        // What had aged out stays out, though the new window would reach it.
        let longer = carried(&log(10, 600), &old, &key, since);
        assert_eq!(found(&log(10, 600), &longer, seconds(61)), (5, Some(589_000_000)));
        assert_eq!(found(&log(10, 600), &longer, seconds(620)), (7, Some(30_000_000)));
    }
}

#[test]
fn limits_go_where_they_are_sent_and_others_start_anew() {
    let (a, b) = (Limit::token_bucket(10, Rate::ZERO), Limit::fixed_window(20, Period::DAY));
    let old = Plan::new([a, b]).unwrap();
    let mut key = KeyState::new(&old);
    old.check(&mut key, seconds(1), Cost::from(3));
    let left = |new: &Plan, origin: &[Option<usize>]| -> Vec<u64> {
        let key = new.carry_over(&old, &key, origin, known(2));
        new.peek(&key, seconds(2)).limits().iter().map(|limit| limit.remaining()).collect()
    };
    let swapped = Plan::new([b, a, a]).unwrap();
    assert_eq!(left(&swapped, &[Some(1), Some(0), None]), [17, 7, 10]);
    assert_eq!(left(&swapped, &[Some(1)]), [17, 10, 10], "no origin told is none");
    assert_eq!(
        left(&swapped, &[Some(7), Some(0), Some(1)]),
        [20, 7, 10],
        "an origin that is not there is none"
    );
    let other_rules =
        Plan::new([Limit::gcra(Rate::ZERO, 10), Limit::sliding_window_counter(20, Period::DAY)]);
    assert_eq!(left(&other_rules.unwrap(), &[Some(0), Some(1)]), [10, 20], "another algorithm starts anew");
}

#[test]
fn the_same_figures_change_no_decision() {
    let plan = Plan::new([
        Limit::token_bucket(10, Rate::new(3, Period::from_secs(7).unwrap())),
        Limit::fixed_window(20, Period::MINUTE),
        Limit::sliding_window_counter(20, Period::MINUTE),
        Limit::sliding_window_log(20, Period::MINUTE).unwrap(),
    ])
    .unwrap();
    let mut key = KeyState::new(&plan);
    for (second, cost) in [(1, 4), (3, 2), (59, 1), (61, 5)] {
        plan.check(&mut key, seconds(second), Cost::from(cost));
    }
    let origin: Vec<Option<usize>> = (0..4).map(Some).collect();
    for since in [known(62), unknown(62)] {
        let carried = plan.carry_over(&plan, &key, &origin, since);
        for second in [62, 63, 90, 119, 120, 121, 181, 240] {
            let figures = |key| -> Vec<_> {
                plan.peek(key, seconds(second)).limits().iter().map(|limit| limit.figures()).collect()
            };
            assert_eq!(figures(&carried), figures(&key), "at {second} s after {since:?}");
        }
    }
}

fn any_bucket() -> impl Strategy<Value = Limit> {
    let capacity = prop_oneof![0..20_u32, 0..100_000_u32];
    (capacity, 0..30_u32, prop_oneof![1..20_u64, Just(SECOND), 1..10 * SECOND]).prop_map(
        |(capacity, amount, per)| {
            Limit::token_bucket(capacity, Rate::new(amount, Period::from_micros(per).unwrap()))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

    /// Whoever does not know the instant gives no more than it would have been worth at any instant; unless the
    /// bucket counts as full under the figures it was kept under, and so as a key never seen.
    #[test]
    fn not_knowing_the_instant_never_gives_more(
        old in any_bucket(),
        new in any_bucket(),
        used in 0..200_000_u32,
        elapsed in prop_oneof![0..100_u64, 0..20 * SECOND],
        part in 0..=64_u64,
    ) {
        let (old, new) = (Plan::single(old), Plan::single(new));
        let mut key = KeyState::new(&old);
        old.penalize(&mut key, at(SECOND), Units::from(used));
        let now = at(SECOND + elapsed);
        let is_full = |plan: &Plan, key| plan.peek(key, now).reset_after().is_some_and(|wait| wait.is_zero());
        let was_full = is_full(&old, &key);
        let blind = carried(&new, &old, &key, Since::Unknown(now));
        if was_full {
            prop_assert!(is_full(&new, &blind));
            return Ok(());
        }
        let sighted = carried(&new, &old, &key, Since::Known(at(SECOND + elapsed * part / 64)));
        let level = |key: &KeyState| match key.load(0, &new.limits()[0]) {
            tidegate_core::State::Bucket(level) => level,
            other => panic!("{other:?}"),
        };
        // Settled at the same instant, so that levels can be compared.
        let sighted = carried(&new, &new, &sighted, Since::Known(now));
        prop_assert!(level(&blind) <= level(&sighted), "{} and {}", level(&blind), level(&sighted));
    }
}
