//! Random lives of a line, against one that is worked out from the beginning at every step.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Cost, KeyState, Limit, Penalty, Period, Plan, Policy, Rate, Timestamp, Units, Wait};

use super::executor::Id;
use super::{Place, place_of};

#[derive(Debug, Clone, Copy)]
enum Step {
    Acquire {
        cost: u32,
        within: Option<u16>,
    },
    /// Drops the n-th of those who have not ended, counted round and round.
    Cancel(usize),
    Check(u32),
    CheckUpTo(u32),
    Credit(u32),
    Penalize(u32),
    Advance(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..7u32, prop::option::of(0..6_000u16)).prop_map(|(cost, within)| Step::Acquire { cost, within }),
        1 => (0..50usize).prop_map(Step::Cancel),
        1 => (0..7u32).prop_map(Step::Check),
        1 => (0..7u32).prop_map(Step::CheckUpTo),
        1 => (0..5u32).prop_map(Step::Credit),
        1 => (0..5u32).prop_map(Step::Penalize),
        4 => (0..3_000u16).prop_map(Step::Advance),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    let rate = (1..8u32, 1..4u32).prop_map(|(n, per)| Rate::new(n, Period::from_secs(per).unwrap()));
    let window = (500..4_000u64).prop_map(|millis| Period::from_micros(millis * 1_000).unwrap());
    prop_oneof![
        3 => (0..7u32, rate.clone()).prop_map(|(capacity, rate)| Limit::token_bucket(capacity, rate)),
        1 => (1..7u32).prop_map(|capacity| Limit::token_bucket(capacity, Rate::ZERO)),
        2 => (1..7u32, rate).prop_map(|(capacity, rate)| Limit::leaky_bucket(capacity, rate).unwrap()),
        2 => (1..7u32, window.clone()).prop_map(|(limit, window)| Limit::fixed_window(limit, window)),
        2 => (1..7u32, window.clone()).prop_map(|(limit, window)| Limit::sliding_window_log(limit, window).unwrap()),
        2 => (1..7u32, window).prop_map(|(limit, window)| Limit::sliding_window_counter(limit, window)),
    ]
}

/// The key and its line, by the rules and nothing else.
struct Model {
    plan: Plan,
    key: KeyState,
    now: Timestamp,
    line: Vec<Waiter>,
    /// Who was admitted and has yet to leave.
    leaving: Vec<(usize, u32, Timestamp)>,
    /// Who has ended, and when; `false` if in vain.
    ended: Vec<(usize, Timestamp, bool)>,
}

#[derive(Clone, Copy)]
struct Waiter {
    number: usize,
    cost: u32,
    deadline: Timestamp,
}

impl Model {
    /// Serves whoever fits, in order, and turns away who cannot be served in time.
    fn settle(&mut self) {
        loop {
            let (turns, _) = self.turns();
            let in_vain = turns.iter().position(Option::is_none);
            if let Some(index) = in_vain {
                let waiter = self.line.remove(index);
                self.ended.push((waiter.number, self.now, false));
                continue;
            }
            match self.line.first() {
                Some(head) if turns[0] == Some(self.now) => {
                    let (number, cost) = (head.number, head.cost);
                    let decision = self.plan.check(&mut self.key, self.now, cost.into());
                    self.leaving.push((number, cost, self.now.saturating_add(decision.delay())));
                    self.line.remove(0);
                }
                _ => break,
            }
        }
        let (now, ended) = (self.now, &mut self.ended);
        self.leaving.retain(|(number, _, leaves)| {
            if *leaves <= now {
                ended.push((*number, *leaves, true));
            }
            *leaves > now
        });
    }

    /// When each in line is admitted, if in time, and the key after that with the instant of the last.
    fn turns(&self) -> (Vec<Option<Timestamp>>, (KeyState, Timestamp)) {
        let (mut key, mut at) = (self.key.clone(), self.now);
        let turns = self.line.iter().map(|waiter| {
            let (mut then, mut after) = (at, key.clone());
            let mut decision = self.plan.check(&mut after, then, waiter.cost.into());
            while !decision.is_allowed() {
                then = later(&key, then, decision.retry_after()?);
                decision = self.plan.check(&mut after, then, waiter.cost.into());
            }
            if then.saturating_add(decision.delay()) > waiter.deadline {
                return None;
            }
            (key, at) = (after, then);
            Some(then)
        });
        let turns = turns.collect();
        (turns, (key, at))
    }

