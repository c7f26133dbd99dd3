//! A limiter over the memory store as a subject of the conformance suite.
#![allow(dead_code, reason = "each test program uses its part")]

use tidegate::clock::ManualClock;
use tidegate::{
    Cost, Decision, KeyPattern, Limit, LimitDecision, Limiter, MemoryStore, MemoryStoreBuilder, Outcome,
    Period, Policy, PolicyBuilder, PolicyHandle, PolicySet, Rate, Timestamp, Units,
};
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{Offers, StepsBack, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome as Ended};

/// A stamp of so many microseconds.
pub fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(us).unwrap()
}

/// The limit a case speaks of, or why there is none such.
pub fn limit(spec: &LimitSpec) -> Result<Limit, String> {
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
    let Some(debt) = spec.debt else { return Ok(limit) };
    limit.with_debt(Units::new(debt).map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

/// The policy of this name that a case speaks of.
pub fn policy(name: &str, limits: &[LimitSpec]) -> Result<Policy, String> {
    builder(name, limits)?.build().map_err(|e| e.to_string())
}

/// The same, with something to add.
pub fn builder(name: &str, limits: &[LimitSpec]) -> Result<PolicyBuilder, String> {
    limits.iter().try_fold(Policy::builder(name), |builder, spec| Ok(builder.limit(&spec.name, limit(spec)?)))
}

/// A decision in the suite's words.
pub fn answer(decision: &Decision) -> SubjectAnswer {
    let outcome = match decision.outcome() {
        Outcome::Allowed => Ended::Allowed,
        Outcome::Denied => Ended::Denied,
        Outcome::CostExceedsCapacity => Ended::CostExceedsCapacity,
        other => panic!("there is room for every key, and yet {other}"),
    };
    let headline = OracleFigures {
        limit: decision.limit().get(),
        remaining: decision.remaining(),
        retry_after_us: decision.retry_after().map(|wait| wait.as_micros()),
        reset_after_us: decision.reset_after().map(|wait| wait.as_micros()),
        delay_us: decision.delay().as_micros(),
        grows_after_us: decision.binding().grows_after().map(|wait| wait.as_micros()),
    };
    let limits = decision.limits().iter().map(figures).collect();
    SubjectAnswer { outcome, bound_by: decision.bound_by(), headline, limits, headers: None }
}

fn figures(limit: &LimitDecision) -> OracleFigures {
    let figures = limit.figures();
    OracleFigures {
        limit: figures.limit,
        remaining: figures.remaining,
        retry_after_us: figures.retry_after.map(|wait| wait.as_micros()),
        reset_after_us: figures.reset_after.map(|wait| wait.as_micros()),
        delay_us: figures.delay.as_micros(),
        grows_after_us: figures.grows_after.map(|wait| wait.as_micros()),
    }
}

/// A limiter with one policy under judgement, and others that must not be in its way.
pub struct Memory {
    store: MemoryStoreBuilder,
    steps_back: StepsBack,
    beside: Beside,
    reloads: u32,
    running: Option<Running>,
}

/// What else goes on in the limiter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Before each step other keys and other policies are busy, and fresh keys come and go.
    Traffic,
    /// The policy's own figures let nothing pass: those under judgement are overrides, for all keys or for some
    /// of them, and differently so after each reload.
    Overridden,
}

struct Running {
    limiter: Limiter,
    clock: ManualClock,
    judged: PolicyHandle,
    fresh: u64,
}

impl Memory {
    /// A limiter over a store as it comes: it drops keys that are as new, so stamps may be a second late.
    pub fn new() -> Self {
        Self::over(MemoryStore::builder().secret(1), StepsBack::AtMost(1_000_000))
    }

    /// A limiter over such a store.
    pub fn over(store: MemoryStoreBuilder, steps_back: StepsBack) -> Self {
        Memory { store, steps_back, beside: Beside::Nothing, reloads: 0, running: None }
    }

    /// The same, with other traffic in the same store.
    pub fn beside(self, beside: Beside) -> Self {
        Memory { beside, ..self }
    }

    /// The limiter, for a look inside.
    pub fn limiter(&self) -> &Limiter {
        &self.running.as_ref().unwrap().limiter
    }

    fn running(&mut self, at_us: u64) -> &mut Running {
        let beside = self.beside;
        let running = self.running.as_mut().unwrap();
        running.clock.set(at(at_us));
        if beside == Beside::Traffic {
            running.traffic(at_us);
        }
        running
    }

    fn policies(&self, limits: &[LimitSpec]) -> Result<PolicySet, String> {
        let judged = policy("judged", limits)?;
        match self.beside {
            Beside::Nothing => Ok(judged.into()),
            Beside::Overridden => Ok(self.overridden(limits)?.into()),
            Beside::Traffic => Self::with_others(judged, limits),
        }
    }

    fn overridden(&self, limits: &[LimitSpec]) -> Result<Policy, String> {
        let blocked: Vec<_> = limits.iter().map(|it| LimitSpec { capacity: 0, ..it.clone() }).collect();
        let figures = |spec: &LimitSpec| Ok((spec.name.clone(), limit(spec)?));
        let figures: Vec<(String, Limit)> = limits.iter().map(figures).collect::<Result<_, String>>()?;
        let named = [KeyPattern::exact("a"), KeyPattern::prefix("a"), KeyPattern::exact("b")];
        // Which of them there are changes with each reload.
        let named = named.into_iter().enumerate().filter(|(bit, _)| self.reloads >> bit & 1 == 1);
        let builder = builder("judged", &blocked)?.override_for(KeyPattern::prefix(""), figures.clone());
        let builder =
            named.fold(builder, |builder, (_, pattern)| builder.override_for(pattern, figures.clone()));
        builder.build().map_err(|e| e.to_string())
    }

    fn with_others(judged: Policy, limits: &[LimitSpec]) -> Result<PolicySet, String> {
        let other = [
            ("bucket", Limit::token_bucket(3, Rate::per_second(2))),
            ("log", Limit::sliding_window_log(5, Period::SECOND).unwrap()),
        ];
        let other = other.into_iter().fold(Policy::builder("other"), |b, (name, limit)| b.limit(name, limit));
        let others = [policy("twin", limits)?, other.build().unwrap(), judged];
        Ok(PolicySet::new(others).unwrap())
    }
}

impl Running {
    /// Keys that come once and are gone, the judged keys under a twin of the judged policy and under another.
    fn traffic(&mut self, at_us: u64) {
        for name in ["judged", "twin", "other"] {
            let policy = self.limiter.policy(name).unwrap();
            for _ in 0..3 {
                self.fresh += 1;
                policy.check_at(self.fresh.to_be_bytes(), Cost::ONE, at(at_us));
            }
        }
        for name in ["twin", "other"] {
            let policy = self.limiter.policy(name).unwrap();
            for key in ["a", "b", ""] {
                policy.check_at(key, Cost::ONE, at(at_us));
                policy.penalize_at(key, 2, at(at_us));
            }
        }
    }
}

impl Subject for Memory {
    fn offers(&self) -> Offers {
        Offers { steps_back: self.steps_back, ..Offers::default() }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        self.reloads = 0;
        let clock = ManualClock::default();
        let store = self.store.clone().build();
        let limiter = Limiter::builder(self.policies(limits)?).store(store).clock(clock.clone()).build();
        let judged = limiter.policy("judged").unwrap();
        self.running = Some(Running { limiter, clock, judged, fresh: 0 });
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        answer(&self.running(at_us).judged.check_at(key, Cost::new(cost).unwrap(), at(at_us)))
    }

    fn check_up_to(&mut self, at_us: u64, key: &[u8], max: u64) -> (u64, SubjectAnswer) {
        let decision = self.running(at_us).judged.check_up_to_at(key, Cost::new(max).unwrap(), at(at_us));
        (decision.charged(), answer(&decision))
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        let judged = &self.running(at_us).judged;
        let after = judged.credit_at(key, Units::new(n).unwrap(), at(at_us));
        assert_eq!(answer(&after), answer(&judged.peek_at(key, at(at_us))));
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        let judged = &self.running(at_us).judged;
        let penalty = judged.penalize_at(key, Units::new(n).unwrap(), at(at_us));
        assert_eq!(answer(&penalty.after), answer(&judged.peek_at(key, at(at_us))));
        penalty.cuts().to_vec()
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        self.running(at_us).judged.reset(key);
    }

    fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        self.reloads += 1;
        let policies = self.policies(limits).unwrap();
        self.running(since_us).limiter.reload(policies).unwrap();
    }
}
