//! Exact under concurrency: as many are admitted as one after the other, and nobody is told the same.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use tidegate::clock::ManualClock;
use tidegate::{
    Cost, KeyPattern, Limit, Limiter, MemoryStore, Period, Policy, PolicySet, Rate, Timestamp, Wait,
};

const START: Timestamp = Timestamp::EPOCH;

fn after(micros: u64) -> Timestamp {
    START.saturating_add(Wait::from_micros(micros.into()))
}

fn limiter(policies: impl Into<PolicySet>) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(START);
    (Limiter::builder(policies).clock(clock.clone()).build(), clock)
}

/// Runs `work` on so many threads that start together, and returns what each came to.
fn together<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let start = |number| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(number)
            })
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A stream of uniform numbers for each seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 31)) % end
    }
}

#[test]
fn sixty_four_threads_share_one_hundred_exactly() {
    let limits = [
        Limit::token_bucket(100, Rate::ZERO),
        Limit::gcra(Rate::per_hour(1), 100),
        Limit::fixed_window(100, Period::DAY),
        Limit::sliding_window_log(100, Period::DAY).unwrap(),
        Limit::sliding_window_counter(100, Period::DAY),
    ];
    for limit in limits {
        let (limiter, _) = limiter(Policy::single("api", limit).unwrap());
        let api = limiter.policy("api").unwrap();
        let told = together(64, |_| {
            let decisions = (0..10).map(|_| api.check("k", 1_u32));
            decisions.filter(|it| it.is_allowed()).map(|it| it.remaining()).collect::<Vec<_>>()
        });
        let mut told: Vec<u64> = told.into_iter().flatten().collect();
        told.sort_unstable();
        assert_eq!(told, (0..100).collect::<Vec<u64>>(), "{}", limit.algorithm());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_thousand_tasks_at_one_instant_get_what_there_is() {
    let policy = Policy::single("api", Limit::token_bucket(5, Rate::per_second(1))).unwrap();
    let (limiter, clock) = limiter(policy);
    let api = limiter.policy("api").unwrap();
    for (millis, admitted) in [(0, 5), (999, 0), (1_000, 1), (1_000, 0)] {
        clock.set(after(millis * 1_000));
        let ask = |_| {
            let api = api.clone();
            tokio::spawn(async move { api.check("k", 1_u32).is_allowed() })
        };
        let tasks: Vec<_> = (0..2_000).map(ask).collect();
        let mut passed = 0;
        for task in tasks {
            passed += u32::from(task.await.unwrap());
        }
        assert_eq!(passed, admitted, "at {millis} ms");
    }
}

/// What passed and what is left add up to what was there, for every key and limit, whatever the order.
#[test]
fn what_passed_and_what_is_left_add_up() {
    const KEYS: u64 = 200;
    let policy = Policy::builder("api")
        .limit("bucket", Limit::token_bucket(1_000, Rate::per_second(10)))
        .limit("window", Limit::fixed_window(1_200, Period::DAY))
        .limit("log", Limit::sliding_window_log(1_500, Period::DAY).unwrap())
        .build()
        .unwrap();
    let (limiter, _) = limiter(policy);
    let api = limiter.policy("api").unwrap();
    let passed: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    // Every thread's clock goes its own way, up to 20 seconds on.
    let span = 20_000_000;
    together(8, |thread| {
        let mut random = Random(thread);
        for _ in 0..20_000 {
            let key = random.below(KEYS);
            let cost = Cost::new(random.below(40)).unwrap();
            let now = after(random.below(span + 1));
            if api.check_at(key.to_be_bytes(), cost, now).is_allowed() {
                passed[key as usize].fetch_add(cost.get(), Ordering::Relaxed);
            }
        }
    });
    for (key, passed) in passed.iter().enumerate() {
        let passed = passed.load(Ordering::Relaxed);
        let left = api.peek_at((key as u64).to_be_bytes(), after(span));
        let left: Vec<u64> = left.limits().iter().map(|limit| limit.remaining()).collect();
        assert!(passed <= 1_000 + 10 * 20, "{passed} of key {key}");
        assert_eq!(left[1], 1_200 - passed, "key {key}");
        assert_eq!(left[2], 1_500 - passed, "key {key}");
        assert!(left[0] + passed <= 1_200, "key {key}: {left:?} left, {passed} passed");
    }
    assert!(passed.iter().any(|passed| passed.load(Ordering::Relaxed) > 1_000), "the limits were reached");
}

/// A thousand keys of a hundred each, no refill: while eight threads drain them, another swaps the policy to and
/// fro between figures that leave a hundred a hundred. Not one too many passes, and none is lost.
#[test]
fn reloads_under_checks_mint_nothing_and_lose_nothing() {
    const KEYS: u64 = 500;
    let limit = |capacity: u32| Limit::token_bucket(capacity, Rate::ZERO);
    let versions = [
        Policy::builder("api").limit("main", limit(100)).build().unwrap(),
        // As large for every key, but another width, other names, other overrides.
        Policy::builder("api")
            .limit("also", Limit::sliding_window_counter(1_000_000, Period::DAY))
            .limit("main", limit(100))
            .override_for(KeyPattern::prefix("\0"), [("main", limit(101))])
            .build()
            .unwrap(),
    ];
    let (limiter, clock) = limiter(versions[0].clone());
    let api = limiter.policy("api").unwrap();
    // Touched once each: a key that is full goes over to a larger bucket full.
    (0..KEYS).for_each(|key| assert!(api.check(key.to_be_bytes(), 1_u32).is_allowed()));
    let passed: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(1)).collect();
    let (done, reloads) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let round = reloads.fetch_add(1, Ordering::Relaxed) + 1;
                clock.set(after(round));
                limiter.reload(versions[round as usize % 2].clone()).unwrap();
            }
        });
        together(8, |thread| {
            let mut random = Random(thread);
            for _ in 0..20_000 {
                let key = random.below(KEYS);
                if api.check(key.to_be_bytes(), 1_u32).is_allowed() {
                    passed[key as usize].fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        done.store(true, Ordering::Relaxed);
    });
    assert!(reloads.load(Ordering::Relaxed) > 10);
    limiter.reload(versions[0].clone()).unwrap();
    for (key, passed) in passed.iter().enumerate() {
        let left = api.peek((key as u64).to_be_bytes()).remaining();
        assert_eq!(left + passed.load(Ordering::Relaxed), 100, "key {key}");
    }
    let drained = passed.iter().filter(|passed| passed.load(Ordering::Relaxed) == 100).count();
    assert!(drained > 0, "the keys were drained");
}

/// Policies come and go while handles on them are used; nobody panics, and the one that stays is exact.
#[test]
fn policies_may_come_and_go_under_their_handles() {
    let limit = || Limit::token_bucket(1_000, Rate::ZERO);
    let single = |name: &str| Policy::single(name, limit()).unwrap();
    let (limiter, _) = limiter(PolicySet::new([single("stays"), single("goes")]).unwrap());
    let stays = limiter.policy("stays").unwrap();
    let done = AtomicBool::new(false);
    let passed = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                limiter.reload(single("stays")).unwrap();
                limiter.reload(PolicySet::new([single("goes"), single("stays")]).unwrap()).unwrap();
            }
        });
        let passed = together(8, |_| {
            let mut passed = 0_u32;
            for round in 0..2_000_u32 {
                passed += u32::from(stays.check("k", 1_u32).is_allowed());
                if let Ok(goes) = limiter.policy("goes") {
                    goes.check(round.to_be_bytes(), 1_u32);
                    goes.reset("k");
                    goes.penalize("k", 5_u32);
                }
            }
            passed
        });
        done.store(true, Ordering::Relaxed);
        passed
    });
    assert_eq!(passed.iter().sum::<u32>(), 1_000);
    limiter.reload(single("stays")).unwrap();
    assert_eq!(limiter.store().keys(), 1, "what was of the other policy is gone");
}

