//! What the memory store keeps, and for how long: nothing of keys that are as new, never more than it may.
#![allow(clippy::unwrap_used)]

mod judged;

use std::time::Duration;

use judged::at;
use proptest::prelude::*;
use tidegate::{
    Algorithm, Limit, Limiter, MemoryStats, MemoryStore, MemoryStoreBuilder, OnFull, Outcome, Period, Policy,
    PolicyHandle, PolicySet, Rate,
};
use tidegate_testkit::conformance::{Duel, StepsBack};
use tidegate_testkit::oracle::Kind;

const SECOND: u64 = 1_000_000;
const START: u64 = 1_700_000_000 * SECOND;

fn over(store: MemoryStoreBuilder, limit: Limit) -> (Limiter, PolicyHandle) {
    let policy = Policy::single("api", limit).unwrap();
    let limiter = Limiter::builder(policy).store(store.secret(11).build()).build();
    let handle = limiter.policy("api").unwrap();
    (limiter, handle)
}

fn one_shard() -> MemoryStoreBuilder {
    MemoryStore::builder().shards(1)
}

fn bucket(capacity: u32, per_second: u32) -> Limit {
    Limit::token_bucket(capacity, Rate::per_second(per_second))
}

/// A key of its own for each number.
fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn stats(limiter: &Limiter) -> MemoryStats {
    limiter.store().stats()
}

#[test]
fn keys_that_were_never_charged_cost_nothing() {
    let (limiter, handle) = over(one_shard(), bucket(5, 1));
    let nothing = stats(&limiter);
    for number in 0..1_000 {
        let now = at(START + number);
        assert!(handle.peek_at(key(number), now).is_allowed());
        assert_eq!(handle.check_at(key(number), 6_u32, now).outcome(), Outcome::CostExceedsCapacity);
        assert_eq!(handle.check_up_to_at(key(number), 0_u32, now).charged(), 0);
        handle.credit_at(key(number), 0_u32, now);
        handle.penalize_at(key(number), 0_u32, now);
        handle.reset(key(number));
    }
    assert_eq!(stats(&limiter), nothing);
    let (limiter, blocked) = over(one_shard(), Limit::fixed_window(0, Period::DAY));
    let (log, logged) = over(one_shard(), Limit::sliding_window_log(0, Period::DAY).unwrap());
    for number in 0..1_000 {
        assert!(!blocked.check_at(key(number), 1_u32, at(START)).is_allowed());
        assert!(!logged.check_up_to_at(key(number), 3_u32, at(START)).is_allowed());
    }
    assert_eq!((stats(&limiter), stats(&log)), (nothing, nothing));
}

/// A million keys come once each, a thousand a second; each is as new within two seconds. At any time no more is
/// held than the keys of the last four seconds, counting the spare second and the round of the walk.
#[test]
fn a_flood_of_keys_that_refill_fast_stays_as_small_as_what_is_live() {
    let (limiter, handle) = over(one_shard(), bucket(2, 1));
    let (mut most_keys, mut most_bytes) = (0, 0);
    for number in 0..1_000_000 {
        assert!(handle.check_at(key(number), 2_u32, at(START + number * 1_000)).is_allowed());
        if number % 500 == 0 {
            let stats = stats(&limiter);
            (most_keys, most_bytes) = (most_keys.max(stats.keys), most_bytes.max(stats.bytes));
        }
    }
    let stats = stats(&limiter);
    assert!(most_keys >= 3_000, "keys are kept for a second after they are as new, only {most_keys} were");
    assert!(most_keys <= 5_000, "{most_keys} keys");
    assert!(most_bytes <= 5_000 * 44 + 10_000, "{most_bytes} bytes");
    assert_eq!(stats.vanished + stats.keys, 1_000_000);
    assert_eq!((stats.shed, stats.refused), (0, 0));
}

#[test]
fn what_never_refills_is_never_dropped() {
    let (limiter, handle) = over(one_shard(), bucket(1, 0));
    for number in 0..100_000 {
        assert!(handle.check_at(key(number), 1_u32, at(START + number * SECOND)).is_allowed());
    }
    assert_eq!(stats(&limiter).keys, 100_000);
    let years_later = at(START + 100 * 366 * 86_400 * SECOND);
    assert!((0..100_000).all(|number| !handle.check_at(key(number), 1_u32, years_later).is_allowed()));
}

