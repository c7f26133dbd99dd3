//! The conformance suite put to the bare core, with its state kept plainly and kept packed.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use tidegate_core::{
    Algorithm, Cells, Cost, Decision, KeyState, Limit, Log, Outcome, Period, Plan, Rate, Since, State,
    Timestamp, Units,
};
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{self, Offers, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome as Ended};

/// A way to keep a key's state.
trait Keeping: Cells {
    fn of(state: &KeyState, plan: &Plan) -> Self;
}

impl Keeping for KeyState {
    fn of(state: &KeyState, _: &Plan) -> Self {
        state.clone()
    }
}

/// State as a store keeps it inline: two words for each limit, logs apart.
struct Packed {
    last: Timestamp,
    words: Vec<[u64; 2]>,
    logs: Vec<Log>,
}

impl Keeping for Packed {
    fn of(state: &KeyState, plan: &Plan) -> Self {
        let count = plan.limits().len();
        let mut packed =
            Packed { last: state.last(), words: vec![[0; 2]; count], logs: vec![Log::new(); count] };
        for (index, limit) in plan.limits().iter().enumerate() {
            match state.load(index, limit) {
                State::Log(log) => packed.logs[index] = log.clone(),
                other => packed.save(index, limit, other),
            }
        }
        packed
    }
}

impl Cells for Packed {
    fn last(&self) -> Timestamp {
        self.last
    }

    fn set_last(&mut self, last: Timestamp) {
        self.last = last;
    }

    fn load(&self, index: usize, limit: &Limit) -> State<'_> {
        limit.unpack(self.words[index]).unwrap_or(State::Log(&self.logs[index]))
    }

    fn save(&mut self, index: usize, limit: &Limit, state: State<'_>) {
        self.words[index] = limit.pack(state);
    }

    fn log_mut(&mut self, index: usize) -> &mut Log {
        &mut self.logs[index]
    }
}

struct Core<K> {
    plan: Option<Plan>,
    keys: HashMap<Vec<u8>, K>,
    offers: Offers,
}

impl<K: Keeping> Core<K> {
    fn new() -> Self {
        Core { plan: None, keys: HashMap::new(), offers: Offers::default() }
    }

    fn key(&mut self, key: &[u8]) -> (&Plan, &mut K) {
        let plan = self.plan.as_ref().unwrap();
        let fresh = || K::of(&KeyState::new(plan), plan);
        (plan, self.keys.entry(key.to_vec()).or_insert_with(fresh))
    }
}

fn plan(limits: &[LimitSpec]) -> Result<Plan, String> {
    let limits: Result<Vec<Limit>, String> = limits.iter().map(limit).collect();
    Plan::new(limits?).map_err(|e| e.to_string())
}

fn limit(spec: &LimitSpec) -> Result<Limit, String> {
    let capacity = Units::new(spec.capacity).map_err(|e| e.to_string())?;
    let period = Period::from_micros(spec.period_us).map_err(|e| e.to_string())?;
    let rate = Rate::new(Units::new(spec.amount).map_err(|e| e.to_string())?, period);
    let limit = match spec.kind {
        Kind::TokenBucket => Ok(Limit::token_bucket(capacity, rate)),
        Kind::Gcra => Ok(Limit::gcra(rate, capacity)),
        Kind::LeakyBucket => Limit::leaky_bucket(capacity, rate),
        Kind::FixedWindow => Ok(Limit::fixed_window(capacity, period)),
        Kind::SlidingWindowLog => Limit::sliding_window_log(capacity, period),
        Kind::SlidingWindowCounter => Ok(Limit::sliding_window_counter(capacity, period)),
    };
    let limit = limit.map_err(|e| e.to_string())?;
    match spec.debt {
        None => Ok(limit),
        Some(debt) => {
            limit.with_debt(Units::new(debt).map_err(|e| e.to_string())?).map_err(|e| e.to_string())
        }
    }
}

fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(us).unwrap()
}

