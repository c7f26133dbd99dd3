//! Checks that come at the same moment share a call.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::{Limit, Limiter, Policy, PolicyHandle, Rate, Timestamp};
use tidegate_redis::{OnStoreError, RedisStore};
use tidegate_testkit_servers::{Mischief, Program, Proxy, Server};

const NOW: Timestamp = Timestamp::saturating_from_micros(1_800_000_000_000_000);

async fn policy(url: String, timeout: Duration) -> PolicyHandle<RedisStore> {
    let store = RedisStore::builder(url).timeout(timeout).on_store_error(OnStoreError::Deny);
    let policy = Policy::single("api", Limit::token_bucket(1_000, Rate::ZERO)).unwrap();
    let store = store.open().await.unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(ManualClock::new(NOW)).build();
    limiter.policy("api").unwrap()
}

/// Scripts that the server has run.
fn calls(server: &Server) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).text();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap_or("0");
    line.split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_thousand_at_once_take_far_fewer_calls_and_each_has_its_own_answer() {
    let server = Server::start(Program::Redis7);
    let api = policy(server.url(), Duration::from_secs(20)).await;
    api.check("first", 1).await.unwrap();
    let before = calls(&server);
    let tasks: Vec<_> = (0..1_000_u32)
        .map(|number| {
            let api = api.clone();
            // Five of each key, at costs that tell them apart.
            tokio::spawn(
                async move { (number, api.check((number % 200).to_be_bytes(), 1 + number / 200).await) },
            )
        })
        .collect();
    let mut spent = vec![0; 200];
    for task in tasks {
        let (number, decision) = task.await.unwrap();
        let decision = decision.unwrap();
        assert_eq!(decision.charged(), u64::from(1 + number / 200));
        spent[(number % 200) as usize] += decision.charged();
    }
    assert!(spent.iter().all(|units| *units == 15));
    for key in 0..200_u32 {
        assert_eq!(api.peek(key.to_be_bytes()).await.unwrap().remaining(), 985);
    }
    let took = calls(&server) - before - 200;
    assert!(took < 100, "{took} calls for 1000 checks");
}

#[tokio::test]
async fn whoever_goes_away_keeps_nobody_waiting() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let api = policy(proxy.url(), Duration::from_secs(20)).await;
    api.check("first", 1).await.unwrap();
    proxy.set(Mischief::Delay(Duration::from_millis(100)));
    for round in 0..3 {
        let tasks: Vec<_> = (0..40)
            .map(|number| {
                let api = api.clone();
                let check = tokio::spawn(async move { api.check(format!("{round}"), 1).await });
                if number % 2 == 0 { (Some(check), None) } else { (None, Some(check)) }
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        // Among them those whose calls are on their way.
        tasks.iter().filter_map(|(gone, _)| gone.as_ref()).for_each(|gone| gone.abort());
        for stays in tasks.into_iter().filter_map(|(_, stays)| stays) {
            assert!(stays.await.unwrap().unwrap().is_allowed());
        }
    }
}

#[tokio::test]
async fn who_waits_for_others_waits_no_longer_than_anybody() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let api = policy(proxy.url(), Duration::from_millis(300)).await;
    api.check("first", 1).await.unwrap();
    proxy.set(Mischief::BlackHole);
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(
                async move { tokio::time::timeout(Duration::from_secs(10), api.check("a", 1)).await },
            )
        })
        .collect();
    for task in tasks {
        task.await.unwrap().expect("it gives up by itself").unwrap_err();
    }
    proxy.set(Mischief::None);
    proxy.cut();
    while api.check("b", 1).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
