//! What is answered to which descriptors.

use std::sync::Arc;
use std::time::Duration;

use tidegate_server::config::Config;
use tidegate_server::grpc::messages::{
    RateLimit, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitResponse, Unit,
};
use tonic::Code;

use super::server::{codes, descriptor, start};

const CONFIG: &str = "
policies:
  tenant: {limits: [{name: minute, algorithm: fixed_window, limit: 10, window: 1min}]}
  user: {limits: [{algorithm: token_bucket, capacity: 2, refill: 1/s}]}
  cost: {limits: [{algorithm: fixed_window, limit: 1000, window: 1min}]}
envoy:
  edge:
    - {key: tenant, policy: tenant, descriptors: [{key: path, value: /free*, unlimited: true}]}
    - {key: user, policy: user}
    - {key: cost, policy: cost, charge: always}
    - {key: trial, policy: user, shadow: true}
    - {key: pool, value: a, policy: user, quota: true}
    - {key: pool, value: b, policy: user, quota: true}
    - {key: plan, policy: user, name: plan, replaces: [base]}
    - {key: base, policy: user, name: base}
";

fn hits(entries: &[(&str, &str)], hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(entries) }
}

fn header<'a>(answer: &'a RateLimitResponse, name: &str) -> Option<&'a str> {
    answer.response_headers_to_add.iter().find(|header| header.key == name).map(|header| &*header.value)
}

#[tokio::test]
async fn statuses_come_in_order_with_figures_and_headers() {
    let server = start(CONFIG).await;
    let asked =
        [descriptor(&[("tenant", "acme")]), descriptor(&[("no", "limit")]), descriptor(&[("user", "ann")])];
    let answer = server.descriptors(&asked).await;
    assert_eq!(codes(&answer), (true, vec![true, true, true]));
    let [tenant, unmet, user] = &answer.statuses[..] else { panic!("{answer:?}") };
    let limit = RateLimit { requests_per_unit: 10, unit: Unit::Minute.into(), name: "minute".into() };
    assert_eq!((tenant.current_limit.as_ref(), tenant.limit_remaining), (Some(&limit), 9));
    assert_eq!(tenant.duration_until_reset.unwrap().seconds, 60);
    assert_eq!((unmet.current_limit.as_ref(), unmet.limit_remaining), (None, 0));
    assert_eq!(user.limit_remaining, 1);
    assert_eq!(
        user.current_limit.as_ref().unwrap().unit,
        i32::from(Unit::Unknown),
        "two seconds are no unit"
    );
    assert_eq!(header(&answer, "x-ratelimit-remaining"), Some("1"), "the one with least left binds");
    assert!(answer.raw_body.is_empty());
}

#[tokio::test]
async fn a_denied_descriptor_drains_none_of_its_siblings() {
    let server = start(CONFIG).await;
    let both = [descriptor(&[("tenant", "acme")]), descriptor(&[("user", "ann")])];
    for _ in 0..2 {
        assert!(codes(&server.descriptors(&both).await).0);
    }
    for _ in 0..3 {
        let answer = server.descriptors(&both).await;
        assert_eq!(codes(&answer), (false, vec![true, false]));
        assert_eq!(header(&answer, "retry-after"), Some("1"));
        assert!(String::from_utf8_lossy(&answer.raw_body).contains("quota-exceeded"));
    }
    let peek = server.descriptors(&[hits(&[("tenant", "acme")], 0)]).await;
    assert_eq!(peek.statuses[0].limit_remaining, 8);
    server.clock.advance(Duration::from_secs(1));
    assert!(codes(&server.descriptors(&both).await).0);
}

#[tokio::test]
async fn costs_known_afterwards_count() {
    let server = start(CONFIG).await;
    let cost = |units| [hits(&[("cost", "llm")], units)];
    assert!(codes(&server.descriptors(&cost(0)).await).0);
    assert!(!codes(&server.descriptors(&cost(1500)).await).0, "it did not fit, and is charged all the same");
    assert!(!codes(&server.descriptors(&cost(0)).await).0);
    server.clock.advance(Duration::from_secs(60));
    assert!(codes(&server.descriptors(&cost(1000)).await).0);
    assert!(codes(&server.descriptors(&cost(0)).await).0, "all of it is used, none overdrawn");
}

