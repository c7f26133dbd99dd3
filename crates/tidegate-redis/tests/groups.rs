//! Checks decided as one, and changes in between, beside a limiter in memory: every field is equal.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate::clock::ManualClock;
use tidegate::store::Store;
use tidegate::{
    Asked, Cost, Decision, Limit, Limiter, MemoryStore, Period, Policy, PolicyHandle, PolicySet, Rate,
    Timestamp, Wait,
};
use tidegate_redis::RedisStore;
use tidegate_testkit_servers::{Program, Server};
use tokio::runtime::Runtime;

const POLICIES: [&str; 4] = ["bucket", "window", "log", "several"];

fn policies() -> PolicySet {
    let bucket = Limit::token_bucket(7, Rate::new(3, Period::from_secs(2).unwrap()));
    let window = Limit::fixed_window(9, Period::from_secs(5).unwrap());
    let log = Limit::sliding_window_log(6, Period::from_secs(3).unwrap()).unwrap();
    let counter = Limit::sliding_window_counter(8, Period::from_secs(4).unwrap());
    let leaky = Limit::leaky_bucket(5, Rate::per_second(4)).unwrap();
    let several =
        Policy::builder("several").limit("log", log).limit("counter", counter).limit("leaky", leaky);
    PolicySet::new([
        Policy::single("bucket", bucket).unwrap(),
        Policy::single("window", window).unwrap(),
        Policy::single("log", log).unwrap(),
        several.build().unwrap(),
    ])
    .unwrap()
}

/// One member of a group: which policy, which key, how much.
type Member = (usize, u8, u32);

#[derive(Debug, Clone)]
enum Step {
    All(Vec<Member>),
    Foresee(Vec<Member>),
    /// Each for itself: some lists hold a key twice, some do not.
    Batch(Vec<Member>),
    Penalize(Member),
    Credit(Member),
    Reset(Member),
}

fn steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let member = || (0..POLICIES.len(), 0..3_u8, 0..5_u32);
    let members = || prop::collection::vec(member(), 0..6);
    let step = prop_oneof![
        4 => members().prop_map(Step::All),
        2 => members().prop_map(Step::Foresee),
        4 => members().prop_map(Step::Batch),
        1 => member().prop_map(Step::Penalize),
        1 => member().prop_map(Step::Credit),
        1 => member().prop_map(Step::Reset),
    ];
    prop::collection::vec((-900_000..1_500_000_i64, step), 1..40)
}

struct Side<S: Store> {
    runtime: Runtime,
    limiter: Limiter<S>,
    handles: Vec<PolicyHandle<S>>,
}

impl<S: Store> Side<S> {
    fn new(limiter: Limiter<S>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handles = POLICIES.iter().map(|name| limiter.policy(name).unwrap()).collect();
        Side { runtime, limiter, handles }
    }

    fn take(&self, now: Timestamp, step: &Step) -> Vec<Decision> {
        match step {
            Step::All(members) => self.group(members, |asked| self.limiter.check_all_at(asked, now)),
            Step::Batch(members) => self.asked(members, |asked| {
                let answers = S::each_settled(self.limiter.check_batch_at(asked, now));
                self.runtime.block_on(answers).into_iter().map(Result::unwrap).collect()
            }),
            Step::Foresee(members) => self.group(members, |asked| self.limiter.foresee_all_at(asked, now)),
            Step::Penalize((policy, key, units)) => {
                vec![self.settle(self.handles[*policy].penalize_at([*key], *units, now)).after]
            }
            Step::Credit((policy, key, units)) => {
                vec![self.settle(self.handles[*policy].credit_at([*key], *units, now))]
            }
            Step::Reset((policy, key, _)) => {
                self.settle(self.handles[*policy].reset([*key]));
                Vec::new()
            }
        }
    }

    fn group(
        &self,
        members: &[Member],
        decide: impl FnOnce(&[Asked<'_, S>]) -> S::Answer<Vec<Decision>>,
    ) -> Vec<Decision> {
        self.asked(members, |asked| self.settle(decide(asked)))
    }

    fn asked(
        &self,
        members: &[Member],
        decide: impl FnOnce(&[Asked<'_, S>]) -> Vec<Decision>,
    ) -> Vec<Decision> {
        let keys: Vec<[u8; 1]> = members.iter().map(|member| [member.1]).collect();
        let asked = members.iter().zip(&keys).map(|((policy, _, cost), key)| Asked {
            policy: &self.handles[*policy],
            key,
            cost: Cost::from(*cost),
        });
        decide(&asked.collect::<Vec<_>>())
    }

    fn settle<T: Send + 'static>(&self, answer: S::Answer<T>) -> T {
        self.runtime.block_on(S::settled(answer)).unwrap()
    }
}

fn sides(server: &Server) -> (Side<MemoryStore>, Side<RedisStore>) {
    let memory = MemoryStore::builder().spare(std::time::Duration::MAX).build();
    let memory = Limiter::builder(policies()).store(memory).clock(ManualClock::default()).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(shared::store(&server.url()).open()).unwrap();
    let redis = Limiter::builder(policies()).store(store).clock(ManualClock::default()).build();
    let handles = POLICIES.iter().map(|name| redis.policy(name).unwrap()).collect();
    (Side::new(memory), Side { runtime, limiter: redis, handles })
}

#[test]
fn groups_and_changes_are_as_in_memory_to_the_last_field() {
    let server = Server::start(Program::Redis7);
    let allowed = Cell::new(0);
    let mut runner = TestRunner::new(Config::with_cases(150));
    let verdict = runner.run(&steps(), |steps| {
        let (memory, redis) = sides(&server);
        let mut now = 1_700_000_000_000_000_i64;
        for (later, step) in steps {
            now += later;
            let at = Timestamp::from_micros(now as u64).unwrap();
            let (expected, found) = (memory.take(at, &step), redis.take(at, &step));
            let words = |decisions: &[Decision]| decisions.iter().map(judged::answer).collect::<Vec<_>>();
            prop_assert_eq!(words(&found), words(&expected), "{:?} at {}", step, now);
            allowed.set(allowed.get() + found.iter().filter(|decision| decision.is_allowed()).count());
            for (policy, handle) in redis.handles.iter().enumerate() {
                for key in 0..3_u8 {
                    let found = redis.settle(handle.peek_at([key], at));
                    let expected = memory.handles[policy].peek_at([key], at);
                    prop_assert_eq!(judged::answer(&found), judged::answer(&expected));
                }
            }
        }
        Ok(())
    });
    verdict.unwrap();
    assert!(allowed.get() > 1_000, "only {} were admitted", allowed.get());
}

#[test]
fn two_of_one_record_have_to_fit_together() {
    let server = Server::start(Program::Valkey9);
    let (_, redis) = sides(&server);
    let now = Timestamp::EPOCH.saturating_add(Wait::from_micros(1_000_000));
    let pair = Step::All(vec![(0, 1, 4), (0, 1, 4)]);
    assert_eq!(redis.take(now, &pair).iter().filter(|it| it.is_allowed()).count(), 1);
    let pair = Step::All(vec![(0, 1, 4), (0, 1, 3)]);
    assert!(redis.take(now, &pair).iter().all(Decision::is_allowed));
}