    fn advance(&mut self, to: Timestamp) {
        loop {
            let (turns, _) = self.turns();
            let leaves = self.leaving.iter().map(|(_, _, leaves)| *leaves);
            let next = turns.into_iter().flatten().next().into_iter().chain(leaves).min();
            let Some(next) = next.filter(|next| *next <= to) else { break };
            self.now = next;
            self.settle();
        }
        self.now = to;
        self.settle();
    }

    /// What a plain check is told: whether it is admitted, and else when to come back.
    fn check(&mut self, cost: u32) -> (bool, Option<Wait>) {
        if self.line.is_empty() || cost == 0 {
            let decision = self.plan.check(&mut self.key, self.now, cost.into());
            return (decision.is_allowed(), decision.retry_after());
        }
        let (_, (key, at)) = self.turns();
        let ahead = Wait::from_micros(u128::from(at.micros_since(self.now)));
        (false, self.plan.foresee(&key, at, cost.into()).retry_after().map(|wait| wait.plus(ahead)))
    }

    fn cancel(&mut self, number: usize) {
        self.line.retain(|waiter| waiter.number != number);
        if let Some(index) = self.leaving.iter().position(|(leaving, ..)| *leaving == number) {
            let (_, cost, _) = self.leaving.remove(index);
            self.plan.credit(&mut self.key, self.now, cost.into());
        }
        self.settle();
    }

    fn is_over(&self, number: usize) -> bool {
        self.ended.iter().any(|(ended, ..)| *ended == number)
    }
}

/// The instant a refused check is to be made again: its time does not go back behind the key's.
fn later(key: &KeyState, at: Timestamp, wait: Wait) -> Timestamp {
    at.max(tidegate_core::Cells::last(key)).saturating_add(wait)
}

struct Life {
    place: Place,
    model: Model,
    ids: Vec<Id>,
    spaces: bool,
}

impl Life {
    fn new(limits: &[Limit]) -> Self {
        let mut policy = Policy::builder("api");
        for (index, limit) in limits.iter().enumerate() {
            policy = policy.limit(format!("limit{index}"), *limit);
        }
        let place = place_of(policy.build().unwrap(), |builder| builder);
        let plan = Plan::new(limits.iter().copied()).unwrap();
        let key = KeyState::new(&plan);
        let now = place.limiter.now();
        let spaces = limits.iter().any(|limit| limit.algorithm() == tidegate::Algorithm::LeakyBucket);
        let model = Model { plan, key, now, line: Vec::new(), leaving: Vec::new(), ended: Vec::new() };
        Life { place, model, ids: Vec::new(), spaces }
    }

    fn go(&mut self, step: Step) {
        match step {
            Step::Acquire { cost, within } => self.acquire(cost, within),
            Step::Cancel(nth) => self.cancel(nth),
            Step::Check(cost) => {
                let decision = self.place.api.check("k", cost);
                let told = (decision.is_allowed(), decision.retry_after());
                assert_eq!(told, self.model.check(cost));
            }
            Step::CheckUpTo(max) if self.model.line.is_empty() || max == 0 => {
                let decision = self.place.api.check_up_to("k", max);
                let cost = Cost::new(max.into()).unwrap();
                let expected = self.model.plan.check_up_to(&mut self.model.key, self.model.now, cost);
                assert_eq!(decision.charged(), expected.charged());
            }
            Step::CheckUpTo(max) => {
                let decision = self.place.api.check_up_to("k", max);
                assert_eq!((decision.is_allowed(), decision.retry_after()), self.model.check(1));
            }
            Step::Credit(units) => {
                self.place.api.credit("k", units);
                self.adjust(units, |plan, key, now, units| plan.credit(key, now, units));
            }
            Step::Penalize(units) => {
                self.place.api.penalize("k", units);
                self.adjust(units, |plan, key, now, units| plan.penalize(key, now, units));
            }
            Step::Advance(millis) => {
                let to = self.model.now.saturating_add(Wait::from_micros(u128::from(millis) * 1_000));
                self.place.tasks.go_to(to);
                self.model.advance(to);
            }
        }
        self.compare();
    }