/// New keys from all sides on a store that is full: never more than it may hold, and every one accounted for.
#[test]
fn the_bound_holds_under_concurrent_floods() {
    const MOST: u64 = 10_000;
    let store = MemoryStore::builder().max_keys(MOST as usize).build();
    let policy = Policy::single("api", Limit::token_bucket(10, Rate::ZERO)).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::default()).build();
    let api = limiter.policy("api").unwrap();
    let highest = together(8, |thread| {
        let mut highest = 0;
        for number in 0..10_000 {
            api.check((thread * 10_000 + number).to_be_bytes(), 1_u32);
            if number % 100 == 0 {
                highest = highest.max(limiter.store().keys());
            }
        }
        highest
    });
    assert!(highest.iter().all(|highest| *highest <= MOST), "{highest:?}");
    let stats = limiter.store().stats();
    assert_eq!(stats.keys + stats.shed, 80_000);
}

/// Growing, walking and dropping under many threads: each thread's own keys go their own way.
#[test]
fn threads_with_keys_of_their_own_see_nothing_of_each_other() {
    let policy = Policy::single("api", Limit::token_bucket(3, Rate::per_second(1_000))).unwrap();
    let (limiter, _) = limiter(policy);
    let api = Arc::new(limiter.policy("api").unwrap());
    let told = together(8, |thread| {
        let mut told = Vec::new();
        for number in 0..3_000_u64 {
            let (key, now) = ([thread, number / 3], after(number * 100));
            let key: Vec<u8> = key.iter().flat_map(|part| part.to_be_bytes()).collect();
            let decision = api.check_at(&key, 2_u32, now);
            told.push((decision.is_allowed(), decision.remaining(), decision.reset_after()));
        }
        told
    });
    let different: BTreeSet<_> = told.iter().collect();
    assert_eq!(different.len(), 1, "every thread asked the same of keys of its own");
    let pattern: Vec<bool> = told[0][..6].iter().map(|(allowed, _, _)| *allowed).collect();
    assert_eq!(pattern, [true, false, false, true, false, false]);
}
