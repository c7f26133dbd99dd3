//! Groups in which some checks are under policies and others under figures that come along.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tidegate::clock::ManualClock;
use tidegate::store::Together;
use tidegate::{
    AdHocCheck, AdHocLimit, AdHocSpace, Asked, Cost, Decision, KeyState, Limit, Limiter, MemoryStore, OnFull,
    Outcome, Period, Plan, Policy, PolicyHandle, Rate, Timestamp, Units,
};
use tidegate_core::Since;

const SPACE: AdHocSpace = AdHocSpace::new("brought");
const NOW: u64 = 1_700_000_000_000_000;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

fn plain() -> Limit {
    Limit::token_bucket(7, Rate::new(3, Period::from_secs(2).unwrap()))
}

fn figures() -> [AdHocLimit; 3] {
    [(5, 2), (9, 7), (2, 1)]
        .map(|(burst, count)| AdHocLimit::gcra(Rate::new(count, Period::SECOND), Units::from(burst as u32)))
}

fn limiter(store: MemoryStore) -> (Limiter, PolicyHandle) {
    let policy = Policy::single("plain", plain()).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(at(NOW))).build();
    let handle = limiter.policy("plain").unwrap();
    (limiter, handle)
}

/// A group: whether it is only foreseen, its checks under the policy as (key, cost), and those under one of the
/// figures as (figures, key, cost).
#[derive(Debug, Clone)]
struct Group {
    foresee: bool,
    plain: Vec<(u8, u32)>,
    brought: Vec<(usize, u8, u32)>,
}

fn groups() -> impl Strategy<Value = Vec<(u64, Group)>> {
    let plain = prop::collection::vec((0..2_u8, 0..4_u32), 0..3);
    let brought = prop::collection::vec((0..3_usize, 0..2_u8, 0..4_u32), 0..4);
    let group = (prop::bool::weighted(0.2), plain, brought).prop_map(|(foresee, plain, brought)| Group {
        foresee,
        plain,
        brought,
    });
    prop::collection::vec((0..1_500_000_u64, group), 1..60)
}

fn decide(limiter: &Limiter, handle: &PolicyHandle, group: &Group, now: Timestamp) -> Together {
    let limits = figures();
    let plain: Vec<_> = group.plain.iter().map(|(key, cost)| ([*key], Cost::from(*cost))).collect();
    let asked: Vec<_> =
        plain.iter().map(|(key, cost)| Asked { policy: handle, key: &key[..], cost: *cost }).collect();
    let keys: Vec<_> = group.brought.iter().map(|(_, key, _)| [*key]).collect();
    let brought = group.brought.iter().zip(&keys).map(|((limit, _, cost), key)| AdHocCheck {
        space: SPACE,
        key: &key[..],
        limit: &limits[*limit],
        cost: Cost::from(*cost),
    });
    let brought: Vec<_> = brought.collect();
    match group.foresee {
        true => limiter.foresee_all_with_at(&asked, &brought, now),
        false => limiter.check_all_with_at(&asked, &brought, now),
    }
}

/// Decides on copies, and keeps them if all fit.
struct Model {
    plan: Plan,
    plain: HashMap<u8, KeyState>,
    /// And the figures it stands under.
    brought: HashMap<u8, (usize, KeyState)>,
}

impl Model {
    /// A key's state under these figures.
    fn carried(&self, limits: &[AdHocLimit; 3], figures: usize, key: u8, now: Timestamp) -> KeyState {
        let plan = limits[figures].plan();
        match self.brought.get(&key) {
            None => KeyState::new(plan),
            Some((same, state)) if *same == figures => state.clone(),
            Some((other, state)) => {
                plan.carry_over(limits[*other].plan(), state, &[Some(0)], Since::Unknown(now))
            }
        }
    }

