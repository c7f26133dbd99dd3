//! Sliding logs that are long enough to be kept in place, beside a limiter in memory: every field is equal, whatever
//! becomes of the ring.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate::clock::ManualClock;
use tidegate::{
    Asked, Cost, Decision, Limit, Limiter, MemoryStore, Period, Policy, PolicyHandle, Rate, Timestamp,
};
use tidegate_redis::RedisStore;
use tidegate_testkit_servers::{Program, Server};

const START: i64 = 1_700_000_000_000_000;

/// What a trace does, over and over: so many checks of this cost and so far apart, and then something else.
#[derive(Debug, Clone)]
struct Stretch {
    checks: u32,
    cost: u32,
    apart: i64,
    then: Then,
}

#[derive(Debug, Clone)]
enum Then {
    Wait(i64),
    UpTo(u32),
    Penalize(u32),
    Credit(u32),
    /// Twice the same key, as one.
    Together(u32),
    /// The same key so often, each for itself.
    Batch(u32),
    Reset,
}

/// Logs of some hundred entries, alone, in twos, and beside a bucket, by the microseconds of their windows.
fn policies() -> impl Strategy<Value = Vec<Limit>> {
    let log = (40..400_u32, 1_000..100_000_u64)
        .prop_map(|(limit, micros)| Limit::sliding_window_log(limit, Period::from_micros(micros).unwrap()));
    let bucket = (50..400_u32, 1..200_000_u32)
        .prop_map(|(capacity, rate)| Limit::token_bucket(capacity, Rate::per_second(rate)));
    let never = Just(Limit::token_bucket(100_000, Rate::ZERO));
    let short = Just(Limit::sliding_window_log(9, Period::from_micros(50).unwrap()).unwrap());
    let log = log.prop_map(Result::unwrap).boxed();
    prop_oneof![
        3 => log.clone().prop_map(|log| vec![log]),
        2 => (log.clone(), log.clone()).prop_map(|(one, two)| vec![one, two]),
        2 => (bucket, log.clone()).prop_map(|(bucket, log)| vec![bucket, log]),
        1 => (log.clone(), never).prop_map(|(log, never)| vec![log, never]),
        1 => (log.clone(), short).prop_map(|(log, short)| vec![log, short]),
    ]
}

fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let then = prop_oneof![
        3 => (-50_000..200_000_i64).prop_map(Then::Wait),
        1 => (0..300_u32).prop_map(Then::UpTo),
        1 => (0..300_u32).prop_map(Then::Penalize),
        1 => (0..300_u32).prop_map(Then::Credit),
        1 => (0..200_u32).prop_map(Then::Together),
        1 => (0..20_u32).prop_map(Then::Batch),
        1 => Just(Then::Reset),
    ];
    let stretch = (0..150_u32, 0..4_u32, 0..400_i64, then).prop_map(|(checks, cost, apart, then)| Stretch {
        checks,
        cost,
        apart,
        then,
    });
    prop::collection::vec(stretch, 1..8)
}

struct Sides {
    runtime: tokio::runtime::Runtime,
    memory: Limiter,
    redis: Limiter<RedisStore>,
}

impl Sides {
    fn of(limits: &[Limit], server: &Server) -> Self {
        let named = limits.iter().enumerate();
        let named = named.map(|(place, limit)| (place.to_string(), *limit));
        let policy = named.fold(Policy::builder("api"), |it, (name, limit)| it.limit(name, limit));
        let policy = policy.build().unwrap();
        let memory = MemoryStore::builder().spare(std::time::Duration::MAX).build();
        let memory = Limiter::builder(policy.clone()).store(memory).clock(ManualClock::default()).build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = runtime.block_on(shared::store(&server.url()).open()).unwrap();
        let redis = Limiter::builder(policy).store(store).clock(ManualClock::default()).build();
        Sides { runtime, memory, redis }
    }

    /// The answers of both: in memory, and in Redis.
    fn check(&self, cost: u32, at: Timestamp) -> [Vec<Decision>; 2] {
        let (memory, redis) = self.handles();
        [
            vec![memory.check_at("k", cost, at)],
            vec![self.runtime.block_on(redis.check_at("k", cost, at)).unwrap()],
        ]
    }

