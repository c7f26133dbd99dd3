//! Other policies under live state: what has been used stays used, nothing is minted, nothing is left behind.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::{
    KeyPattern, Limit, Limiter, MemoryStore, Period, Policy, PolicyHandle, PolicySet, Rate, Reload, Timestamp,
};

const SECOND: Duration = Duration::from_secs(1);

/// A limiter whose clock stands at a whole number of days, one shard.
fn limiter(policies: impl Into<PolicySet>) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(Timestamp::from_micros(20_000 * 86_400_000_000).unwrap());
    let store = MemoryStore::builder().shards(1).secret(7).build();
    (Limiter::builder(policies).store(store).clock(clock.clone()).build(), clock)
}

fn bucket(capacity: u32, per_second: u32) -> Limit {
    Limit::token_bucket(capacity, Rate::per_second(per_second))
}

fn api(limit: Limit) -> Policy {
    Policy::builder("api").limit("main", limit).build().unwrap()
}

fn two(first: (&str, Limit), second: (&str, Limit)) -> Policy {
    Policy::builder("api").limit(first.0, first.1).limit(second.0, second.1).build().unwrap()
}

fn set(policies: impl IntoIterator<Item = Policy>) -> PolicySet {
    PolicySet::new(policies).unwrap()
}

fn remaining(policy: &PolicyHandle, key: &str) -> Vec<u64> {
    policy.peek(key).limits().iter().map(|limit| limit.remaining()).collect()
}

#[test]
fn a_reload_says_what_it_changed() {
    let named = |name: &str, limit| Policy::single(name, limit).unwrap();
    let kept = named("kept", bucket(1, 1));
    let old = [
        kept.clone(),
        named("gone", bucket(1, 1)),
        named("other figures", bucket(1, 1)),
        Policy::builder("other rules").limit("x", bucket(1, 1)).limit("y", bucket(1, 1)).build().unwrap(),
        named("other keys", bucket(1, 1)),
    ];
    let (limiter, _) = limiter(set(old));
    let window = Limit::fixed_window(5, Period::MINUTE);
    let vip = Policy::builder("other keys").limit("other keys", bucket(1, 1));
    let new = [
        named("new", bucket(1, 1)),
        kept,
        named("other figures", bucket(2, 1)),
        Policy::builder("other rules").limit("y", window).limit("x", bucket(1, 1)).build().unwrap(),
        vip.override_for(KeyPattern::exact("vip"), [("other keys", bucket(9, 1))]).build().unwrap(),
    ];
    let report = limiter.reload(set(new.clone())).unwrap();
    assert_eq!(report.added, ["new"]);
    assert_eq!(report.changed, ["other figures", "other rules", "other keys"]);
    assert_eq!(report.removed, ["gone"]);
    assert_eq!(report.restarted, [("other rules".to_owned(), "y".to_owned())]);
    let names: Vec<String> = limiter.policies().iter().map(|policy| policy.name().to_owned()).collect();
    assert_eq!(names, ["new", "kept", "other figures", "other rules", "other keys"]);
    assert!(limiter.policy("gone").is_err());
    assert!(limiter.reload(set(new)).unwrap().is_empty());
}

#[test]
fn the_same_again_changes_nothing_at_all() {
    let policy =
        two(("bucket", bucket(10, 1)), ("log", Limit::sliding_window_log(10, Period::MINUTE).unwrap()));
    let (limiter, clock) = limiter(policy.clone());
    let handle = limiter.policy("api").unwrap();
    let start = limiter.now();
    for key in 0..100_u32 {
        handle.check(key.to_be_bytes(), key % 10);
    }
    // Long past everything: a sweep would drop all, and stamps from before would count as that.
    clock.advance(1_000_000 * SECOND);
    let before = limiter.store().stats();
    assert_eq!(limiter.reload(policy).unwrap(), Reload::default());
    assert_eq!(limiter.store().stats(), before);
    for key in 0..100_u32 {
        let left = handle.peek_at(key.to_be_bytes(), start);
        assert_eq!(left.remaining(), u64::from(10 - key % 10), "{key}");
        assert_eq!(left.reset_after().unwrap().as_secs_ceil(), if key % 10 == 0 { 0 } else { 60 });
    }
}

#[test]
fn a_key_goes_through_every_version_at_its_own_rate() {
    let (limiter, clock) = limiter(api(bucket(100, 1)));
    let handle = limiter.policy("api").unwrap();
    handle.check("k", 100);
    for rate in [0, 2, 5, 1] {
        clock.advance(4 * SECOND);
        limiter.reload(api(bucket(100, rate))).unwrap();
    }
    clock.advance(4 * SECOND);
    assert_eq!(remaining(&handle, "k"), [4 * (1 + 2 + 5 + 1)]);
}

