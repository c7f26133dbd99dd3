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
    Cost, Decision, KeyState, Limit, Limiter, Period, Plan, Policy, PolicyHandle, Rate, Timestamp, Units,
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
    vec![
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
