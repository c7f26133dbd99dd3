//! Figures that come with each check: beside a store in memory, to the last field; and what only a shared store has.
#![allow(clippy::unwrap_used)]

#[path = "../../tidegate/tests/judged/mod.rs"]
mod judged;
mod shared;

use std::cell::Cell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate::clock::ManualClock;
use tidegate::store::{AdHoc, Together};
use tidegate::{
    AdHocCheck, AdHocLimit, AdHocSpace, Asked, Cost, Decision, Limit, Limiter, MemoryStore, Period, Policy,
    PolicySet, Rate, Timestamp, Units,
};
use tidegate_redis::{OnStoreError, RedisStore};
use tidegate_testkit_servers::{Cluster, Program, Server};
use tokio::runtime::Runtime;

const SPACES: [AdHocSpace; 2] = [AdHocSpace::new("throttle"), AdHocSpace::new("override")];
const NOW: Timestamp = Timestamp::saturating_from_micros(1_800_000_000_000_000);

/// One of a few keys in one of the spaces.
type Key = (usize, u8);
/// Which figures, which key, how much.
type Check = (usize, Key, u64);

#[derive(Debug, Clone)]
enum Step {
    Each(Vec<Check>),
    Credit(Check),
    Forget(Vec<Key>),
    /// With checks under a policy, as (key, cost).
    Group(Vec<(u8, u32)>, Vec<Check>),
    Foresee(Vec<(u8, u32)>, Vec<Check>),
}

fn figures() -> impl Strategy<Value = AdHocLimit> {
    let units = || prop_oneof![4 => 1..12_u64, 1 => Just(1_000_000_000_000)];
    let per = prop_oneof![
        1..100_u64,
        Just(1_000_000),
        Just(60_000_000),
        Just(7_000_003),
        Just(Period::MAX.as_micros())
    ];
    (units(), units(), per).prop_map(|(burst, amount, per)| {
        let units = |units| Units::new(units).unwrap();
        AdHocLimit::gcra(Rate::new(units(amount), Period::from_micros(per).unwrap()), units(burst))
    })
}

fn steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let key = || (0..SPACES.len(), 0..2_u8);
    let cost = prop_oneof![8 => 0..5_u64, 1 => Just(1_000_000_000_000)];
    let check = (0..4_usize, key(), cost);
    let checks = |most| prop::collection::vec(check.clone(), 0..most);
    let plain = || prop::collection::vec((0..2_u8, 0..4_u32), 0..3);
    let step = prop_oneof![
        4 => checks(8).prop_map(Step::Each),
        2 => check.clone().prop_map(Step::Credit),
        1 => prop::collection::vec(key(), 0..3).prop_map(Step::Forget),
        3 => (plain(), checks(4)).prop_map(|(plain, checks)| Step::Group(plain, checks)),
        1 => (plain(), checks(4)).prop_map(|(plain, checks)| Step::Foresee(plain, checks)),
    ];
    prop::collection::vec((-900_000..3_000_000_i64, step), 1..30)
}

struct Side<S: AdHoc> {
    runtime: Runtime,
    limiter: Limiter<S>,
}

impl<S: AdHoc> Side<S> {
    fn over(runtime: Runtime, store: S) -> Self {
        let limit = Limit::token_bucket(7, Rate::new(3, Period::from_secs(2).unwrap()));
        let policy = Policy::single("plain", limit).unwrap();
        let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
        Side { runtime, limiter }
    }

