#![allow(clippy::unwrap_used)]

use super::*;

const SECOND: u64 = 1_000_000;

fn key(limits: Vec<OracleLimit>) -> Oracle {
    Oracle::new(OraclePolicy { limits })
}

fn bucket(capacity: u64, amount: u64, period_us: u64) -> OracleLimit {
    OracleLimit::bucket(Kind::TokenBucket, capacity, amount, period_us)
}

fn window(kind: Kind, limit: u64, window_us: u64) -> OracleLimit {
    OracleLimit::window(kind, limit, window_us)
}

fn remaining(decision: &OracleDecision) -> Vec<u64> {
    decision.limits.iter().map(|figures| figures.remaining).collect()
}

#[test]
fn a_third_of_a_token_is_kept_exactly() {
    let mut key = key(vec![bucket(3, 3, 2 * SECOND)]);
    assert_eq!(key.check(0, 3).outcome, Outcome::Allowed);
    let early = key.check(666_666, 1);
    assert_eq!((early.outcome, early.headline().retry_after_us), (Outcome::Denied, Some(1)));
    assert_eq!(key.check(666_667, 1).outcome, Outcome::Allowed);
    // 0.0000005 of a token is left over, so the next one is due at 1 333 333 1/3 us, and not a third later.
    assert_eq!(key.check(666_667, 1).headline().retry_after_us, Some(666_667));
    assert_eq!(key.check(1_333_333, 1).outcome, Outcome::Denied);
    assert_eq!(key.check(1_333_334, 1).outcome, Outcome::Allowed);
}

#[test]
fn figures_of_a_bucket_after_an_admission() {
    let mut key = key(vec![bucket(10, 7, SECOND)]);
    let decision = key.check(0, 4);
    let expected = OracleFigures {
        limit: 10,
        remaining: 6,
        retry_after_us: Some(0),
        reset_after_us: Some(571_429),
        delay_us: 0,
        grows_after_us: Some(142_858),
    };
    assert_eq!(decision.limits, vec![expected]);
}

#[test]
fn an_old_stamp_is_charged_and_earns_nothing() {
    let mut key = key(vec![bucket(5, 1, SECOND)]);
    key.check(10 * SECOND, 4);
    assert_eq!(remaining(&key.check(3 * SECOND, 1)), [0]);
    assert_eq!(key.check(3 * SECOND, 1).headline().retry_after_us, Some(1_000_000));
    assert_eq!(key.check(11 * SECOND, 1).outcome, Outcome::Allowed);
}

#[test]
fn peeks_and_denials_do_not_move_the_newest_stamp() {
    let mut key = key(vec![bucket(2, 1, SECOND)]);
    key.check(0, 2);
    key.peek(SECOND * 5);
    key.check(SECOND * 5, 3);
    assert_eq!(key.check(SECOND, 1).outcome, Outcome::Allowed);
    assert_eq!(key.decided_at(0), SECOND);
}

#[test]
fn a_penalty_reaches_the_bound_of_the_debt_and_reports_the_rest() {
    for kind in Kind::ALL {
        let limit = OracleLimit { debt: Some(3), ..bucket(10, 10, SECOND) };
        let mut key = key(vec![OracleLimit { kind, ..limit }]);
        key.check(0, 4);
        assert_eq!(key.penalize(0, 20), [11], "{kind:?}: 6 were left and 3 may be owed");
        assert_eq!(key.penalize(0, 1), [1], "{kind:?}");
        let peek = key.peek(0);
        assert_eq!((peek.outcome, peek.headline().remaining), (Outcome::Denied, 0), "{kind:?}");
        key.credit(0, 3);
        assert_eq!(key.peek(0).outcome, Outcome::Allowed, "{kind:?}: exactly empty again");
        key.credit(0, 1_000_000);
        assert_eq!(key.peek(0).headline().remaining, 10, "{kind:?}: never past the capacity");
    }
}

#[test]
fn a_forced_charge_stops_at_the_debt_and_a_part_of_a_unit_cut_counts_as_one() {
    let mut key = key(vec![bucket(2, 1, SECOND)]);
    key.check(0, 2);
    // Half a token is there and two may be owed, so two and a half of nine are taken.
    assert_eq!(key.penalize(SECOND / 2, 9), [7]);
    assert_eq!(key.peek(SECOND / 2).headline().retry_after_us, Some(2_000_000));
}