/// What is cut to a capacity fills it, and a full bucket is full afterwards.
#[test]
fn a_lower_capacity_in_between_leaves_less_or_a_full_bucket() {
    let (limiter, _) = limiter(api(bucket(100, 0)));
    let handle = limiter.policy("api").unwrap();
    handle.check("high", 10);
    handle.check("low", 96);
    handle.check("drained", 100);
    limiter.reload(api(bucket(5, 0))).unwrap();
    limiter.reload(api(bucket(1_000, 0))).unwrap();
    assert_eq!(remaining(&handle, "high"), [1_000]);
    assert_eq!(remaining(&handle, "low"), [4]);
    assert_eq!(remaining(&handle, "drained"), [0]);
    assert_eq!(remaining(&handle, "never seen"), [1_000]);
}

#[test]
fn limits_are_known_by_their_names_wherever_they_stand() {
    let (a, b) = (bucket(10, 0), Limit::fixed_window(20, Period::DAY));
    let (limiter, _) = limiter(two(("a", a), ("b", b)));
    let handle = limiter.policy("api").unwrap();
    handle.check("k", 3);
    limiter.reload(two(("b", b), ("a", a))).unwrap();
    assert_eq!(remaining(&handle, "k"), [17, 7], "put in another order");
    let renamed = limiter.reload(two(("b", b), ("c", a))).unwrap();
    assert_eq!(renamed.restarted, [("api".to_owned(), "c".to_owned())]);
    assert_eq!(remaining(&handle, "k"), [17, 10], "one with another name is another one");
    handle.check("k", 1);
    limiter.reload(two(("new", a), ("b", b))).unwrap();
    assert_eq!(remaining(&handle, "k"), [10, 16], "one added, one gone");
    limiter.reload(Policy::builder("api").limit("b", b).build().unwrap()).unwrap();
    assert_eq!(remaining(&handle, "k"), [16]);
    limiter.reload(two(("a", a), ("b", b))).unwrap();
    assert_eq!(remaining(&handle, "k"), [10, 16], "one that was gone comes back as new");
}

#[test]
fn another_algorithm_starts_anew_and_the_others_do_not() {
    let log = Limit::sliding_window_log(20, Period::MINUTE).unwrap();
    let (limiter, _) = limiter(two(("a", Limit::fixed_window(10, Period::DAY)), ("b", log)));
    let handle = limiter.policy("api").unwrap();
    handle.check("k", 4);
    let counter = Limit::sliding_window_counter(10, Period::DAY);
    let report = limiter.reload(two(("a", counter), ("b", log))).unwrap();
    assert_eq!(report.restarted, [("api".to_owned(), "a".to_owned())]);
    assert_eq!(remaining(&handle, "k"), [10, 16]);
}

#[test]
fn an_override_reaches_a_key_with_state_and_leaves_it_again() {
    let plain = || Policy::builder("api").limit("main", bucket(10, 1));
    let (limiter, clock) = limiter(plain().build().unwrap());
    let handle = limiter.policy("api").unwrap();
    for key in ["acme:1", "acme:2", "other"] {
        handle.check(key, 10);
    }
    clock.advance(2 * SECOND);
    let vip = plain().override_for(KeyPattern::prefix("acme:"), [("main", bucket(100, 5))]);
    limiter.reload(vip.clone().build().unwrap()).unwrap();
    clock.advance(2 * SECOND);
    assert_eq!(remaining(&handle, "acme:1"), [12], "two at the old rate, ten at the new");
    assert_eq!(remaining(&handle, "other"), [4]);
    let one = vip.override_for(KeyPattern::exact("acme:2"), [("main", bucket(100, 0))]);
    limiter.reload(one.build().unwrap()).unwrap();
    clock.advance(2 * SECOND);
    assert_eq!(remaining(&handle, "acme:1"), [22]);
    assert_eq!(remaining(&handle, "acme:2"), [12]);
    limiter.reload(plain().build().unwrap()).unwrap();
    clock.advance(3 * SECOND);
    assert_eq!(remaining(&handle, "acme:1"), [10], "cut to the capacity of everybody");
    assert_eq!(remaining(&handle, "acme:2"), [10]);
    assert_eq!(remaining(&handle, "other"), [9]);
}