    fn take(&self, limits: &[AdHocLimit; 4], now: Timestamp, step: &Step) -> (u64, Vec<Decision>) {
        let store = self.limiter.store();
        match step {
            Step::Each(checks) => (0, self.brought(limits, checks, |checks| self.each(now, checks))),
            Step::Credit(check) => {
                let units = Units::new(check.2).unwrap();
                let credit =
                    |checks: &[AdHocCheck<'_>]| vec![self.settle(store.credit_ad_hoc(now, checks[0], units))];
                (0, self.brought(limits, std::slice::from_ref(check), credit))
            }
            Step::Forget(keys) => {
                let of = |space| keys.iter().filter(move |key| key.0 == space).map(|key| [key.1]);
                let forget = |space: usize| {
                    let keys: Vec<[u8; 1]> = of(space).collect();
                    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                    self.settle(store.forget_ad_hoc(SPACES[space], &keys))
                };
                ((0..SPACES.len()).map(forget).sum(), Vec::new())
            }
            Step::Group(plain, checks) => (0, self.group(limits, plain, checks, now, true)),
            Step::Foresee(plain, checks) => (0, self.group(limits, plain, checks, now, false)),
        }
    }

    fn each(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> Vec<Decision> {
        let answers = S::each_settled(self.limiter.store().check_ad_hoc(now, checks));
        self.runtime.block_on(answers).into_iter().map(Result::unwrap).collect()
    }

    fn group(
        &self,
        limits: &[AdHocLimit; 4],
        plain: &[(u8, u32)],
        checks: &[Check],
        now: Timestamp,
        charge: bool,
    ) -> Vec<Decision> {
        let handle = self.limiter.policy("plain").unwrap();
        let keys: Vec<[u8; 1]> = plain.iter().map(|(key, _)| [*key]).collect();
        let asked = plain.iter().zip(&keys);
        let asked = asked.map(|((_, cost), key)| Asked { policy: &handle, key, cost: Cost::from(*cost) });
        let asked: Vec<_> = asked.collect();
        self.brought(limits, checks, |checks| {
            let Together { policies, ad_hoc } = self.settle(match charge {
                true => self.limiter.check_all_with_at(&asked, checks, now),
                false => self.limiter.foresee_all_with_at(&asked, checks, now),
            });
            [policies, ad_hoc].concat()
        })
    }

    fn brought(
        &self,
        limits: &[AdHocLimit; 4],
        checks: &[Check],
        decide: impl FnOnce(&[AdHocCheck<'_>]) -> Vec<Decision>,
    ) -> Vec<Decision> {
        let keys: Vec<[u8; 1]> = checks.iter().map(|(_, key, _)| [key.1]).collect();
        let checks = checks.iter().zip(&keys).map(|((figures, (space, _), cost), key)| AdHocCheck {
            space: SPACES[*space],
            key,
            limit: &limits[*figures],
            cost: Cost::new(*cost).unwrap(),
        });
        decide(&checks.collect::<Vec<_>>())
    }

    fn settle<T: Send + 'static>(&self, answer: S::Answer<T>) -> T {
        self.runtime.block_on(S::settled(answer)).unwrap()
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn words(decisions: &[Decision]) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    decisions.iter().map(judged::answer).collect()
}

/// Plays random steps over both, and looks at every key under all figures after each.
fn duel(url: &str, cases: u32, partition: Option<&str>) -> u64 {
    let allowed = Cell::new(0);
    let mut runner = TestRunner::new(Config::with_cases(cases));
    let limits = prop::array::uniform4(figures());
    let verdict = runner.run(&(limits, steps()), |(limits, steps)| {
        let memory = Side::over(runtime(), MemoryStore::builder().spare(Duration::MAX).build());
        let of_redis = runtime();
        let builder = partition.into_iter().fold(shared::store(url), |builder, name| builder.partition(name));
        let store = of_redis.block_on(builder.open()).unwrap();
        let redis = Side::over(of_redis, store);
        let mut now = NOW.as_micros() as i64;
        for (later, step) in steps {
            now += later;
            let at = Timestamp::from_micros(now as u64).unwrap();
            let (expected, found) = (memory.take(&limits, at, &step), redis.take(&limits, at, &step));
            prop_assert_eq!(words(&found.1), words(&expected.1), "{:?} at {}", &step, now);
            prop_assert!(matches!(step, Step::Forget(_)) || found.0 == expected.0);
            allowed
                .set(allowed.get() + found.1.iter().filter(|decision| decision.is_allowed()).count() as u64);
            let look = (0..16).map(|look| (look % 4, (look / 4 % 2, (look / 8) as u8), 0)).collect();
            let look = Step::Each(look);
            let (expected, found) = (memory.take(&limits, at, &look), redis.take(&limits, at, &look));
            prop_assert_eq!(words(&found.1), words(&expected.1), "after {:?} at {}", &step, now);
        }
        Ok(())
    });
    verdict.unwrap();
    allowed.get()
}

#[test]
fn every_answer_is_as_in_memory_to_the_last_field() {
    let server = Server::start(Program::Redis7);
    let allowed = duel(&server.url(), 150, None);
    assert!(allowed > 2_000, "only {allowed} were admitted");
}

#[test]
fn on_valkey_too() {
    duel(&Server::start(Program::Valkey9).url(), 40, None);
}

#[test]
fn in_the_slot_of_a_partition_of_a_cluster_too() {
    let cluster = Cluster::start(Program::Redis8, 3, 0);
    duel(&cluster.url(), 30, Some("all"));
}

fn wide(burst: u32) -> AdHocLimit {
    AdHocLimit::gcra(Rate::per_hour(1), Units::from(burst))
}

fn one<'a>(key: &'a [u8], limit: &'a AdHocLimit, cost: u32) -> AdHocCheck<'a> {
    AdHocCheck { space: SPACES[0], key, limit, cost: Cost::from(cost) }
}

#[tokio::test]
async fn a_record_a_key_that_no_policy_is_called_and_that_goes_when_it_is_as_new() {
    let server = Server::start(Program::Redis7);
    let store = RedisStore::builder(server.url()).open().await.unwrap();
    // Policies of the very names that spaces have.
    let of = |name: &str| Policy::single(name, Limit::token_bucket(5, Rate::ZERO)).unwrap();
    let policies = PolicySet::new([of("throttle"), of("~throttle"), of("%7ethrottle")]).unwrap();
    let limiter = Limiter::builder(policies).store(store.clone()).clock(ManualClock::new(NOW)).build();
    let limit = AdHocLimit::gcra(Rate::per_second(10), Units::from(100_u32));
    for name in ["throttle", "~throttle", "%7ethrottle"] {
        limiter.policy(name).unwrap().check("k", 5).await.unwrap();
    }
    for _ in 0..3 {
        assert!(store.check_ad_hoc(NOW, &[one(b"k", &limit, 10)]).await.iter().all(Result::is_ok));
    }
    assert_eq!(server.command(&["DBSIZE"]).integer(), 4);
    let life = server.command(&["PTTL", "tg1:{kk}:~throttle"]).integer();
    assert!((3_000..=4_001).contains(&life), "three seconds to be full, and one to spare: {life}");
    // Looks, refusals and what is given back to keys that nobody knows keep nothing.
    assert!(
        store
            .check_ad_hoc(NOW, &[one(b"l", &limit, 0), one(b"m", &limit, 101)])
            .await
            .iter()
            .all(Result::is_ok)
    );
    let after = store.credit_ad_hoc(NOW, one(b"n", &limit, 0), Units::from(5_u32)).await.unwrap();
    assert_eq!(after.remaining(), 100);
    assert_eq!(server.command(&["DBSIZE"]).integer(), 4);
    assert_eq!(store.forget_ad_hoc(SPACES[0], &[b"k", b"l"]).await.unwrap(), 1);
    assert_eq!(store.forget_ad_hoc(SPACES[1], &[b"k"]).await.unwrap(), 0);
    for name in ["throttle", "~throttle", "%7ethrottle"] {
        assert_eq!(limiter.policy(name).unwrap().peek("k").await.unwrap().remaining(), 0, "{name}");
    }
}

#[tokio::test]
async fn instances_have_one_bucket_between_them() {
    let server = Server::start(Program::Redis7);
    let limit = wide(50);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let store = RedisStore::builder(server.url()).timeout(Duration::from_secs(20)).open().await.unwrap();
        for _ in 0..40 {
            let (store, limit) = (store.clone(), limit.clone());
            tasks.push(tokio::spawn(async move {
                store.check_ad_hoc(NOW, &[one(b"k", &limit, 1)]).await[0].as_ref().unwrap().is_allowed()
            }));
        }
    }
    let mut passed = 0;
    for task in tasks {
        passed += usize::from(task.await.unwrap());
    }
    assert_eq!(passed, 50);
}

#[tokio::test]
async fn groups_of_several_instances_charge_all_or_nothing() {
    let server = Server::start(Program::Redis7);
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let store = RedisStore::builder(server.url()).timeout(Duration::from_secs(20)).open().await.unwrap();
        let policy = Policy::single("plain", Limit::token_bucket(60, Rate::ZERO)).unwrap();
        let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
        tasks.push(tokio::spawn(async move {
            let (plain, limits) = (limiter.policy("plain").unwrap(), [wide(40), wide(90)]);
            let mut passed = 0;
            for _ in 0..25 {
                let asked = Asked { policy: &plain, key: b"k", cost: Cost::ONE };
                let brought = [one(b"tight", &limits[0], 1), one(b"wide", &limits[1], 1)];
                let decided = limiter.check_all_with_at(&[asked], &brought, NOW).await.unwrap();
                passed += usize::from(decided.is_allowed());
            }
            (limiter, passed)
        }));
    }
    let (mut passed, mut last) = (0, None);
    for task in tasks {
        let (limiter, of_one) = task.await.unwrap();
        passed += of_one;
        last = Some(limiter);
    }
    assert_eq!(passed, 40);
    let limiter = last.unwrap();
    assert_eq!(limiter.policy("plain").unwrap().peek("k").await.unwrap().remaining(), 20);
    let look = limiter.store().check_ad_hoc(NOW, &[one(b"wide", &wide(90), 0)]).await;
    assert_eq!(look[0].as_ref().unwrap().remaining(), 50);
}

/// Scripts that the server has run.
fn calls(server: &Server) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).text();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap_or("0");
    line.split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn checks_under_the_same_figures_share_a_call_and_any_number_of_figures_is_decided_in_order() {
    let server = Server::start(Program::Redis7);
    let store = RedisStore::builder(server.url()).timeout(Duration::from_secs(20)).open().await.unwrap();
    let limit = wide(50);
    let keys: Vec<[u8; 1]> = (0..60).map(|key| [key % 30]).collect();
    let checks: Vec<_> = keys.iter().map(|key| one(key, &limit, 1)).collect();
    // The script is told the first time.
    assert!(
        store
            .check_ad_hoc(NOW, &[one(b"k", &limit, 0), one(b"k", &limit, 0)])
            .await
            .iter()
            .all(Result::is_ok)
    );
    let before = calls(&server);
    let decided = store.check_ad_hoc(NOW, &checks).await;
    assert_eq!(calls(&server) - before, 1);
    let left: Vec<u64> = decided.iter().map(|it| it.as_ref().unwrap().remaining()).collect();
    assert_eq!(left, [[49; 30], [48; 30]].concat());
    // One key under two sets of figures by turns, a look after each.
    let two = [wide(20), wide(30)];
    let checks: Vec<_> =
        (0..80).map(|turn| one(b"k", &two[turn / 2 % 2], u32::from(turn % 2 == 0))).collect();
    let decided = store.check_ad_hoc(NOW, &checks).await;
    let left: Vec<u64> = decided.iter().map(|it| it.as_ref().unwrap().remaining()).collect();
    let right: Vec<u64> = (0..80).map(|turn| 19_u64.saturating_sub(turn / 2)).collect();
    assert_eq!(left, right);
}

#[tokio::test]
async fn an_outage_is_answered_as_the_default_says() {
    let mut server = Server::start(Program::Redis7);
    let limit = wide(12);
    let mut stores = Vec::new();
    for answer in [OnStoreError::Allow, OnStoreError::Deny, OnStoreError::Local] {
        let builder =
            RedisStore::builder(server.url()).timeout(Duration::from_secs(1)).on_store_error(answer);
        // A policy of the space's name has nothing to do with it.
        let builder = builder.on_store_error_of("throttle", OnStoreError::Deny);
        let store = builder.replica("1/3".parse().unwrap()).open().await.unwrap();
        let decided = store.check_ad_hoc(NOW, &[one(answer.as_str().as_bytes(), &limit, 3)]).await;
        assert_eq!(decided[0].as_ref().unwrap().remaining(), 9);
        stores.push(store);
    }
    server.kill();
    let check = async |store: &RedisStore, key: &[u8]| {
        store.check_ad_hoc(NOW, &[one(key, &limit, 1)]).await.remove(0)
    };
    let allowed = check(&stores[0], b"allow").await.unwrap();
    assert!(allowed.is_allowed() && allowed.is_degraded() && !allowed.is_metered());
    assert!(check(&stores[1], b"deny").await.is_err());
    for (key, share) in [(&b"local"[..], 3), (b"new", 4)] {
        let mut passed = 0;
        for _ in 0..10 {
            let decision = check(&stores[2], key).await.unwrap();
            assert!(decision.is_degraded());
            passed += u32::from(decision.is_allowed());
        }
        assert_eq!(passed, share, "a third of what was left");
    }
}

#[tokio::test]
async fn single_keys_of_a_cluster_need_no_partition_and_groups_do() {
    let cluster = Cluster::start(Program::Valkey9, 3, 0);
    for partition in [None, Some("all")] {
        let builder = RedisStore::builder(cluster.url()).timeout(Duration::from_secs(10));
        let builder = partition.into_iter().fold(builder, |builder, name| builder.partition(name));
        let store = builder.on_store_error(OnStoreError::Deny).open().await.unwrap();
        let limit = wide(10);
        let keys: Vec<[u8; 1]> = (0..50).map(|key| [key]).collect();
        let checks: Vec<_> = keys.iter().map(|key| one(key, &limit, 2)).collect();
        let decided = store.check_ad_hoc(NOW, &checks).await;
        assert!(decided.iter().all(|it| it.as_ref().is_ok_and(|it| it.remaining() == 8)));
        let grouped =
            store.check_group_with(NOW, &[], &checks, tidegate::store::Grouping::AllOrNothing).await;
        match partition {
            None => assert!(grouped.unwrap_err().reason.contains("partition")),
            Some(_) => assert!(grouped.unwrap().ad_hoc.iter().all(|decision| decision.remaining() == 6)),
        }
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        assert_eq!(store.forget_ad_hoc(SPACES[0], &keys).await.unwrap(), 50);
    }
}
