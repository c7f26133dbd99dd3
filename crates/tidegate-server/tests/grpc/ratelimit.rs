//! Files written for envoyproxy/ratelimit, used as they are: the answers are those its users know.

use std::time::Duration;

use tidegate::Timestamp;
use tidegate_server::config::Source;
use tidegate_server::config::ratelimit::RatelimitFiles;
use tidegate_server::grpc::messages::{
    RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitResponse, Unit,
};
use tonic::Code;

use super::server::{Server, codes, descriptor, start_with};

const SHOP: &str = "
domain: edge
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 3, name: each user}}
  - {key: user, value: blocked, rate_limit: {unit: minute, requests_per_unit: 0}}
  - {key: user, value: free, rate_limit: {unlimited: true}}
  - {key: user, value: nobody}
  - {key: user, value: bot*, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: user, value: pool-*, share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 2}}
  - key: plan
    descriptors:
      - {key: path, value: /a*z, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: trial, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: vip, rate_limit: {unit: second, requests_per_unit: 9, replaces: [{name: each user}]}}
  - {key: pool_a, quota_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: pool_b, quota_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
";

async fn shop() -> Server {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.yaml"), SHOP).unwrap();
    let source = Source::default().with_ratelimit(Some(RatelimitFiles::at(folder.path())));
    let server = start_with(source.load().unwrap()).await;
    // Ten seconds into a minute, of which windows know nothing.
    server.clock.set(
        Timestamp::from_micros(1_700_000_000_000_000 - 1_700_000_000_000_000 % 60_000_000 + 10_000_000)
            .unwrap(),
    );
    server
}

fn one(key: &str, value: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(&[(key, value)]) }
}

/// Code and what is left.
async fn ask(server: &Server, descriptor: RateLimitDescriptor) -> (bool, u32) {
    let answer = server.descriptors(&[descriptor]).await;
    (codes(&answer).0, answer.statuses[0].limit_remaining)
}

fn reset(answer: &RateLimitResponse) -> i64 {
    answer.statuses[0].duration_until_reset.as_ref().unwrap().seconds
}

#[tokio::test]
async fn windows_begin_with_the_minute() {
    let server = shop().await;
    for left in [2, 1, 0] {
        assert_eq!(ask(&server, descriptor(&[("user", "ann")])).await, (true, left));
    }
    let answer = server.descriptors(&[descriptor(&[("user", "ann")])]).await;
    assert_eq!((codes(&answer).0, reset(&answer)), (false, 50));
    let limit = answer.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (3, Unit::Minute.into(), "each user"));
    server.clock.advance(Duration::from_micros(49_999_999));
    assert!(!ask(&server, descriptor(&[("user", "ann")])).await.0);
    server.clock.advance(Duration::from_micros(1));
    assert_eq!(ask(&server, descriptor(&[("user", "ann")])).await, (true, 2));
}

#[tokio::test]
async fn the_exact_then_the_pattern_then_any() {
    let server = shop().await;
    assert_eq!(ask(&server, one("user", "blocked", 1)).await, (false, 0));
    assert_eq!(ask(&server, one("user", "free", 1_000)).await, (true, u32::MAX));
    assert_eq!(ask(&server, one("user", "nobody", 1_000)).await, (true, 0), "met, and without a limit");
    assert_eq!(ask(&server, one("user", "bot1", 2)).await, (true, 0));
    assert_eq!(ask(&server, one("user", "bot2", 1)).await, (true, 1), "each value for itself");
    assert_eq!(ask(&server, one("user", "pool-1", 2)).await, (true, 0));
    assert_eq!(ask(&server, one("user", "pool-2", 1)).await, (false, 0), "all as one");
    let deep =
        |path| RateLimitDescriptor { hits_addend: Some(6), ..descriptor(&[("plan", "p"), ("path", path)]) };
    assert_eq!(ask(&server, deep("/a/b/z")).await, (false, 0));
    assert_eq!(ask(&server, deep("/a/b")).await, (true, 0));
    assert_eq!(ask(&server, one("plan", "p", 9)).await, (true, 0), "the limit is further down");
}

#[tokio::test]
async fn all_are_charged_whatever_becomes_of_the_others() {
    let server = shop().await;
    let both = [one("user", "blocked", 1), one("user", "ann", 1)];
    assert_eq!(codes(&server.descriptors(&both).await), (false, vec![false, true]));
    assert_eq!(
        ask(&server, one("user", "ann", 0)).await,
        (true, 2),
        "charged though the request was refused"
    );
    assert_eq!(ask(&server, one("user", "ann", 5)).await, (false, 0));
    assert_eq!(ask(&server, one("user", "ann", 0)).await, (false, 0), "charged though it did not fit");
}

#[tokio::test]
async fn shadows_replacements_and_quotas() {
    let server = shop().await;
    assert_eq!(ask(&server, one("trial", "t", 5)).await, (true, 0));
    let answer = server.descriptors(&[one("user", "ann", 9), one("vip", "v", 1)]).await;
    assert_eq!(codes(&answer), (true, vec![true, true]));
    assert!(answer.statuses[0].current_limit.is_none());
    assert_eq!(ask(&server, one("user", "ann", 0)).await, (true, 3), "what is replaced is not charged");
    let pools = |a, b| [one("pool_a", "x", a), one("pool_b", "x", b)];
    assert_eq!(codes(&server.descriptors(&pools(2, 1)).await), (true, vec![false, true]));
    assert_eq!(codes(&server.descriptors(&pools(1, 1)).await), (false, vec![false, false]));
}

#[tokio::test]
async fn what_the_request_brings_and_what_is_no_request() {
    let server = shop().await;
    let limit = Some(RateLimitOverride { requests_per_unit: 2, unit: Unit::Hour.into() });
    let brought = || RateLimitDescriptor { limit, ..one("user", "blocked", 2) };
    assert_eq!(ask(&server, brought()).await, (true, 0), "it wins over the file");
    assert!(!ask(&server, brought()).await.0);
    let request =
        |domain: &str, descriptors| RateLimitRequest { domain: domain.into(), descriptors, hits_addend: 0 };
    assert_eq!(server.ask(request("", vec![one("user", "a", 1)])).await.unwrap_err().code(), Code::Unknown);
    let unknown = server.ask(request("other", vec![one("user", "a", 1)])).await.unwrap();
    assert_eq!(codes(&unknown), (true, vec![true]));
}
