#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;
use tidegate_core::{KeyState, Limit, Period, Rate, Since};

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

fn cost(units: u64) -> Cost {
    Cost::new(units).unwrap()
}

const NOW: u64 = 1_700_000_000_000_000;

#[test]
fn figures_come_back_as_they_went_in() {
    let ends = [0, 1, 7, 1_000_000_000_000];
    for (burst, amount) in ends.into_iter().flat_map(|burst| ends.map(|amount| (burst, amount))) {
        for per in [Period::MIN, Period::DAY, Period::MAX] {
            let rate = Rate::new(Units::new(amount).unwrap(), per);
            let limit = AdHocLimit::gcra(rate, Units::new(burst).unwrap());
            assert_eq!(limit.figures().limit(), limit);
        }
    }
}

#[test]
fn what_looks_and_what_gives_back_to_the_full_keep_nothing() {
    let store = AdHocStore::default();
    let limit = AdHocLimit::gcra(Rate::per_minute(10), 6);
    assert_eq!(store.check(at(NOW), b"k", &limit, Cost::PEEK).remaining(), 6);
    assert_eq!(store.credit(at(NOW), b"k", &limit, Units::from(3)).remaining(), 6);
    assert!(!store.check(at(NOW), b"k", &limit, cost(7)).is_allowed());
    assert_eq!(store.keys(), 0);
    assert!(!store.remove(b"k"));
    store.check(at(NOW), b"k", &limit, Cost::ONE);
    assert_eq!(store.keys(), 1);
    assert!(store.remove(b"k"));
    assert_eq!(store.check(at(NOW), b"k", &limit, Cost::PEEK).remaining(), 6);
}

#[test]
fn other_figures_keep_what_was_used() {
    let store = AdHocStore::default();
    let wide = AdHocLimit::gcra(Rate::per_minute(60), 100);
    let tight = AdHocLimit::gcra(Rate::per_minute(6), 10);
    store.check(at(NOW), b"k", &wide, cost(95));
    // Ten seconds at the slower rate, whichever came first: one token.
    let later = at(NOW + 10_000_000);
    assert_eq!(store.check(later, b"k", &tight, Cost::PEEK).remaining(), 6);
    // The look has kept nothing.
    assert_eq!(store.check(later, b"k", &wide, Cost::PEEK).remaining(), 15);
    assert!(!store.check(later, b"k", &tight, cost(8)).is_allowed());
    // A refusal has: the figures are the new ones from here on.
    assert_eq!(store.check(later, b"k", &wide, Cost::PEEK).remaining(), 6);
    assert_eq!(store.keys(), 1);
}

#[test]
fn charges_under_figures_that_take_turns_add_up() {
    let store = AdHocStore::default();
    let [one, other] = [8, 16].map(|burst| AdHocLimit::gcra(Rate::per_hour(1), burst));
    let mut passed = 0;
    for round in 0..1_000 {
        let limit = if round % 2 == 0 { &one } else { &other };
        passed += u32::from(store.check(at(NOW), b"k", limit, Cost::ONE).is_allowed());
    }
    assert_eq!(passed, 8);
}

#[test]
fn what_a_smaller_capacity_cuts_to_full_is_full_under_a_larger_one() {
    let store = AdHocStore::default();
    let [wide, tight] = [1_000, 100].map(|burst| AdHocLimit::gcra(Rate::per_hour(1), burst));
    assert_eq!(store.check(at(NOW), b"k", &wide, cost(900)).remaining(), 100);
    let refused = store.check(at(NOW), b"k", &tight, cost(101));
    assert_eq!((refused.is_allowed(), refused.remaining()), (false, 100));
    assert_eq!(store.check(at(NOW), b"k", &wide, Cost::ONE).remaining(), 999);
}

#[test]
fn entries_that_are_as_new_vanish_whatever_their_figures() {
    let store = AdHocStore::builder().max_keys(1_000).build();
    for round in 0..50_000_u64 {
        let limit = AdHocLimit::gcra(Rate::per_second(1 + round as u32 % 7), 1 + round as u32 % 5);
        store.check(at(NOW + round * 10_000), &round.to_be_bytes(), &limit, Cost::ONE);
    }
    let stats = store.stats();
    // Two seconds of keys and those not yet looked at.
    assert!(stats.keys < 800, "{stats:?}");
    assert_eq!((stats.shed, stats.refused), (0, 0));
    assert_eq!(stats.vanished + stats.keys, 50_000);
}