    fn acquire(&mut self, cost: u32, within: Option<u16>) {
        let timeout = within.map_or(Duration::MAX, |millis| Duration::from_millis(millis.into()));
        let deadline = self.model.now.saturating_add(timeout.into());
        self.ids.push(self.place.tasks.spawn(self.place.api.acquire_within("k", cost, timeout)));
        let waiter = Waiter { number: self.ids.len() - 1, cost, deadline };
        // A cost of nothing passes the line if it can.
        let peek = self.model.plan.peek(&self.model.key, self.model.now);
        let leaves = self.model.now.saturating_add(peek.delay());
        match cost == 0 && peek.is_allowed() {
            true if leaves > deadline => self.model.ended.push((waiter.number, self.model.now, false)),
            true => self.model.leaving.push((waiter.number, 0, leaves)),
            false => self.model.line.push(waiter),
        }
        self.model.settle();
    }

    fn cancel(&mut self, nth: usize) {
        let running: Vec<usize> =
            (0..self.ids.len()).filter(|n| self.place.tasks.is_waiting(self.ids[*n])).collect();
        let Some(number) = running.get(nth % running.len().max(1)) else { return };
        self.place.tasks.cancel(self.ids[*number]);
        self.model.cancel(*number);
    }

    fn adjust(&mut self, units: u32, act: impl Fn(&Plan, &mut KeyState, Timestamp, Units) -> Penalty) {
        let Model { plan, key, now, .. } = &mut self.model;
        act(plan, key, *now, units.into());
        self.place.tasks.run();
        self.model.settle();
    }

    fn compare(&self) {
        let tasks = &self.place.tasks;
        for (number, at, in_time) in &self.model.ended {
            let id = self.ids[*number];
            match tasks.result(id) {
                Some(Ok(_)) if *in_time => assert_eq!(tasks.admitted(id), Some(*at), "{number}"),
                Some(Err(_)) if !in_time => {}
                other => panic!("{number} got {other:?}, expected {in_time} at {at:?}"),
            }
            assert!(tasks.wakes(id) <= 1 + usize::from(self.spaces), "{number} was woken more than once");
        }
        for number in 0..self.ids.len() {
            let is_running = tasks.is_waiting(self.ids[number]);
            let is_waited_for = self.model.line.iter().any(|waiter| waiter.number == number)
                || self.model.leaving.iter().any(|(leaving, ..)| *leaving == number);
            assert_eq!(is_running, is_waited_for, "{number}, over: {}", self.model.is_over(number));
        }
        let (peek, expected) =
            (self.place.api.peek("k"), self.model.plan.peek(&self.model.key, self.model.now));
        let figures = |decision: &tidegate::Decision| -> Vec<_> {
            decision.limits().iter().map(tidegate::LimitDecision::figures).collect()
        };
        assert_eq!(figures(&peek), figures(&expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_line_lives_by_the_rules(
        limits in prop::collection::vec(limit(), 1..3),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut life = Life::new(&limits);
        steps.into_iter().for_each(|step| life.go(step));
        // In the end nobody is left: a century is enough for those who can be served at all.
        let to = life.model.now.saturating_add(Wait::from_micros(100 * 366 * 86_400_000_000));
        life.place.tasks.go_to(to);
        life.model.advance(to);
        life.compare();
        prop_assert!(life.ids.iter().all(|id| !life.place.tasks.is_waiting(*id)));
        prop_assert_eq!(life.place.clock.next_wake(), None);
    }

    #[test]
    fn no_span_admits_more_than_the_bucket_and_what_it_earns(
        capacity in 1..6u32,
        per_second in 1..6u32,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut life = Life::new(&[Limit::token_bucket(capacity, Rate::per_second(per_second))]);
        let mut charges: Vec<(u64, u64)> = Vec::new();
        for step in steps {
            if let Step::Credit(_) | Step::Check(_) | Step::CheckUpTo(_) = step {
                continue;
            }
            life.go(step);
        }
        let costs: Vec<u64> = life.ids.iter().filter_map(|id| Some(life.place.tasks.result(*id)?.as_ref().ok()?.charged())).collect();
        let instants = life.ids.iter().filter(|id| matches!(life.place.tasks.result(**id), Some(Ok(_))));
        let instants = instants.map(|id| life.place.tasks.admitted(*id).unwrap().as_micros());
        charges.extend(instants.zip(costs));
        charges.sort_unstable();
        for (first, (from, _)) in charges.iter().enumerate() {
            let mut sum = 0;
            for (at, cost) in &charges[first..] {
                sum += cost;
                let most = u64::from(capacity) * 1_000_000 + u64::from(per_second) * (at - from);
                prop_assert!(sum * 1_000_000 <= most, "{} in {} us", sum, at - from);
            }
        }
    }
}
