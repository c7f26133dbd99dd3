//! Checks decided as one, against a model that decides on copies and keeps them only if all fit.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use tidegate::clock::ManualClock;
use tidegate::{
    Asked, Cost, Decision, KeyState, Limit, Limiter, MemoryStore, OnFull, Outcome, Period, Policy,
    PolicyHandle, PolicySet, Rate, Timestamp,
};

const POLICIES: [&str; 4] = ["bucket", "window", "log", "several"];

fn policies() -> PolicySet {
    let bucket = Limit::token_bucket(7, Rate::new(3, Period::from_secs(2).unwrap()));
    let window = Limit::fixed_window(9, Period::from_secs(5).unwrap());
    let log = Limit::sliding_window_log(6, Period::from_secs(3).unwrap()).unwrap();
    let counter = Limit::sliding_window_counter(8, Period::from_secs(4).unwrap());
    let several = Policy::builder("several").limit("log", log).limit("counter", counter).build();
    PolicySet::new([
        Policy::single("bucket", bucket).unwrap(),
        Policy::single("window", window).unwrap(),
        Policy::single("log", log).unwrap(),
        several.unwrap(),
    ])
    .unwrap()
}

/// What one check of a group asks: which policy, which key, how much.
type Ask = (usize, u8, u32);

fn groups() -> impl Strategy<Value = Vec<(u64, Vec<Ask>)>> {
    let ask = (0..POLICIES.len(), 0..3_u8, 0..5_u32);
    let group = (0..1_500_000_u64, prop::collection::vec(ask, 0..6));
    prop::collection::vec(group, 1..60)
}

struct Model {
    set: PolicySet,
    states: HashMap<(usize, u8), KeyState>,
}

impl Model {
    /// Decides on copies; keeps them if all fit.
    fn decide(&mut self, now: Timestamp, asks: &[Ask]) -> (Vec<bool>, bool) {
        let alone = asks.iter().map(|ask| self.touch(&mut self.states.clone(), now, *ask).is_allowed());
        let alone: Vec<bool> = alone.collect();
        let mut copies = self.states.clone();
        let all = asks.iter().all(|ask| self.touch(&mut copies, now, *ask).is_allowed());
        if all {
            self.states = copies;
        }
        (alone, all)
    }

    fn touch(
        &self,
        states: &mut HashMap<(usize, u8), KeyState>,
        now: Timestamp,
        (policy, key, cost): Ask,
    ) -> Decision {
        let plan = self.set.get(POLICIES[policy]).unwrap().plan();
        let state = states.entry((policy, key)).or_insert_with(|| KeyState::new(plan));
        plan.check(state, now, Cost::from(cost))
    }
}

/// Its remaining, retry_after and reset_after, in microseconds.
type LimitFigures = (u64, Option<u128>, Option<u128>);

fn figures(decision: &Decision) -> (Outcome, Vec<LimitFigures>) {
    let micros = |wait: Option<tidegate::Wait>| wait.map(|wait| wait.as_micros());
    let limits = decision.limits().iter();
    let limits = limits.map(|it| (it.remaining(), micros(it.retry_after()), micros(it.reset_after())));
    (decision.outcome(), limits.collect())
}

proptest! {
    #[test]
    fn all_or_nothing_is_what_copies_kept_only_if_all_fit_would_be(groups in groups()) {
        let limiter = Limiter::builder(policies()).clock(ManualClock::default()).build();
        let handles: Vec<PolicyHandle> = POLICIES.iter().map(|name| limiter.policy(name).unwrap()).collect();
        let mut model = Model { set: policies(), states: HashMap::new() };
        let mut now = Timestamp::from_micros(1_000_000_000).unwrap();
        for (later, asks) in groups {
            now = now.saturating_add(tidegate::Wait::from_micros(u128::from(later)));
            let keys: Vec<[u8; 1]> = asks.iter().map(|ask| [ask.1]).collect();
            let asked: Vec<Asked<'_>> = asks.iter().zip(&keys)
                .map(|(ask, key)| Asked { policy: &handles[ask.0], key, cost: Cost::from(ask.2) })
                .collect();
            let foreseen = limiter.foresee_all_at(&asked, now);
            let decided = limiter.check_all_at(&asked, now);
            let (alone, all) = model.decide(now, &asks);
            prop_assert_eq!(foreseen.iter().map(Decision::is_allowed).collect::<Vec<_>>(), alone);
            prop_assert_eq!(decided.iter().all(Decision::is_allowed), all);
            // Every key stands, to the last figure, as the model's does.
            for (policy, handle) in handles.iter().enumerate() {
                for key in 0..3_u8 {
                    let expected = model.touch(&mut model.states.clone(), now, (policy, key, 0));
                    prop_assert_eq!(figures(&handle.peek_at([key], now)), figures(&expected));
                }
            }
        }
    }
}