/// The last second is kept for stamps that come late: exactly that.
#[test]
fn a_state_is_kept_for_one_second_after_it_is_as_new() {
    for (spare, kept) in [(None, SECOND), (Some(0), 0), (Some(2 * SECOND), 2 * SECOND)] {
        for late in [kept.saturating_sub(1), kept] {
            let store = one_shard();
            let store = spare.map_or(store.clone(), |spare| store.spare(Duration::from_micros(spare)));
            let (limiter, handle) = over(store, bucket(1, 1));
            handle.check_at("k", 1_u32, at(START));
            // Full at START + 1 s. Others come and walk the table.
            for number in 0..64 {
                handle.check_at(key(number), 1_u32, at(START + SECOND + late));
            }
            let held = stats(&limiter).keys;
            assert_eq!(held == 65, late < kept, "{held} held {late} us after, spare {kept}");
        }
    }
}

#[test]
fn all_memory_comes_back_once_everything_has_vanished() {
    let limits = [
        bucket(10, 1_000),
        Limit::fixed_window(10, Period::SECOND),
        Limit::sliding_window_counter(10, Period::SECOND),
        Limit::sliding_window_log(10, Period::SECOND).unwrap(),
    ];
    for limit in limits {
        let (limiter, handle) = over(one_shard(), limit);
        let nothing = stats(&limiter).bytes;
        for number in 0..20_000 {
            for later in 0..3 {
                handle.check_at(key(number), 2_u32, at(START + later));
            }
        }
        let full = stats(&limiter);
        assert_eq!(full.keys, 20_000);
        if limit.algorithm() == Algorithm::SlidingWindowLog {
            assert!(
                full.bytes > 20_000 * (32 + 3 * 16),
                "{} bytes do not hold three entries a key",
                full.bytes
            );
        }
        // Others come, all at one later moment, and go as well.
        for number in 0..40_000 {
            handle.check_at(key(1_000_000 + number), 1_u32, at(START + 10 * SECOND + number * SECOND));
        }
        let after = stats(&limiter);
        assert!(after.keys <= 20, "{} keys of {}", after.keys, limit.algorithm());
        assert!(after.bytes <= nothing + 10_000, "{} bytes of {}", after.bytes, limit.algorithm());
    }
}

#[test]
fn a_store_with_room_for_none_holds_none() {
    for on_full in [OnFull::Shed, OnFull::RefuseNew] {
        let (limiter, handle) = over(MemoryStore::builder().max_keys(0).on_full(on_full), bucket(5, 1));
        let refused = handle.check_at("k", 1_u32, at(START));
        assert_eq!((refused.outcome(), refused.limit().get()), (Outcome::Overloaded, 5));
        assert_eq!((refused.charged(), refused.remaining(), refused.retry_after()), (0, 0, None));
        let penalty = handle.penalize_at("k", 1_u32, at(START));
        assert_eq!(penalty.after.outcome(), Outcome::Overloaded);
        assert!(handle.peek_at("k", at(START)).is_allowed(), "a peek needs no room");
        assert_eq!(handle.check_at("k", 6_u32, at(START)).outcome(), Outcome::CostExceedsCapacity);
        let stats = stats(&limiter);
        assert_eq!((stats.keys, stats.refused, stats.shed), (0, 2, 0));
    }
}

#[test]
fn small_bounds_are_exact() {
    for most in [1, 10, 8_191] {
        for on_full in [OnFull::Shed, OnFull::RefuseNew] {
            let store = MemoryStore::builder().max_keys(most).on_full(on_full);
            let (limiter, handle) = over(store, bucket(5, 0));
            let mut admitted = 0;
            for number in 0..2 * most as u64 {
                let decision = handle.check_at(key(number), 1_u32, at(START));
                admitted += u64::from(decision.is_allowed());
                assert_eq!(stats(&limiter).keys, (number + 1).min(most as u64));
            }
            let stats = stats(&limiter);
            match on_full {
                OnFull::Shed => assert_eq!((admitted, stats.shed), (2 * most as u64, most as u64)),
                OnFull::RefuseNew => assert_eq!((admitted, stats.refused), (most as u64, most as u64)),
            }
        }
    }
}

/// However many shards: never more, and not much less.
#[test]
fn large_bounds_are_never_passed_and_nearly_reached() {
    for most in [8_192, 10_000, 100_000] {
        let (limiter, handle) = over(MemoryStore::builder().max_keys(most), bucket(5, 0));
        let mut highest = 0;
        for number in 0..3 * most as u64 {
            handle.check_at(key(number), 1_u32, at(START));
            if number % 101 == 0 {
                highest = highest.max(stats(&limiter).keys);
            }
        }
        assert!(highest <= most as u64, "{highest} of {most}");
        assert!(highest >= most as u64 * 99 / 100, "{highest} of {most}");
        assert_eq!(stats(&limiter).shed + stats(&limiter).keys, 3 * most as u64);
    }
}

