#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use crate::{KeyPattern, Limit, MemoryStore, Rate};

#[test]
fn ids_are_taken_from_the_lowest_gap() {
    let mut ids = Ids { taken: vec![0..2, 5..6], most: 100 };
    assert_eq!(ids.take(3), Some(2));
    assert_eq!(ids.take(3), Some(6));
    assert_eq!(ids.take(91), Some(9));
    assert_eq!(ids.take(1), None);
    assert_eq!(ids.take(usize::MAX), None);
    assert_eq!(ids.taken, [0..2, 2..5, 5..6, 6..9, 9..100]);
}

#[test]
fn figures_without_ids_are_refused_by_name() {
    let refused = Ids { taken: vec![0..3, 3..7], most: 8 }.claim(&policy(1)).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("policy \"api\" has 4 different sets of figures, and there are ids for 8")
    );
    assert_eq!(Ids { taken: vec![0..1, 1..4], most: 8 }.claim(&policy(1)), Ok(4));
}

/// Four sets of figures, all others in each round, and none that ever refills.
fn policy(round: u32) -> Policy {
    let limit = |capacity: u32| Limit::token_bucket(capacity, Rate::ZERO);
    let figures = |capacity| [("main", limit(capacity + round % 2))];
    Policy::builder("api")
        .limit("main", limit(1_000 + round % 2))
        .override_for(KeyPattern::exact("named"), figures(2_000))
        .override_for(KeyPattern::prefix("a"), figures(3_000))
        .override_for(KeyPattern::prefix("ab"), figures(4_000))
        .build()
        .unwrap()
}

/// Ten thousand reloads while keys drained under the first version are never touched, and never as new.
#[test]
fn versions_and_ids_stay_few_and_states_right_however_many_reloads() {
    let clock = ManualClock::default();
    let limiter = Limiter::builder(policy(0))
        .store(MemoryStore::builder().shards(2).build())
        .clock(clock.clone())
        .build();
    let handle = limiter.policy("api").unwrap();
    let keys = ["named", "a", "ab", "abc", "x", ""];
    for (used, key) in keys.iter().enumerate() {
        handle.check(key, 1 + used as u32);
    }
    let bytes = limiter.store().stats().bytes;
    for round in 1..=10_000 {
        clock.advance(Duration::from_millis(300));
        limiter.reload(policy(round)).unwrap();
        handle.check(round.to_be_bytes(), 1);
        handle.reset(round.to_be_bytes());
        let registry = limiter.shared.registry.lock().unwrap();
        let alive = registry.versions.iter().filter(|version| version.strong_count() > 0).count();
        assert!(alive <= 32, "{alive} versions alive after {round} reloads");
        let highest = registry.ids().taken.last().unwrap().end;
        assert!(highest <= 4 * 40, "ids up to {highest} after {round} reloads");
    }
    for (used, key) in keys.iter().enumerate() {
        let left = handle.peek(key);
        let capacity = handle.policy().plan_for(key.as_bytes()).limits()[0].capacity().get();
        assert_eq!(left.remaining(), capacity - 1 - used as u64, "{key:?}");
    }
    let stats = limiter.store().stats();
    assert_eq!(stats.keys, keys.len() as u64);
    assert!(stats.bytes <= 2 * bytes, "{} bytes, {bytes} before", stats.bytes);
}

/// State that is never touched under a policy whose prefixes change waits for its key, and is right then.
#[test]
fn states_wait_for_their_keys_where_prefixes_change() {
    let limiter = Limiter::builder(policy(0)).clock(ManualClock::default()).build();
    let handle = limiter.policy("api").unwrap();
    handle.check("abc", 2_000);
    for round in 0..100_u32 {
        let limit = |capacity| [("main", Limit::token_bucket(capacity, Rate::ZERO))];
        let prefix = KeyPattern::prefix(&b"abcdefgh"[..round as usize % 8]);
        let policy = Policy::builder("api")
            .limit("main", limit(2_500)[0].1)
            .override_for(prefix, limit(5_000 + round));
        limiter.reload(policy.build().unwrap()).unwrap();
    }
    assert_eq!(handle.peek("abc").remaining(), 2_000);
    assert_eq!(handle.peek("abd").remaining(), 2_500);
}

#[test]
fn a_limiter_that_is_gone_leaves_nothing_behind() {
    let limiter = Limiter::builder(policy(0)).clock(ManualClock::default()).build();
    limiter.policy("api").unwrap().check("a", 1);
    for round in 1..5 {
        limiter.reload(policy(round)).unwrap();
    }
    let versions = limiter.shared.registry.lock().unwrap().versions.clone();
    assert!(versions.iter().filter(|version| version.strong_count() > 0).count() > 1);
    drop(limiter);
    assert!(versions.iter().all(|version| version.strong_count() == 0));
}
