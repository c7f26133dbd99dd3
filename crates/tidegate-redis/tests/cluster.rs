//! Clients spread over a cluster, and over the nodes that come and go in it.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::{Asked, Cost, Limit, Limiter, Policy, PolicyHandle, PolicySet, Rate, Timestamp};
use tidegate_redis::{OnStoreError, RedisStore, RedisStoreBuilder};
use tidegate_testkit_servers::{Cluster, Program, Sentinel};

const NOW: Timestamp = Timestamp::saturating_from_micros(1_800_000_000_000_000);

async fn limiter(builder: RedisStoreBuilder) -> Limiter<RedisStore> {
    let builder = builder.timeout(Duration::from_secs(10)).on_store_error(OnStoreError::Deny);
    let store = builder.open().await.unwrap();
    let of = |name| Policy::single(name, Limit::token_bucket(10, Rate::ZERO)).unwrap();
    let log = Limit::sliding_window_log(10, tidegate::Period::DAY).unwrap();
    let policies = PolicySet::new([of("user"), of("tenant"), Policy::single("log", log).unwrap()]).unwrap();
    Limiter::builder(policies).store(store).clock(ManualClock::new(NOW)).build()
}

fn keys_in(cluster: &Cluster) -> Vec<i64> {
    (0..cluster.masters()).map(|index| cluster.node(index).command(&["DBSIZE"]).integer()).collect()
}

#[tokio::test]
async fn clients_are_spread_over_all_masters_and_batches_come_back_in_order() {
    let cluster = Cluster::start(Program::Redis7, 3, 0);
    let limiter = limiter(RedisStore::builder(cluster.url())).await;
    for name in ["user", "log"] {
        let policy = limiter.policy(name).unwrap();
        let keys: Vec<String> = (0..300).map(|key| format!("{{}}client}}{key}")).collect();
        // Each key twice in one batch, at a cost that says which it is.
        for round in 0..2_u64 {
            let answers = policy.check_batch(&[&keys[..], &keys[..]].concat(), 2).await;
            let decisions: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
            let (first, second) = decisions.split_at(keys.len());
            assert!(first.iter().all(|it| it.remaining() == 8 - 4 * round), "{name}, round {round}");
            assert!(second.iter().all(|it| it.remaining() == 6 - 4 * round), "{name}, round {round}");
        }
    }
    let keys = keys_in(&cluster);
    assert_eq!(keys.iter().sum::<i64>(), 600, "a record each");
    assert!(keys.iter().all(|count| *count > 130), "{keys:?}");
}

#[tokio::test]
async fn several_keys_as_one_need_a_partition() {
    let cluster = Cluster::start(Program::Valkey9, 3, 0);
    for partition in [None, Some("all")] {
        let builder = RedisStore::builder(cluster.url());
        let builder = partition.into_iter().fold(builder, |builder, name| builder.partition(name));
        let limiter = limiter(builder).await;
        let (user, tenant) = (limiter.policy("user").unwrap(), limiter.policy("tenant").unwrap());
        let group = |cost: u32| {
            [
                Asked { policy: &user, key: &b"ann"[..], cost: Cost::from(cost) },
                Asked { policy: &tenant, key: b"acme", cost: Cost::from(1) },
            ]
        };
        let decided = limiter.check_all(&group(7)).await;
        if partition.is_none() {
            let error = decided.unwrap_err();
            assert!(error.reason.contains("partition"), "{error}");
            assert_eq!(tenant.peek("acme").await.unwrap().remaining(), 10);
            continue;
        }
        assert!(decided.unwrap().iter().all(|it| it.is_allowed()));
        assert!(!limiter.check_all(&group(7)).await.unwrap()[0].is_allowed());
        assert_eq!(tenant.peek("acme").await.unwrap().remaining(), 9, "a refused group drained it");
    }
    assert_eq!(keys_in(&cluster).iter().filter(|count| **count > 0).count(), 1);
}

/// Asks until it is answered: in the meantime nobody is there to.
async fn settle(policy: &PolicyHandle<RedisStore>, key: &str) {
    for _ in 0..600 {
        if policy.peek(key).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{key} is not answered any more");
}

#[tokio::test]
async fn decisions_go_on_when_a_master_is_killed() {
    let mut cluster = Cluster::start(Program::Redis7, 3, 1);
    let limiter = limiter(RedisStore::builder(cluster.url())).await;
    let user = limiter.policy("user").unwrap();
    let keys: Vec<String> = (0..60).map(|key| key.to_string()).collect();
    assert!(user.check_batch(&keys, 3).await.iter().all(Result::is_ok));
    // Replicas have seen it: what was acknowledged and not passed on is lost with a master, which is stated.
    for index in 0..cluster.masters() {
        cluster.node(index).wait_until_replicated();
    }
    cluster.node_mut(0).kill();
    cluster.wait_until_master(cluster.masters());
    for key in &keys {
        settle(&user, key).await;
        assert_eq!(user.check(key, 3).await.unwrap().remaining(), 4, "{key}");
    }
}

#[tokio::test]
async fn decisions_go_on_when_sentinels_promote_a_replica() {
    let mut sentinel = Sentinel::start(Program::Redis7, 1);
    let limiter = limiter(RedisStore::builder(sentinel.url())).await;
    let user = limiter.policy("user").unwrap();
    assert_eq!(user.check("ann", 3).await.unwrap().remaining(), 7);
    sentinel.server(0).wait_until_replicated();
    sentinel.server_mut(0).kill();
    for _ in 0..600 {
        match user.check("ann", 3).await {
            Ok(decision) => return assert_eq!(decision.remaining(), 4),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("nobody took the master's place");
}