#[test]
fn the_sliding_counter_waits_into_the_next_window() {
    let mut key = key(vec![window(Kind::SlidingWindowCounter, 10, 60 * SECOND)]);
    key.check(0, 8);
    let denied = key.check(SECOND, 5);
    assert_eq!(denied.headline().retry_after_us, Some(81_500_000));
    assert_eq!(denied.headline().reset_after_us, Some(119_000_000));
    // 7 are due when the estimate falls from 8 to 7, an eighth into the next window.
    assert_eq!(denied.headline().grows_after_us, Some(66_500_000));
    key.check(SECOND, 1);
    assert_eq!(key.check(86_666_666, 5).outcome, Outcome::Denied);
    assert_eq!(key.check(86_666_667, 5).outcome, Outcome::Allowed);
}

#[test]
fn the_log_forgets_an_entry_exactly_one_window_later() {
    let mut key = key(vec![window(Kind::SlidingWindowLog, 3, 10)]);
    key.check(0, 1);
    key.check(4, 2);
    let denied = key.check(9, 2);
    assert_eq!(denied.headline().retry_after_us, Some(5));
    assert_eq!(denied.headline().grows_after_us, Some(1));
    assert_eq!(denied.headline().reset_after_us, Some(5));
    assert_eq!(remaining(&key.peek(9)), [0]);
    assert_eq!(remaining(&key.peek(10)), [1]);
    assert_eq!(remaining(&key.peek(14)), [3]);
}

#[test]
fn a_credit_to_a_log_forgets_the_newest_first() {
    let mut key = key(vec![window(Kind::SlidingWindowLog, 10, 100)]);
    key.check(0, 4);
    key.check(50, 4);
    key.credit(60, 5);
    assert_eq!(remaining(&key.peek(60)), [7]);
    assert_eq!(remaining(&key.peek(100)), [10], "what was left was the older entry's");
}

#[test]
fn windows_are_credited_only_in_the_current_window() {
    let mut key = key(vec![window(Kind::SlidingWindowCounter, 10, 100)]);
    key.check(0, 8);
    key.check(150, 2);
    key.credit(150, 9);
    assert_eq!(remaining(&key.peek(150)), [6], "half of the 8 before still counts");
}

#[test]
fn all_or_nothing_and_the_binding_limit() {
    let limits = vec![bucket(5, 5, 10 * SECOND), window(Kind::FixedWindow, 3, 86_400 * SECOND)];
    let mut key = key(limits);
    assert_eq!((key.check(0, 3).bound_by, remaining(&key.peek(0))), (1, vec![2, 0]));
    let denied = key.check(0, 1);
    assert_eq!((denied.outcome, denied.bound_by), (Outcome::Denied, 1));
    assert_eq!(denied.limits[0].retry_after_us, Some(0));
    assert_eq!(remaining(&denied), [2, 0]);
    let never = key.check(0, 4);
    assert_eq!((never.outcome, never.bound_by), (Outcome::CostExceedsCapacity, 1));
    assert_eq!(never.limits[0].retry_after_us, Some(4_000_000));
}

#[test]
fn among_limits_that_never_admit_one_too_small_binds() {
    let drained = bucket(9, 0, SECOND);
    let mut key = key(vec![drained, bucket(5, 1, SECOND)]);
    key.check(0, 5);
    let denied = key.check(0, 6);
    assert_eq!((denied.outcome, denied.bound_by), (Outcome::CostExceedsCapacity, 1));
    assert_eq!(key.check(0, 5).bound_by, 0);
}

#[test]
fn check_up_to_takes_what_every_limit_has() {
    let mut key = key(vec![bucket(5, 1, SECOND), bucket(7, 1, SECOND)]);
    assert_eq!(key.check_up_to(0, 3).taken, 3);
    assert_eq!(key.check_up_to(0, 0).decision.outcome, Outcome::Allowed);
    assert_eq!(key.check_up_to(0, 30).taken, 2);
    let nothing = key.check_up_to(0, 30);
    assert_eq!((nothing.taken, nothing.decision.outcome), (0, Outcome::Denied));
    assert_eq!(nothing.decision.headline().retry_after_us, Some(1_000_000));
}