/// A flood of a million new keys cannot free a single drained one.
#[test]
fn refusing_new_keys_keeps_every_drained_key_drained() {
    let store = MemoryStore::builder().max_keys(20_000).on_full(OnFull::RefuseNew);
    let (limiter, handle) = over(store, Limit::token_bucket(3, Rate::new(3, Period::DAY)));
    let now = at(START);
    for number in 0..10_000 {
        assert!(handle.check_at(key(number), 3_u32, now).is_allowed());
    }
    let mut overloaded = 0_u64;
    for number in 10_000..1_010_000 {
        match handle.check_at(key(number), 1_u32, now).outcome() {
            Outcome::Allowed => {}
            Outcome::Overloaded => overloaded += 1,
            other => panic!("{other}"),
        }
    }
    for number in 0..10_000 {
        assert_eq!(handle.check_at(key(number), 1_u32, now).outcome(), Outcome::Denied, "{number}");
    }
    let stats = stats(&limiter);
    assert_eq!((stats.refused, stats.shed), (overloaded, 0));
    assert!(stats.keys <= 20_000 && overloaded >= 980_000, "{stats:?}");
}

/// A full store whose keys are as new is not full.
#[test]
fn as_new_keys_make_way_before_anybody_is_turned_away() {
    for on_full in [OnFull::Shed, OnFull::RefuseNew] {
        let (limiter, handle) = over(one_shard().max_keys(1_000).on_full(on_full), bucket(1, 1));
        for number in 0..1_000 {
            handle.check_at(key(number), 1_u32, at(START));
        }
        for number in 1_000..2_000 {
            assert!(handle.check_at(key(number), 1_u32, at(START + 2 * SECOND)).is_allowed());
        }
        let stats = stats(&limiter);
        assert_eq!((stats.vanished, stats.keys, stats.shed, stats.refused), (1_000, 1_000, 0, 0));
    }
}

/// Of those looked at the fullest goes: of as many drained as hardly used keys, few drained ones are lost.
#[test]
fn the_one_nearest_to_full_is_shed() {
    let (_, handle) = over(one_shard().max_keys(2_000), bucket(1_000, 1));
    let now = at(START);
    for number in 0..2_000 {
        handle.check_at(key(number), if number % 2 == 0 { 1_000_u32 } else { 1 }, now);
    }
    for number in 2_000..2_500 {
        handle.check_at(key(number), 500_u32, now);
    }
    let lost = |numbers: &mut dyn Iterator<Item = u64>| {
        numbers.filter(|number| handle.peek_at(key(*number), now).remaining() == 1_000).count()
    };
    let (drained, hardly_used) = (lost(&mut (0..2_000).step_by(2)), lost(&mut (1..2_000).step_by(2)));
    assert_eq!(drained + hardly_used + lost(&mut (2_000..2_500)), 500);
    assert!(drained <= 25, "{drained} drained keys were shed, {hardly_used} hardly used ones");
}

/// What never refills is shed only when nothing else is met.
#[test]
fn what_never_refills_is_shed_last() {
    let policies = [Policy::single("still", bucket(9, 0)), Policy::single("api", bucket(9, 1))];
    let policies = PolicySet::new(policies.map(Result::unwrap)).unwrap();
    let store = one_shard().max_keys(1_000).secret(3).build();
    let limiter = Limiter::builder(policies).store(store).build();
    let (still, api) = (limiter.policy("still").unwrap(), limiter.policy("api").unwrap());
    for number in 0..500 {
        still.check_at(key(number), 1_u32, at(START));
        api.check_at(key(number), 9_u32, at(START));
    }
    for number in 500..700 {
        api.check_at(key(number), 9_u32, at(START));
    }
    let kept = (0..500).filter(|number| still.peek_at(key(*number), at(START)).remaining() == 8).count();
    assert!(kept >= 490, "only {kept} of 500 that never refill were kept");
}