#[test]
fn a_full_store_sheds_the_fullest_or_refuses_by_name() {
    let limit = AdHocLimit::gcra(Rate::per_hour(1), 100);
    for on_full in [OnFull::Shed, OnFull::RefuseNew] {
        let store = AdHocStore::builder().max_keys(100).on_full(on_full).build();
        assert_eq!(store.check(at(NOW), b"drained", &limit, cost(100)).remaining(), 0);
        for round in 0..10_000_u64 {
            let fresh = store.check(at(NOW), &round.to_be_bytes(), &limit, Cost::ONE);
            let refused = on_full == OnFull::RefuseNew && round >= 99;
            assert_eq!(fresh.outcome() == crate::Outcome::Overloaded, refused, "{round}");
        }
        assert_eq!(store.keys(), 100);
        assert!(!store.check(at(NOW), b"drained", &limit, Cost::ONE).is_allowed());
    }
}

#[test]
fn a_key_takes_no_more_than_it_says() {
    let store = AdHocStore::default();
    let limit = AdHocLimit::gcra(Rate::per_hour(1), 100);
    for key in 0..200_000_u64 {
        store.check(at(NOW), &key.to_be_bytes(), &limit, Cost::ONE);
    }
    let stats = store.stats();
    assert!(stats.bytes / stats.keys < 80, "{stats:?}");
}

#[test]
fn at_one_instant_from_all_sides_exactly_the_burst_passes() {
    let store = AdHocStore::default();
    let limit = AdHocLimit::gcra(Rate::per_hour(1), 5_000);
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let check = || store.check(at(NOW), b"hot", &limit, Cost::ONE).is_allowed();
                scope.spawn(move || (0..2_000).filter(|_| check()).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 5_000);
}

/// One step: the gap before it in microseconds, which of four limits, and what.
type Step = (u64, u8, i64);

fn figures() -> impl Strategy<Value = AdHocLimit> {
    let units = || prop_oneof![1..20_u64, Just(1_000_000_000_000)];
    let per = prop_oneof![1..100_u64, Just(1_000_000), Just(7_000_003), Just(Period::MAX.as_micros())];
    (units(), units(), per).prop_map(|(burst, amount, per)| {
        let units = |units| Units::new(units).unwrap();
        AdHocLimit::gcra(Rate::new(units(amount), Period::from_micros(per).unwrap()), units(burst))
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![Just(0), 0..50_u64, 0..20_000_000_u64];
    proptest::collection::vec((gap, 0..4_u8, -5..10_i64), 1..60)
}

proptest! {
    /// The store against the core's plain state, carried over by hand.
    #[test]
    fn decides_as_the_core_does(limits in proptest::array::uniform4(figures()), steps in steps()) {
        let store = AdHocStore::default();
        let mut under = limits[0].limit().to_owned();
        let mut state = KeyState::new(&Plan::single(under));
        let mut now = NOW;
        for (gap, which, units) in steps {
            now += gap;
            let limit = &limits[usize::from(which)];
            let plan = Plan::single(*limit.limit());
            let mut carried = if under == *limit.limit() { state.clone() } else {
                plan.carry_over(&Plan::single(under), &state, &[Some(0)], Since::Unknown(at(now)))
            };
            let (right, is) = match units {
                0.. => {
                    let cost = cost(units as u64);
                    (plan.check(&mut carried, at(now), cost), store.check(at(now), b"k", limit, cost))
                }
                _ => {
                    let units = Units::new(units.unsigned_abs()).unwrap();
                    (plan.credit(&mut carried, at(now), units).after, store.credit(at(now), b"k", limit, units))
                }
            };
            prop_assert_eq!(right.outcome(), is.outcome());
            prop_assert_eq!(right.binding().figures(), is.binding().figures());
            // What is full is as absent, under any figures, and a look keeps nothing.
            if units != 0 {
                (under, state) = (*limit.limit(), carried);
            }
            let full = plan.as_new_after(&state, at(now)).is_some_and(|wait| wait.is_zero());
            if units != 0 && full {
                state = KeyState::new(&plan);
            }
        }
    }
}

#[test]
fn the_limit_is_told_back() {
    let limit = AdHocLimit::gcra(Rate::per_minute(30), 16);
    assert_eq!(*limit.limit(), Limit::gcra(Rate::per_minute(30), 16).with_debt(0).unwrap());
}