#[test]
fn a_key_whose_own_figures_stayed_is_not_touched_by_those_of_others() {
    let with = |capacity| {
        let base = Policy::builder("api").limit("main", bucket(10, 1));
        base.override_for(KeyPattern::exact("vip"), [("main", bucket(capacity, 1))]).build().unwrap()
    };
    let (limiter, clock) = limiter(with(20));
    let handle = limiter.policy("api").unwrap();
    let start = limiter.now();
    handle.check("k", 10);
    clock.advance(SECOND / 2);
    limiter.reload(with(30)).unwrap();
    // Stamps from before the reload still count as what they are, seen or not.
    assert_eq!(handle.peek_at("k", start).retry_after().unwrap().as_micros(), 0);
    assert_eq!(handle.check_at("k", 1_u32, start).retry_after().unwrap().as_micros(), 1_000_000);
    assert_eq!(handle.check_at("unseen", 10_u32, start).reset_after().unwrap().as_micros(), 10_000_000);
    assert_eq!(handle.peek_at("unseen", start).reset_after().unwrap().as_micros(), 10_000_000);
    // Where the figures did change, time does not go back behind the change.
    handle.check_at("vip", 1_u32, start);
    let (at_change, now) = (handle.peek_at("vip", start), handle.peek("vip"));
    assert_eq!(at_change.reset_after(), now.reset_after());
}

#[test]
fn a_state_is_not_dropped_when_it_would_have_been_full_under_figures_that_are_gone() {
    let (limiter, clock) = limiter(api(bucket(10, 10)));
    let handle = limiter.policy("api").unwrap();
    handle.check("k", 10);
    clock.advance(SECOND / 10);
    limiter.reload(api(Limit::token_bucket(10, Rate::per_hour(1)))).unwrap();
    clock.advance(60 * SECOND);
    // Other keys come, so the table is walked.
    for key in 0..1_000_u32 {
        handle.check(key.to_be_bytes(), 1);
    }
    assert_eq!(remaining(&handle, "k"), [1]);
}

#[test]
fn what_was_left_under_old_figures_vanishes_all_the_same() {
    let (limiter, clock) = limiter(api(bucket(10, 0)));
    let handle = limiter.policy("api").unwrap();
    for key in 0..1_000_u32 {
        handle.check(key.to_be_bytes(), 10);
    }
    limiter.reload(api(bucket(10, 1))).unwrap();
    limiter.reload(api(bucket(10, 2))).unwrap();
    assert_eq!(limiter.store().keys(), 1_000);
    // Nobody of them comes back. From the deepest debt to full it takes ten seconds, and a second is kept.
    clock.advance(11 * SECOND);
    for key in 1_000..2_000_u32 {
        handle.check(key.to_be_bytes(), 10);
    }
    assert_eq!(limiter.store().stats().vanished, 1_000);
    assert_eq!(limiter.store().keys(), 1_000);
}

#[test]
fn a_policy_that_was_gone_comes_back_empty_and_stale_handles_stay_away_from_it() {
    let other = Policy::single("other", bucket(1, 1)).unwrap();
    let with = || set([api(bucket(10, 0)), other.clone()]);
    let (limiter, _) = limiter(with());
    let stale = limiter.policy("api").unwrap();
    stale.check("k", 10);
    assert_eq!(limiter.reload(other.clone()).unwrap().removed, ["api"]);
    assert_eq!(limiter.store().keys(), 0, "its state is gone");
    assert_eq!(remaining(&stale, "k"), [10], "the handle goes on under the figures it had");
    stale.check("k", 4);
    assert_eq!(limiter.reload(with()).unwrap().added, ["api"]);
    let fresh = limiter.policy("api").unwrap();
    assert_eq!(remaining(&fresh, "k"), [10]);
    fresh.check("k", 9);
    stale.check("k", 1);
    fresh.check("k", 1);
    assert_eq!((remaining(&fresh, "k"), remaining(&stale, "k")), (vec![0], vec![9]));
    limiter.reload(set([api(bucket(12, 0)), other])).unwrap();
    assert_eq!(remaining(&fresh, "k"), [0], "the new policy's handle follows");
    assert_eq!(stale.policy().plan().limits()[0].capacity().get(), 10, "the stale one does not");
}

#[test]
fn handles_follow_and_tell_the_policy_in_force() {
    let (limiter, _) = limiter(api(bucket(10, 0)));
    let (handle, clone) = (limiter.policy("api").unwrap(), limiter.policy("api").unwrap().clone());
    limiter.reload(api(bucket(20, 0))).unwrap();
    for handle in [&handle, &clone] {
        assert_eq!(handle.policy().plan().limits()[0].capacity().get(), 20);
    }
    assert_eq!(remaining(&handle, "k"), [20]);
}