#[test]
fn policies_and_keys_never_share() {
    // Every way to cut one text into a policy's name and a key.
    let text = "a:b:a:b\u{7f}";
    let names: Vec<String> = (1..text.len() - 1).map(|cut| text[..cut].to_owned()).collect();
    let policies = names.iter().map(|name| Policy::single(name.clone(), bucket(1_000, 0)).unwrap());
    let limiter = Limiter::new(PolicySet::new(policies).unwrap());
    let mut keys: Vec<Vec<u8>> = (0..text.len()).map(|cut| text.as_bytes()[cut..].to_vec()).collect();
    keys.extend((0..4_u64).flat_map(|number| [number.to_le_bytes().to_vec(), number.to_be_bytes().to_vec()]));
    keys.extend([vec![], vec![0], vec![0; 8], vec![0xff; 70_000], vec![0xff; 70_001]]);
    keys.sort();
    keys.dedup();
    let handles: Vec<PolicyHandle> = names.iter().map(|name| limiter.policy(name).unwrap()).collect();
    let mut cost = 0_u32;
    let mut each = |visit: &mut dyn FnMut(&PolicyHandle, &[u8], u32)| {
        cost = 0;
        for handle in &handles {
            for key in &keys {
                cost += 1;
                visit(handle, key, cost);
            }
        }
    };
    each(&mut |handle, key, cost| assert!(handle.check_at(key, cost, at(START)).is_allowed()));
    each(&mut |handle, key, cost| {
        assert_eq!(handle.peek_at(key, at(START)).remaining(), u64::from(1_000 - cost));
    });
}

/// A second late and no more: decisions are the oracle's although states were dropped in between.
#[derive(Debug, Clone)]
struct Late {
    key: u8,
    gap: u64,
    late: u64,
    cost: u64,
}

fn late() -> impl Strategy<Value = Late> {
    let gap = prop_oneof![4 => 0..2_000u64, 2 => 0..SECOND, 1 => 0..10 * SECOND];
    let late = prop_oneof![3 => Just(0), 1 => Just(SECOND), 3 => 0..=SECOND];
    (0..12u8, gap, late, 0..4u64).prop_map(|(key, gap, late, cost)| Late { key, gap, late, cost })
}

fn put_late(kind: Kind, period_us: u64, steps: &[Late]) -> Result<u64, String> {
    let mut subject = judged::Memory::over(one_shard().secret(5), StepsBack::AtMost(SECOND));
    let amount = if kind.is_bucket() { 3 } else { 0 };
    let limit = tidegate_testkit::cases::LimitSpec {
        name: "limit0".to_owned(),
        kind,
        capacity: 3,
        amount,
        period_us,
        debt: None,
    };
    let mut duel = Duel::start(&mut subject, &[limit])?;
    let mut now = START;
    for step in steps {
        now += step.gap;
        duel.check(now - step.late.min(now - START), &[step.key], step.cost)?;
        // The newest stamp counts as seen: others come at it and walk the table.
        duel.check(now, &now.to_be_bytes(), 1)?;
    }
    Ok(subject.limiter().store().stats().vanished)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn dropping_loses_nothing_for_stamps_up_to_a_second_late(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        period_us in prop_oneof![Just(1_000u64), Just(100_000), Just(SECOND), Just(2 * SECOND)],
        steps in prop::collection::vec(late(), 1..120),
    ) {
        put_late(kind, period_us, &steps).map_err(TestCaseError::fail)?;
    }
}

/// The property above is about something: states were dropped, and late stamps came.
#[test]
fn late_stamps_meet_keys_that_were_dropped() {
    for kind in Kind::ALL {
        let steps = (0..200).map(|step| Late {
            key: step % 12,
            gap: SECOND / 3,
            late: u64::from(step % 2) * SECOND,
            cost: 2,
        });
        let vanished = put_late(kind, SECOND / 2, &steps.collect::<Vec<_>>()).unwrap();
        assert!(vanished > 100, "{kind:?}: {vanished} vanished");
    }
}

/// Older than that, a stamp counts as the newest drop: it earns nothing, and can take nothing twice.
#[test]
fn a_stamp_older_than_the_newest_drop_counts_as_that_drop() {
    let (limiter, handle) = over(one_shard(), bucket(1, 1));
    for number in 0..64 {
        handle.check_at(key(number), 1_u32, at(START));
    }
    for number in 64..128 {
        handle.check_at(key(number), 1_u32, at(START + 5 * SECOND));
    }
    assert!(stats(&limiter).vanished >= 32, "{:?}", stats(&limiter));
    // The dropped were full one second after the start, and so is whoever comes with a stamp from before.
    let old = handle.check_at("new", 1_u32, at(START - 60 * SECOND));
    assert_eq!(old.reset_after().unwrap().as_micros(), u128::from(SECOND));
    let refused = handle.check_at("new", 1_u32, at(START + SECOND));
    assert_eq!(refused.retry_after().unwrap().as_micros(), u128::from(SECOND));
}