    fn decide(&mut self, group: &Group, now: Timestamp) -> (bool, Vec<Decision>) {
        let limits = figures();
        // Of one key the figures that come first count.
        let first = |key: u8| group.brought.iter().find(|(_, other, _)| *other == key).unwrap().0;
        let costs = group.plain.iter().map(|it| it.1).chain(group.brought.iter().map(|it| it.2));
        let charges = !group.foresee && costs.into_iter().any(|cost| cost > 0);
        let mut copies: HashMap<u8, (usize, KeyState)> = HashMap::new();
        for (_, key, _) in &group.brought {
            let figures = first(*key);
            let state = self.carried(&limits, figures, *key, now);
            if charges && self.brought.contains_key(key) {
                self.brought.insert(*key, (figures, state.clone()));
            }
            copies.insert(*key, (figures, state));
        }
        let mut plain = self.plain.clone();
        let mut alone = Vec::new();
        for (key, cost) in &group.plain {
            let state = plain.entry(*key).or_insert_with(|| KeyState::new(&self.plan));
            alone.push(self.plan.foresee(state, now, Cost::from(*cost)));
        }
        for (_, key, cost) in &group.brought {
            let (figures, state) = &copies[key];
            alone.push(limits[*figures].plan().foresee(state, now, Cost::from(*cost)));
        }
        let mut fits = true;
        for (key, cost) in &group.plain {
            let state = plain.get_mut(key).unwrap();
            fits &= self.plan.check(state, now, Cost::from(*cost)).is_allowed();
        }
        for (_, key, cost) in &group.brought {
            let (figures, state) = copies.get_mut(key).unwrap();
            fits &= limits[*figures].plan().check(state, now, Cost::from(*cost)).is_allowed();
        }
        if fits && charges {
            self.plain = plain;
            self.brought.extend(copies);
        }
        (fits, alone)
    }
}

proptest! {
    #[test]
    fn all_are_charged_or_none_whatever_they_are_under(groups in groups()) {
        let (limiter, handle) = limiter(MemoryStore::default());
        let mut model =
            Model { plan: Plan::single(plain()), plain: HashMap::new(), brought: HashMap::new() };
        let mut now = NOW;
        for (later, group) in groups {
            now += later;
            let (fits, alone) = model.decide(&group, at(now));
            let found = decide(&limiter, &handle, &group, at(now));
            let all: Vec<&Decision> = found.policies.iter().chain(&found.ad_hoc).collect();
            prop_assert_eq!(all.len(), group.plain.len() + group.brought.len());
            if group.foresee || !alone.iter().all(Decision::is_allowed) {
                for (found, alone) in all.iter().zip(&alone) {
                    prop_assert_eq!(found.outcome(), alone.outcome());
                    prop_assert_eq!(found.binding().figures(), alone.binding().figures());
                }
            } else {
                prop_assert_eq!(found.is_allowed(), fits);
            }
            let limits = figures();
            let store = limiter.store().ad_hoc(SPACE);
            for key in 0..2_u8 {
                for (which, limit) in limits.iter().enumerate() {
                    let state = model.carried(&limits, which, key, at(now));
                    let right = limit.plan().peek(&state, at(now));
                    let is = store.check(at(now), &[key], limit, Cost::PEEK);
                    prop_assert_eq!(is.binding().figures(), right.binding().figures());
                }
                let state = model.plain.get(&key).cloned();
                let right = model.plan.peek(&state.unwrap_or_else(|| KeyState::new(&model.plan)), at(now));
                prop_assert_eq!(handle.peek_at([key], at(now)).remaining(), right.remaining());
            }
        }
    }
}

fn one<'a>(limit: &'a AdHocLimit, key: &'a [u8], cost: u32) -> AdHocCheck<'a> {
    AdHocCheck { space: SPACE, key, limit, cost: Cost::from(cost) }
}

#[test]
fn what_a_sibling_refuses_leaves_no_trace() {
    let (limiter, handle) = limiter(MemoryStore::default());
    let limit = &figures()[0];
    assert!(handle.check("k", 7).is_allowed());
    let asked = Asked { policy: &handle, key: b"k", cost: Cost::ONE };
    let refused = limiter.check_all_with_at(&[asked], &[one(limit, b"k", 3)], limiter.now());
    assert_eq!((refused.policies[0].is_allowed(), refused.ad_hoc[0].is_allowed()), (false, true));
    assert_eq!(refused.ad_hoc[0].remaining(), 5);
    let store = limiter.store().ad_hoc(SPACE);
    assert_eq!(store.keys(), 0);
    assert_eq!(store.check(limiter.now(), b"k", limit, Cost::PEEK).remaining(), 5);
    // Nor does one of its own kind.
    let both = [one(limit, b"k", 3), one(limit, b"k", 3)];
    let refused = limiter.check_all_with_at(&[], &both, limiter.now());
    assert_eq!(refused.ad_hoc.iter().map(Decision::is_allowed).collect::<Vec<_>>(), [true, false]);
    assert_eq!(store.keys(), 0);
    // And the other way round.
    let asked = Asked { key: b"other", ..asked };
    assert!(!limiter.check_all_with_at(&[asked], &[one(limit, b"k", 6)], limiter.now()).is_allowed());
    assert_eq!(limiter.store().keys(), 1, "other was charged");
}