fn never_refilled(store: MemoryStore, names: &[&str], capacity: u32) -> (Limiter, Vec<PolicyHandle>) {
    let policy =
        |name: &&str| Policy::single(*name, Limit::token_bucket(capacity, Rate::per_second(0))).unwrap();
    let set = PolicySet::new(names.iter().map(policy)).unwrap();
    let limiter = Limiter::builder(set).clock(ManualClock::default()).store(store).build();
    let handles = names.iter().map(|name| limiter.policy(name).unwrap()).collect();
    (limiter, handles)
}

#[test]
fn two_checks_of_one_key_have_to_fit_together() {
    let (limiter, handles) = never_refilled(MemoryStore::default(), &["api"], 5);
    let three = Asked { policy: &handles[0], key: b"k", cost: Cost::from(3_u32) };
    let decided = limiter.check_all(&[three, three]);
    assert_eq!(decided.iter().map(Decision::is_allowed).collect::<Vec<_>>(), [true, false]);
    assert_eq!(handles[0].peek("k").remaining(), 5, "the first is put back");
    assert_eq!(limiter.store().keys(), 0, "as new, so not held");
    handles[0].check("k", 1);
    assert!(!limiter.check_all(&[three, three])[1].is_allowed());
    assert_eq!(handles[0].peek("k").remaining(), 4);
}

#[test]
fn a_key_that_finds_no_room_leaves_the_others_uncharged() {
    let full = MemoryStore::builder().max_keys(1).on_full(OnFull::RefuseNew).build();
    let (limiter, handles) = never_refilled(full, &["a", "b"], 5);
    let [a, b] = [0, 1].map(|at| Asked { policy: &handles[at], key: b"k", cost: Cost::ONE });
    let decided = limiter.check_all(&[a, b]);
    assert_eq!(
        decided.iter().map(Decision::outcome).collect::<Vec<_>>(),
        [Outcome::Allowed, Outcome::Overloaded]
    );
    assert_eq!(handles[0].peek("k").remaining(), 5);
}

#[test]
#[should_panic(expected = "another limiter")]
fn a_policy_of_another_limiter_is_refused() {
    let (limiter, _) = never_refilled(MemoryStore::default(), &["api"], 5);
    let (_, others) = never_refilled(MemoryStore::default(), &["api"], 5);
    limiter.check_all(&[Asked { policy: &others[0], key: b"k", cost: Cost::ONE }]);
}

#[tokio::test]
async fn nobody_overtakes_a_line_as_part_of_a_group() {
    let limit = Limit::token_bucket(2, Rate::per_second(1));
    let clock = ManualClock::default();
    let set = PolicySet::new(["a", "b"].map(|name| Policy::single(name, limit).unwrap())).unwrap();
    let limiter = Limiter::builder(set).clock(clock.clone()).build();
    let (a, b) = (limiter.policy("a").unwrap(), limiter.policy("b").unwrap());
    a.check("k", 1);
    let waits = tokio::spawn(a.acquire("k", 2));
    tokio::task::yield_now().await;
    let one = |policy| Asked { policy, key: b"k", cost: Cost::ONE };
    let decided = limiter.check_all(&[one(&b), one(&a)]);
    assert!(decided[0].is_allowed() && !decided[1].is_allowed(), "one is left, but not for who comes later");
    assert_eq!(b.peek("k").remaining(), 2);
    clock.advance(std::time::Duration::from_secs(1));
    assert!(waits.await.unwrap().unwrap().is_allowed());
}

#[test]
fn threads_whose_groups_overlap_neither_block_each_other_nor_charge_by_halves() {
    const KEYS: [&str; 3] = ["x", "y", "z"];
    let (limiter, handles) = never_refilled(MemoryStore::default(), &KEYS, 900);
    let admitted: Arc<[AtomicU64; 3]> = Arc::default();
    std::thread::scope(|scope| {
        for thread in 0..6_usize {
            let (limiter, handles, admitted) = (&limiter, &handles, Arc::clone(&admitted));
            scope.spawn(move || {
                for _ in 0..500 {
                    // Pairs in both orders: x y, y z, z x, y x, z y, x z.
                    let (first, second) = (thread % 3, (thread % 3 + 1) % 3);
                    let pair = if thread < 3 { [first, second] } else { [second, first] };
                    let asked = pair.map(|at| Asked { policy: &handles[at], key: b"k", cost: Cost::ONE });
                    if limiter.check_all(&asked).iter().all(Decision::is_allowed) {
                        for at in pair {
                            admitted[at].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    for (handle, admitted) in handles.iter().zip(&*admitted) {
        assert_eq!(900 - handle.peek("k").remaining(), admitted.load(Ordering::Relaxed));
    }
    let left: Vec<u64> = handles.iter().map(|handle| handle.peek("k").remaining()).collect();
    assert!(
        left.iter().filter(|left| **left == 0).count() >= 2,
        "any pair with something left goes on: {left:?}"
    );
}