#[tokio::test]
async fn hits_are_the_descriptor_s_else_the_request_s_else_one() {
    let server = start(CONFIG).await;
    let ask = |own, shared| RateLimitRequest {
        domain: "edge".into(),
        descriptors: vec![RateLimitDescriptor { hits_addend: own, ..descriptor(&[("tenant", "acme")]) }],
        hits_addend: shared,
    };
    for (own, shared, left) in [(None, 0, 9), (None, 3, 6), (Some(2), 3, 4), (Some(0), 3, 4)] {
        assert_eq!(server.ask(ask(own, shared)).await.unwrap().statuses[0].limit_remaining, left);
    }
    let mut back = ask(Some(5), 0);
    back.descriptors[0].is_negative_hits = true;
    assert_eq!(server.ask(back).await.unwrap().statuses[0].limit_remaining, 9);
}

#[tokio::test]
async fn unlimited_shadow_quota_and_replaced() {
    let server = start(CONFIG).await;
    let free = server.descriptors(&[descriptor(&[("tenant", "acme"), ("path", "/free/x")])]).await;
    assert_eq!((codes(&free).0, free.statuses[0].limit_remaining), (true, u32::MAX));
    let trial = server.descriptors(&[hits(&[("trial", "t")], 3)]).await;
    assert_eq!((codes(&trial), trial.statuses[0].limit_remaining), ((true, vec![true]), 0));
    let pools = |a, b| [hits(&[("pool", "a")], a), hits(&[("pool", "b")], b)];
    assert_eq!(codes(&server.descriptors(&pools(3, 1)).await), (true, vec![false, true]));
    assert_eq!(codes(&server.descriptors(&pools(3, 3)).await), (false, vec![false, false]));
    let replaced = server.descriptors(&[descriptor(&[("plan", "p")]), hits(&[("base", "b")], 9)]).await;
    assert_eq!(codes(&replaced), (true, vec![true, true]));
    assert!(replaced.statuses[1].current_limit.is_none());
}

#[tokio::test]
async fn figures_that_come_along_win_and_are_charged_with_the_others_or_not_at_all() {
    let server = start(CONFIG).await;
    let limit = Some(RateLimitOverride { requests_per_unit: 3, unit: Unit::Hour.into() });
    let own = RateLimitDescriptor { limit, ..descriptor(&[("user", "ann")]) };
    let answer = server.descriptors(std::slice::from_ref(&own)).await;
    assert_eq!(answer.statuses[0].limit_remaining, 2);
    let current = answer.statuses[0].current_limit.clone().unwrap();
    assert_eq!((current.requests_per_unit, current.unit), (3, Unit::Hour.into()));
    let refused = server.descriptors(&[own.clone(), hits(&[("user", "bob")], 3)]).await;
    assert_eq!((codes(&refused), refused.statuses[0].limit_remaining), ((false, vec![true, false]), 2));
    let mut credit = own.clone();
    credit.is_negative_hits = true;
    let both = server.descriptors(&[own.clone(), credit]).await.statuses;
    let left: Vec<u32> = both.iter().map(|status| status.limit_remaining).collect();
    assert_eq!(left, [2, 3], "what is given back comes first");
    assert_eq!(server.descriptors(std::slice::from_ref(&own)).await.statuses[0].limit_remaining, 1);
    // Of one descriptor with two limits the first counts, and both have to fit.
    let wider = Some(RateLimitOverride { requests_per_unit: 50, unit: Unit::Hour.into() });
    let twice = server.descriptors(&[own.clone(), RateLimitDescriptor { limit: wider, ..own.clone() }]).await;
    assert!(!codes(&twice).0);
    let limit = twice.statuses[1].current_limit.clone().unwrap().requests_per_unit;
    assert_eq!((limit, twice.statuses[1].limit_remaining), (3, 0));
    assert_eq!(server.descriptors(&[own]).await.statuses[0].limit_remaining, 0);
}

/// Charged first and given back, what did not count was seen by others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_that_does_not_count_is_seen_by_nobody() {
    let server = Arc::new(start(CONFIG).await);
    server.descriptors(&[hits(&[("user", "bob")], 2)]).await;
    let limit = Some(RateLimitOverride { requests_per_unit: 9, unit: Unit::Hour.into() });
    let own = move |hits| RateLimitDescriptor { limit, ..self::hits(&[("user", "ann")], hits) };
    let refused = {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            for _ in 0..300 {
                let answer = server.descriptors(&[own(9), descriptor(&[("user", "bob")])]).await;
                assert_eq!(codes(&answer), (false, vec![true, false]));
            }
        })
    };
    while !refused.is_finished() {
        let look = server.descriptors(&[own(0)]).await;
        assert_eq!(look.statuses[0].limit_remaining, 9);
    }
    refused.await.unwrap();
}