#[test]
fn a_full_store_refuses_the_whole_and_keeps_what_it_had() {
    let store = MemoryStore::builder().max_keys(1).on_full(OnFull::RefuseNew).build();
    let (limiter, handle) = limiter(store);
    let limit = &figures()[1];
    let asked = Asked { policy: &handle, key: b"k", cost: Cost::ONE };
    let charged = limiter.check_all_with_at(&[asked], &[one(limit, b"a", 1)], limiter.now());
    assert!(charged.is_allowed());
    // There is no room for another brought key: the policy's is not charged either.
    let refused =
        limiter.check_all_with_at(&[asked], &[one(limit, b"a", 1), one(limit, b"b", 1)], limiter.now());
    assert_eq!(refused.ad_hoc[1].outcome(), Outcome::Overloaded);
    // Nor for another of the policy's: what came along is as it was.
    let asked = Asked { key: b"l", ..asked };
    let refused = limiter.check_all_with_at(&[asked], &[one(limit, b"a", 1)], limiter.now());
    assert_eq!(refused.policies[0].outcome(), Outcome::Overloaded);
    assert_eq!(handle.peek("k").remaining(), 6);
    let brought = limiter.store().ad_hoc(SPACE);
    assert_eq!(brought.check(limiter.now(), b"a", limit, Cost::PEEK).remaining(), 8);
}

/// Were what came along charged first and given back after, whoever looks in between would see it.
#[test]
fn nobody_ever_sees_a_charge_that_did_not_count() {
    let (limiter, handle) = limiter(MemoryStore::default());
    let limit = AdHocLimit::gcra(Rate::per_hour(1), Units::from(5_u32));
    assert!(handle.check("spent", 7).is_allowed());
    let over = AtomicBool::new(false);
    let (keys, now): ([&[u8]; 2], _) = ([b"a", b"b"], limiter.now());
    std::thread::scope(|scope| {
        let group = |order: [usize; 2]| {
            let asked = Asked { policy: &handle, key: b"spent", cost: Cost::ONE };
            let brought = order.map(|key| one(&limit, keys[key], 5));
            for _ in 0..20_000 {
                assert!(!limiter.check_all_with_at(&[asked], &brought, now).is_allowed());
            }
        };
        // In both orders: they would wait for each other, were the locks taken so.
        let groups = [[0, 1], [1, 0]].map(|order| scope.spawn(move || group(order)));
        let (over, limit, limiter) = (&over, &limit, &limiter);
        let looks = [0, 1].map(|key| {
            scope.spawn(move || {
                let store = limiter.store().ad_hoc(SPACE);
                let mut looks = 0_u64;
                while !over.load(Ordering::Relaxed) || looks == 0 {
                    assert_eq!(store.check(now, keys[key], limit, Cost::PEEK).remaining(), 5);
                    looks += 1;
                }
            })
        });
        groups.into_iter().for_each(|group| group.join().unwrap());
        over.store(true, Ordering::Relaxed);
        looks.into_iter().for_each(|look| look.join().unwrap());
    });
}

#[test]
fn from_all_sides_exactly_as_many_pass_as_both_admit() {
    let policy = Policy::single("plain", Limit::token_bucket(900, Rate::ZERO)).unwrap();
    let limiter = Limiter::builder(policy).clock(ManualClock::new(at(NOW))).build();
    let handle = limiter.policy("plain").unwrap();
    let limits = [1_000, 600_u32].map(|burst| AdHocLimit::gcra(Rate::per_hour(1), Units::from(burst)));
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let check = || {
                    let asked = Asked { policy: &handle, key: b"k", cost: Cost::ONE };
                    let brought = [one(&limits[0], b"wide", 1), one(&limits[1], b"tight", 1)];
                    limiter.check_all_with_at(&[asked], &brought, limiter.now()).is_allowed()
                };
                scope.spawn(move || (0..300).filter(|_| check()).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 600);
    assert_eq!(handle.peek("k").remaining(), 300);
    let store = limiter.store().ad_hoc(SPACE);
    assert_eq!(store.check(limiter.now(), b"wide", &limits[0], Cost::PEEK).remaining(), 400);
}

#[test]
fn spaces_have_nothing_to_do_with_one_another() {
    let store = MemoryStore::builder().max_keys(1).on_full(OnFull::RefuseNew).build();
    let [one, other] = [AdHocSpace::new("one"), AdHocSpace::new("other")].map(|space| store.ad_hoc(space));
    let limit = &figures()[0];
    assert_eq!(one.check(at(NOW), b"k", limit, Cost::from(5_u32)).remaining(), 0);
    assert_eq!(other.check(at(NOW), b"k", limit, Cost::ONE).remaining(), 4);
    assert_eq!(other.check(at(NOW), b"l", limit, Cost::ONE).outcome(), Outcome::Overloaded);
}
