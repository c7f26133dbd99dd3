//! Figures that change under live state: nobody knows since when, so a model that does not know either is asked.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate::clock::ManualClock;
use tidegate::{
    Asked, Cost, Decision, KeyState, Limit, Limiter, Period, Plan, Policy, PolicyHandle, Rate, Timestamp,
    Units,
};
use tidegate_core::Since;
use tidegate_redis::RedisStore;
use tidegate_testkit_servers::{Program, Server};

/// The figures a policy may have, by the names of its limits.
type Figures = Vec<(&'static str, Limit)>;

fn figures() -> Vec<Figures> {
    let second = Period::SECOND;
    let log = |limit: u32, window| Limit::sliding_window_log(limit, window).unwrap();
    let slow = Rate::new(1, Period::from_secs(7).unwrap());
    let ordinary = vec![
        vec![("a", Limit::token_bucket(10, Rate::per_second(3)))],
        vec![("a", Limit::token_bucket(4, Rate::per_minute(100)))],
        vec![("a", Limit::token_bucket(20, slow)), ("b", Limit::fixed_window(8, second))],
        vec![("a", Limit::gcra(Rate::per_second(3), 10)), ("l", log(5, second))],
        vec![("l", log(9, Period::from_secs(3).unwrap())), ("a", Limit::token_bucket(6, Rate::ZERO))],
        vec![("c", Limit::sliding_window_counter(7, second)), ("m", log(3, second))],
        vec![("c", Limit::sliding_window_counter(4, Period::from_secs(2).unwrap()).with_debt(1).unwrap())],
        vec![
            ("b", Limit::fixed_window(3, Period::MINUTE)),
            ("l", log(2, second)),
            ("m", log(8, Period::MINUTE)),
        ],
    ];
    let each_lowered = [None, Some(0), Some(2)].into_iter().flat_map(|debt| {
        let capacities = if debt.is_none() { vec![10, 1, 0] } else { vec![0] };
        capacities.into_iter().flat_map(move |capacity| {
            one_of_each(capacity).map(|(name, limit)| match debt {
                None => vec![(name, limit)],
                Some(debt) => vec![(name, limit.with_debt(debt).unwrap())],
            })
        })
    });
    ordinary
        .into_iter()
        .chain(each_lowered)
        .chain([one_of_each(10).to_vec(), one_of_each(0).to_vec()])
        .collect()
}

/// A limit of this many for each algorithm.
fn one_of_each(capacity: u32) -> [(&'static str, Limit); 6] {
    let (rate, minute) = (Rate::per_minute(20), Period::MINUTE);
    [
        ("bucket", Limit::token_bucket(capacity, rate)),
        ("gcra", Limit::gcra(rate, capacity)),
        ("leaky", Limit::leaky_bucket(capacity, rate).unwrap()),
        ("fixed", Limit::fixed_window(capacity, minute)),
        ("log", Limit::sliding_window_log(capacity, minute).unwrap()),
        ("counter", Limit::sliding_window_counter(capacity, minute)),
    ]
}

fn policy(figures: &Figures) -> Policy {
    let builder = figures.iter().fold(Policy::builder("api"), |it, (name, limit)| it.limit(*name, *limit));
    builder.build().unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Check(u8, u32),
    UpTo(u8, u32),
    Penalize(u8, u32),
    Credit(u8, u32),
    Reload(usize),
}

/// The first touch under other figures carries a state over, if it is more than a look.
struct Model {
    figures: Vec<Figures>,
    current: usize,
    states: HashMap<u8, (usize, KeyState)>,
}

impl Model {
    fn plan(&self, which: usize) -> Plan {
        Plan::new(self.figures[which].iter().map(|(_, limit)| *limit)).unwrap()
    }

    fn touch<R>(
        &mut self,
        key: u8,
        now: Timestamp,
        keeps: bool,
        f: impl FnOnce(&Plan, &mut KeyState) -> R,
    ) -> R {
        let plan = self.plan(self.current);
        let mut state = match self.states.get(&key) {
            None => KeyState::new(&plan),
            Some((which, state)) if *which == self.current => state.clone(),
            Some((which, state)) => {
                let old = &self.figures[*which];
                let place = |(name, _): &(&str, Limit)| old.iter().position(|(other, _)| other == name);
                let origins: Vec<_> = self.figures[self.current].iter().map(place).collect();
                plan.carry_over(&self.plan(*which), state, &origins, Since::Unknown(now))
            }
        };
        let result = f(&plan, &mut state);
        // What was never seen and is still as new is not kept.
        if keeps && (self.states.contains_key(&key) || state != KeyState::new(&plan)) {
            self.states.insert(key, (self.current, state));
        }
        result
    }

    fn take(&mut self, now: Timestamp, step: &Step) -> Decision {
        match *step {
            Step::Check(key, cost) => {
                self.touch(key, now, cost > 0, |plan, state| plan.check(state, now, Cost::from(cost)))
            }
            Step::UpTo(key, most) => {
                self.touch(key, now, most > 0, |plan, state| plan.check_up_to(state, now, Cost::from(most)))
            }
            Step::Penalize(key, units) => self.touch(key, now, units > 0, |plan, state| {
                plan.penalize(state, now, Units::from(units)).after
            }),
            Step::Credit(key, units) => self
                .touch(key, now, units > 0, |plan, state| plan.credit(state, now, Units::from(units)).after),
            Step::Reload(which) => {
                self.current = which;
                self.touch(0, now, false, |plan, state| plan.peek(state, now))
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let step = prop_oneof![
        5 => (0..2_u8, 0..5_u32).prop_map(|(key, cost)| Step::Check(key, cost)),
        2 => (0..2_u8).prop_map(|key| Step::Check(key, 0)),
        1 => (0..2_u8, 0..5_u32).prop_map(|(key, most)| Step::UpTo(key, most)),
        1 => (0..2_u8, 0..9_u32).prop_map(|(key, units)| Step::Penalize(key, units)),
        1 => (0..2_u8, 0..9_u32).prop_map(|(key, units)| Step::Credit(key, units)),
        2 => (0..figures().len()).prop_map(Step::Reload),
    ];
    prop::collection::vec((-300_000..900_000_i64, step), 1..40)
}

#[test]
fn what_was_used_stays_used_whatever_the_figures_become() {
    let server = Server::start(Program::Redis7);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config::with_cases(300));
    let verdict = runner.run(&steps(), |steps| {
        let figures = figures();
        let store = runtime.block_on(shared::store(&server.url()).open()).unwrap();
        let limiter =
            Limiter::builder(policy(&figures[0])).store(store).clock(ManualClock::default()).build();
        let api: PolicyHandle<RedisStore> = limiter.policy("api").unwrap();
        let mut model = Model { figures, current: 0, states: HashMap::new() };
        let mut now = 1_700_000_000_000_000_i64;
        for (later, step) in steps {
            now += later;
            let at = Timestamp::from_micros(now as u64).unwrap();
            let found = match step {
                Step::Check(key, cost) => runtime.block_on(api.check_at([key], cost, at)).unwrap(),
                Step::UpTo(key, most) => runtime.block_on(api.check_up_to_at([key], most, at)).unwrap(),
                Step::Penalize(key, units) => {
                    runtime.block_on(api.penalize_at([key], units, at)).unwrap().after
                }
                Step::Credit(key, units) => runtime.block_on(api.credit_at([key], units, at)).unwrap(),
                Step::Reload(which) => {
                    limiter.reload(policy(&model.figures[which])).unwrap();
                    runtime.block_on(api.peek_at([0], at)).unwrap()
                }
            };
            let expected = model.take(at, &step);
            prop_assert_eq!(judged::answer(&found), judged::answer(&expected), "{:?} at {}", step, now);
        }
        Ok(())
    });
    verdict.unwrap();
}

/// What was counted under a limit that is 0 by now counts as nothing unless there may be debt: by each of the scripts
/// that decide, as by the arithmetic.
#[tokio::test]
async fn a_look_under_a_limit_lowered_to_nothing_is_answered() {
    let server = Server::start(Program::Redis7);
    let at = Timestamp::from_micros(1_700_000_000_000_000).unwrap();
    for ((name, ten), (_, none)) in one_of_each(10).into_iter().zip(one_of_each(0)) {
        for debt in [0_u32, 3] {
            let none = none.with_debt(debt).unwrap();
            let store = shared::store(&server.url()).open().await.unwrap();
            let open = policy(&vec![(name, ten)]);
            let limiter = Limiter::builder(open).store(store).clock(ManualClock::new(at)).build();
            let api = limiter.policy("api").unwrap();
            let (before, after) = (Plan::single(ten), Plan::single(none));
            let mut state = KeyState::new(&before);
            assert!(before.check(&mut state, at, Cost::from(5_u32)).is_allowed());
            let mut state = after.carry_over(&before, &state, &[Some(0)], Since::Unknown(at));
            let refused = judged::answer(&after.check(&mut state, at, Cost::ONE));
            let looked = judged::answer(&after.peek(&state, at));
            for key in ["ann", "bob"] {
                assert!(api.check_at(key, 5_u32, at).await.unwrap().is_allowed());
            }
            limiter.reload(policy(&vec![(name, none)])).unwrap();
            for key in ["ann", "bob"] {
                assert_eq!(judged::answer(&api.check_at(key, 1_u32, at).await.unwrap()), refused, "{name}");
            }
            let asked =
                ["ann", "bob"].map(|key| Asked { policy: &api, key: key.as_bytes(), cost: Cost::PEEK });
            let mut found = vec![api.peek_at("ann", at).await.unwrap()];
            found.extend(limiter.check_all_at(&asked, at).await.unwrap());
            for keys in [["ann", "bob"], ["ann", "ann"]] {
                found.extend(api.check_batch_at(&keys, Cost::PEEK, at).await.into_iter().map(Result::unwrap));
            }
            let found: Vec<_> = found.iter().map(judged::answer).collect();
            assert_eq!(found, vec![looked; 7], "{name} with a debt of {debt}");
        }
    }
}