#[tokio::test]
async fn what_has_no_answer_is_an_error_and_a_limit_never_is() {
    let server = start(CONFIG).await;
    let one = || vec![descriptor(&[("user", "ann")])];
    let ask =
        |domain: &str, descriptors| RateLimitRequest { domain: domain.into(), descriptors, hits_addend: 0 };
    assert_eq!(server.ask(ask("", one())).await.unwrap_err().code(), Code::Unknown);
    assert_eq!(server.ask(ask("edge", vec![])).await.unwrap_err().code(), Code::Unknown);
    for much in [1_000_000_000_001, u64::MAX] {
        for user in ["user", "cost"] {
            let answer = server.descriptors(&[hits(&[(user, "ann")], much)]).await;
            assert_eq!(codes(&answer), (false, vec![false]), "{much} is no way past a limit");
        }
        let mut back = hits(&[("cost", "ann")], much);
        back.is_negative_hits = true;
        assert_eq!(server.descriptors(&[back]).await.statuses[0].limit_remaining, 1_000);
    }
    let of_unit = |unit| RateLimitDescriptor {
        limit: Some(RateLimitOverride { requests_per_unit: 3, unit }),
        ..descriptor(&[("user", "ann")])
    };
    for unit in [0, 7, -1] {
        let error = server.ask(ask("edge", vec![of_unit(unit)])).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{unit}");
    }
    assert!(codes(&server.ask(ask("other", one())).await.unwrap()).0, "no limits in the domain");
    let none = start("policies: {a: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}").await;
    assert_eq!(none.ask(ask("edge", one())).await.unwrap_err().code(), Code::Unknown);
}

#[tokio::test]
async fn a_full_store_is_no_limit_but_an_error() {
    let full = format!("memory: {{max_keys: 1, on_full: refuse_new}}\n{CONFIG}");
    let server = start(&full).await;
    assert!(codes(&server.descriptors(&[descriptor(&[("user", "ann")])]).await).0);
    let ask = |key: &str| RateLimitRequest {
        domain: "edge".into(),
        descriptors: vec![descriptor(&[(key, "bob")])],
        hits_addend: 0,
    };
    assert_eq!(server.ask(ask("user")).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(server.ask(ask("cost")).await.unwrap_err().code(), Code::Unavailable, "a forced charge");
    assert!(server.ask(ask("trial")).await.is_ok(), "a shadow refuses nobody");
}

#[tokio::test]
async fn what_is_decided_is_counted_and_looks_are_not() {
    let server = start(CONFIG).await;
    server.descriptors(&[descriptor(&[("tenant", "a")]), hits(&[("user", "a")], 0)]).await;
    server.descriptors(&[hits(&[("cost", "a")], 1_001)]).await;
    let limit = Some(RateLimitOverride { requests_per_unit: 3, unit: Unit::Hour.into() });
    server.descriptors(&[RateLimitDescriptor { limit, ..hits(&[("user", "a")], 4) }]).await;
    let page = super::server::metrics(&server.app).await;
    for line in [
        r#"tidegate_decisions_total{policy="tenant",outcome="allowed"} 1"#,
        r#"tidegate_decisions_total{policy="cost",outcome="denied"} 1"#,
        r#"tidegate_decisions_total{policy="user",outcome="allowed"} 0"#,
        r#"tidegate_throttle_decisions_total{outcome="cost_exceeds_capacity"} 1"#,
        "tidegate_decision_duration_seconds_count 2",
    ] {
        assert!(page.lines().any(|is| is == line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn a_message_of_no_sane_size_is_refused() {
    let server = start(CONFIG).await;
    let ask = |count: usize| RateLimitRequest {
        domain: "edge".into(),
        descriptors: vec![hits(&[("user", "ann")], 0); count],
        hits_addend: 0,
    };
    assert_eq!(server.ask(ask(1_000)).await.unwrap().statuses.len(), 1_000);
    assert_eq!(server.ask(ask(100_000)).await.unwrap_err().code(), Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_that_renames_policies_leaves_no_question_without_an_answer() {
    let renamed = CONFIG.replace("user:", "person:").replace("policy: user", "policy: person");
    let configs = [CONFIG, &*renamed].map(|text| Config::parse(text, "t").unwrap());
    let server = start(CONFIG).await;
    let app = Arc::clone(&server.app);
    let reloading = tokio::task::spawn_blocking(move || {
        for config in configs.iter().cycle().take(200) {
            app.reload(config.policies().clone(), config.headers()).unwrap();
            app.set_envoy(config.envoy().clone());
        }
    });
    let mut answered = 0;
    while !reloading.is_finished() || answered == 0 {
        let answer = server.descriptors(&[hits(&[("user", "ann")], 0)]).await;
        assert!(answer.statuses[0].current_limit.is_some());
        answered += 1;
    }
}