    fn handles(&self) -> (PolicyHandle, PolicyHandle<RedisStore>) {
        (self.memory.policy("api").unwrap(), self.redis.policy("api").unwrap())
    }

    fn then(&self, then: &Then, at: Timestamp) -> [Vec<Decision>; 2] {
        let (memory, redis) = self.handles();
        let wait = &self.runtime;
        match *then {
            Then::Wait(_) => self.check(0, at),
            Then::UpTo(most) => [
                vec![memory.check_up_to_at("k", most, at)],
                vec![wait.block_on(redis.check_up_to_at("k", most, at)).unwrap()],
            ],
            Then::Penalize(units) => {
                let memory = memory.penalize_at("k", units, at);
                let redis = wait.block_on(redis.penalize_at("k", units, at)).unwrap();
                assert_eq!(memory.cuts(), redis.cuts());
                [vec![memory.after], vec![redis.after]]
            }
            Then::Credit(units) => [
                vec![memory.credit_at("k", units, at)],
                vec![wait.block_on(redis.credit_at("k", units, at)).unwrap()],
            ],
            Then::Together(cost) => {
                let cost = Cost::from(cost);
                let asked = |policy| Asked { policy, key: b"k".as_slice(), cost };
                let memory = self.memory.check_all_at(&[asked(&memory), asked(&memory)], at);
                let asked = |policy| Asked { policy, key: b"k".as_slice(), cost };
                let redis = self.redis.check_all_at(&[asked(&redis), asked(&redis)], at);
                [memory, wait.block_on(redis).unwrap()]
            }
            Then::Batch(checks) => {
                let keys = vec!["k"; checks as usize];
                let told = wait.block_on(redis.check_batch_at(&keys, 1_u32, at));
                [memory.check_batch_at(&keys, 1_u32, at), told.into_iter().map(Result::unwrap).collect()]
            }
            Then::Reset => {
                memory.reset("k");
                wait.block_on(redis.reset("k")).unwrap();
                self.check(0, at)
            }
        }
    }
}

#[test]
fn long_logs_are_as_in_memory_to_the_last_field() {
    let cases = std::env::var("TIDEGATE_TRACES").map_or(60, |text| text.parse().unwrap());
    for (program, cases) in [(Program::Redis7, cases), (Program::Valkey9, cases / 2)] {
        let server = Server::start(program);
        let sizes = RefCell::new(BTreeSet::new());
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
        let verdict = runner.run(&(policies(), stretches()), |(limits, stretches)| {
            let sides = Sides::of(&limits, &server);
            let mut now = START;
            let equal = |now: i64, found: [Vec<Decision>; 2]| {
                let [memory, redis] = found.map(|found| found.iter().map(judged::answer).collect::<Vec<_>>());
                prop_assert_eq!(redis, memory, "at {}", now);
                Ok(())
            };
            for Stretch { checks, cost, apart, then } in stretches {
                for _ in 0..checks {
                    now += apart;
                    equal(now, sides.check(cost, at(now)))?;
                }
                if let Then::Wait(micros) = then {
                    now += micros;
                }
                equal(now, sides.then(&then, at(now)))?;
                sizes.borrow_mut().insert(size(&server));
            }
            server.command(&["FLUSHALL"]);
            Ok(())
        });
        verdict.unwrap();
        let sizes = sizes.into_inner();
        println!("{program:?}: records of up to {:?} bytes", sizes.last());
        assert!(sizes.last() > Some(&2_500), "{sizes:?}");
    }
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros as u64).unwrap()
}

/// Bytes of the one record there is; of none 0.
fn size(server: &Server) -> i64 {
    let names = server.command(&["KEYS", "*api*"]);
    let tidegate_testkit_servers::Reply::List(names) = names else { panic!("{names:?}") };
    assert!(names.len() <= 1, "one key for a client and policy, not {names:?}");
    names.into_iter().map(|name| server.command(&["STRLEN", &name.text()]).integer()).sum()
}