fn answer(decision: &Decision) -> SubjectAnswer {
    let outcome = match decision.outcome() {
        Outcome::Allowed => Ended::Allowed,
        Outcome::Denied => Ended::Denied,
        Outcome::CostExceedsCapacity => Ended::CostExceedsCapacity,
        other => panic!("the core never answers {other}"),
    };
    let figures = |limit: &tidegate_core::LimitDecision| {
        let figures = limit.figures();
        OracleFigures {
            limit: figures.limit,
            remaining: figures.remaining,
            retry_after_us: figures.retry_after.map(|wait| wait.as_micros()),
            reset_after_us: figures.reset_after.map(|wait| wait.as_micros()),
            delay_us: figures.delay.as_micros(),
            grows_after_us: figures.grows_after.map(|wait| wait.as_micros()),
        }
    };
    let binding = decision.binding().figures();
    let headline = OracleFigures {
        limit: decision.limit().get(),
        remaining: decision.remaining(),
        retry_after_us: decision.retry_after().map(|wait| wait.as_micros()),
        reset_after_us: decision.reset_after().map(|wait| wait.as_micros()),
        delay_us: decision.delay().as_micros(),
        grows_after_us: binding.grows_after.map(|wait| wait.as_micros()),
    };
    let limits = decision.limits().iter().map(figures).collect();
    SubjectAnswer { outcome, bound_by: decision.bound_by(), headline, limits, headers: None }
}

impl<K: Keeping> Subject for Core<K> {
    fn offers(&self) -> Offers {
        self.offers
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        self.plan = Some(plan(limits)?);
        self.keys.clear();
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let (plan, state) = self.key(key);
        let foreseen = plan.foresee(state, at(at_us), Cost::new(cost).unwrap());
        let decision = plan.check(state, at(at_us), Cost::new(cost).unwrap());
        assert_eq!(foreseen.outcome(), decision.outcome(), "what is foreseen is what happens");
        let charged = if decision.is_allowed() { cost } else { 0 };
        assert_eq!(decision.charged(), charged);
        answer(&decision)
    }

    fn check_up_to(&mut self, at_us: u64, key: &[u8], max: u64) -> (u64, SubjectAnswer) {
        let (plan, state) = self.key(key);
        let decision = plan.check_up_to(state, at(at_us), Cost::new(max).unwrap());
        (decision.charged(), answer(&decision))
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        let (plan, state) = self.key(key);
        let credited = plan.credit(state, at(at_us), Units::new(n).unwrap());
        assert!(credited.cuts().iter().all(|cut| *cut == 0));
        assert_eq!(answer(&credited.after), answer(&plan.peek(state, at(at_us))));
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        let (plan, state) = self.key(key);
        let penalty = plan.penalize(state, at(at_us), Units::new(n).unwrap());
        assert_eq!(answer(&penalty.after), answer(&plan.peek(state, at(at_us))));
        penalty.cuts().to_vec()
    }

    fn reset(&mut self, _at_us: u64, key: &[u8]) {
        self.keys.remove(key);
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        let new = plan(limits).unwrap();
        let old = self.plan.replace(new.clone()).unwrap();
        if new == old {
            return;
        }
        let origin: Vec<Option<usize>> = (0..new.limits().len())
            .map(|place| Some(place).filter(|place| *place < old.limits().len()))
            .collect();
        for state in self.keys.values_mut() {
            *state = K::of(&new.carry_over(&old, state, &origin, Since::Known(at(since_us))), &new);
        }
    }
}

#[test]
fn worked_examples() {
    conformance::worked_examples(&mut Core::<KeyState>::new());
    conformance::worked_examples(&mut Core::<Packed>::new());
}

#[test]
fn cases() {
    conformance::cases(&mut Core::<KeyState>::new());
    conformance::cases(&mut Core::<Packed>::new());
}

#[test]
fn random_traces_under_one_policy() {
    let offers = Offers { reload: false, ..Offers::default() };
    conformance::random_traces(&mut Core::<KeyState> { offers, ..Core::new() }, 1_000);
    conformance::random_traces(&mut Core::<Packed> { offers, ..Core::new() }, 1_000);
}

#[test]
fn random_traces_with_reloads() {
    conformance::random_traces(&mut Core::<KeyState>::new(), 2_000);
    conformance::random_traces(&mut Core::<Packed>::new(), 1_000);
}

#[test]
fn waits_are_honest() {
    conformance::edges(&mut Core::<KeyState>::new(), 1_000);
}

#[test]
fn bounds_hold() {
    conformance::bound(&mut Core::<KeyState>::new(), 4_000);
}

#[test]
fn every_algorithm_is_put_to_the_test() {
    let names: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let kinds: Vec<String> = Kind::ALL
        .iter()
        .map(|kind| LimitSpec {
            name: String::new(),
            kind: *kind,
            capacity: 1,
            amount: 1,
            period_us: 1,
            debt: None,
        })
        .map(|spec| limit(&spec).unwrap().algorithm().name().to_owned())
        .collect();
    assert_eq!(kinds, names);
}