#[test]
fn a_reload_keeps_what_was_used() {
    let policy = |limit| OraclePolicy { limits: vec![limit] };
    let mut key = key(vec![bucket(1000, 1, SECOND)]);
    key.check(0, 1000);
    let before = key.clone();
    key.reload(before.policy().clone(), 50 * SECOND);
    assert_eq!(key.decided_at(0), 0, "the same figures change nothing");
    key.reload(policy(bucket(1000, 10, SECOND)), 100 * SECOND);
    assert_eq!(remaining(&key.peek(100 * SECOND)), [100]);
    assert_eq!(remaining(&key.peek(101 * SECOND)), [110]);
    key.reload(policy(bucket(5, 10, SECOND)), 101 * SECOND);
    assert_eq!(remaining(&key.peek(101 * SECOND)), [5]);
    key.reload(policy(OracleLimit { kind: Kind::Gcra, ..bucket(7, 10, SECOND) }), 101 * SECOND);
    assert_eq!(remaining(&key.peek(101 * SECOND)), [7], "another algorithm starts anew");
}

#[test]
fn a_reload_rounds_a_fraction_down_to_the_new_grain() {
    let mut key = key(vec![bucket(10, 1, 7)]);
    key.check(0, 10);
    key.reload(OraclePolicy { limits: vec![bucket(10, 2, 6)] }, 5);
    // 5/7 becomes 2/3, and the last third comes back in one microsecond.
    assert_eq!(key.peek(5).headline().grows_after_us, Some(1));
    key.reload(OraclePolicy { limits: vec![bucket(10, 1, 2)] }, 5);
    // 2/3 becomes 1/2.
    assert_eq!(key.peek(5).headline().grows_after_us, Some(1));
    assert_eq!(key.peek(5).headline().reset_after_us, Some(19));
}

#[test]
fn a_reload_carries_windows_over() {
    let policy = |limit| OraclePolicy { limits: vec![limit] };
    for kind in [Kind::FixedWindow, Kind::SlidingWindowCounter, Kind::SlidingWindowLog] {
        let mut key = key(vec![window(kind, 10, 100)]);
        key.check(210, 6);
        key.reload(policy(window(kind, 4, 100)), 210);
        assert_eq!(key.check(210, 1).outcome, Outcome::Denied, "{kind:?}");
        key.reload(policy(window(kind, 20, 30)), 215);
        assert_eq!(remaining(&key.peek(215)), [14], "{kind:?}");
    }
}

#[test]
fn a_window_lowered_to_nothing_owes_nothing_and_forgets_nothing() {
    let kinds = [Kind::FixedWindow, Kind::SlidingWindowLog, Kind::SlidingWindowCounter];
    for (kind, as_new_after) in kinds.into_iter().zip([60, 60, 120]) {
        let policy = |limit| OraclePolicy { limits: vec![window(kind, limit, 60 * SECOND)] };
        let mut key = Oracle::new(policy(5));
        key.check(0, 3);
        key.reload(policy(0), 0);
        // What was used counts as at most twice the limit, which is nothing: not overdrawn, as no bucket would be.
        let peek = key.peek(0);
        assert_eq!(peek.outcome, Outcome::Allowed, "{kind:?}");
        // But it is kept, so the key is not as new.
        assert_eq!(peek.headline().reset_after_us, Some(as_new_after * 1_000_000), "{kind:?}");
        key.reload(policy(5), 0);
        assert_eq!(remaining(&key.peek(0)), [2], "{kind:?}");
    }
}

#[test]
fn a_credit_takes_from_what_is_kept_not_from_what_counts() {
    for kind in [Kind::FixedWindow, Kind::SlidingWindowLog, Kind::SlidingWindowCounter] {
        let mut key = key(vec![window(kind, 100, 60 * SECOND)]);
        key.check(0, 100);
        key.reload(OraclePolicy { limits: vec![window(kind, 10, 60 * SECOND)] }, 0);
        key.credit(0, 15);
        assert_eq!(key.check(0, 1).outcome, Outcome::Denied, "{kind:?}: 85 of 10 are used");
        key.credit(0, 80);
        assert_eq!(remaining(&key.peek(0)), [5], "{kind:?}");
    }
}
