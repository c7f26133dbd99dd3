//! What the layer does with requests, in virtual time.
#![allow(clippy::unwrap_used)]

mod support;

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, Request, Response, StatusCode};
use support::*;
use tidegate::clock::Clock;
use tidegate::{Cost, Limit, Limiter, MemoryStore, OnFull, Outcome, Period, Policy, Rate};
use tidegate_tower::{
    Denial, DenialBody, Families, GrpcDenial, HandedDelay, LimitFields, MissingKey, Pacing, ProblemDenial,
    RateLimitLayer, Reason, Report, ResetStyle, key,
};
use tower::{Layer, Service};

fn layer_of(capacity: u32) -> (RateLimitLayer, Inner) {
    let clock = clock();
    (RateLimitLayer::new(limiter(&clock, bucket(capacity)), path, MissingKey::Deny), Inner::new(&clock))
}

#[tokio::test]
async fn admits_then_denies_then_admits_at_the_instant_told() {
    let (layer, inner) = layer_of(2);
    let first = send(&layer, &inner, get("/a")).await;
    assert_eq!((first.status, first.body.as_str()), (200, "hello"));
    assert_eq!(first.header("ratelimit-policy"), r#""api";q=2;w=2"#);
    assert_eq!(first.header("ratelimit"), r#""api";r=1;t=1"#);
    assert_eq!(first.header("x-ratelimit-limit"), "2");
    assert_eq!(first.header("x-ratelimit-remaining"), "1");
    assert_eq!(first.header("x-ratelimit-reset"), "1");
    assert_eq!(first.header("retry-after"), "");
    assert_eq!(send(&layer, &inner, get("/a")).await.status, 200);

    let denied = send(&layer, &inner, get("/a")).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("content-type"), "application/problem+json");
    assert_eq!(denied.header("retry-after"), "1");
    assert_eq!(denied.header("ratelimit"), r#""api";r=0;t=1"#);
    assert_eq!(denied.json()["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(denied.json()["status"], 429);
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["api"]));
    assert_eq!(send(&layer, &inner, get("/b")).await.status, 200, "another key");

    inner.clock.set(at(999_999));
    assert_eq!(send(&layer, &inner, get("/a")).await.status, 429);
    inner.clock.set(at(1_000_000));
    assert_eq!(send(&layer, &inner, get("/a")).await.status, 200);
    assert_eq!(inner.seen().len(), 4, "a denied request never reaches the service");
}

#[tokio::test]
async fn clones_share_the_limit_and_readiness_charges_nothing() {
    let (layer, inner) = layer_of(1);
    let mut service = layer.layer(inner.clone());
    for _ in 0..10 {
        std::future::poll_fn(|cx| Service::<Request<String>>::poll_ready(&mut service, cx)).await.unwrap();
    }
    let mut twin = service.clone();
    let mut cousin = layer.clone().layer(inner.clone());
    assert_eq!(twin.call(get("/a")).await.unwrap().status(), 200, "nothing was charged yet");
    assert_eq!(service.call(get("/a")).await.unwrap().status(), 429);
    assert_eq!(cousin.call(get("/a")).await.unwrap().status(), 429);
}

#[tokio::test]
async fn the_service_that_was_ready_is_the_one_called() {
    /// Panics when called without having been ready; a clone is not ready.
    struct Strict(bool);
    impl Clone for Strict {
        fn clone(&self) -> Self {
            Strict(false)
        }
    }
    impl Service<Request<String>> for Strict {
        type Response = Response<String>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Response<String>, Self::Error>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Self::Error>> {
            self.0 = true;
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, request: Request<String>) -> Self::Future {
            assert!(self.0, "called before it was ready");
            std::future::ready(Ok(Response::new(request.into_body())))
        }
    }
    let (layer, _) = layer_of(5);
    let mut service = layer.layer(Strict(false));
    for _ in 0..3 {
        std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
        assert_eq!(service.call(get("/a")).await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_missing_key_is_what_was_chosen() {
    for (missing, statuses) in [
        (MissingKey::Skip, [200, 200, 200]),
        (MissingKey::Deny, [403, 403, 403]),
        (MissingKey::DenyWith(StatusCode::UNAUTHORIZED), [401, 401, 401]),
        (MissingKey::Shared(b"anonymous".to_vec()), [200, 200, 429]),
    ] {
        let clock = clock();
        let (handle, inner) = (limiter(&clock, bucket(2)), Inner::new(&clock));
        let layer = RateLimitLayer::new(handle, key::header("x-api-key"), missing.clone());
        for status in statuses {
            let answer = send(&layer, &inner, get("/")).await;
            assert_eq!(answer.status, status, "{missing:?}");
            if status != 200 && status != 429 {
                assert_eq!(answer.json()["type"], "about:blank");
                assert_eq!(answer.json()["status"], status);
                assert_eq!(answer.limit_fields(), 0);
            }
        }
        let keyed = send(&layer, &inner, with(get("/"), "x-api-key", "k")).await;
        assert_eq!(keyed.header("x-ratelimit-remaining"), "1", "a key of one's own is not touched");
    }
}

#[tokio::test]
async fn a_cost_is_constant_or_worked_out_or_told() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let left = async |layer: &RateLimitLayer, request| {
        send(layer, &inner, request).await.header("x-ratelimit-remaining").to_owned()
    };
    let handle = limiter(&clock, bucket(100));
    let layer = RateLimitLayer::new(handle, path, MissingKey::Deny);
    assert_eq!(left(&layer.clone().cost(7), get("/constant")).await, "93");
    let by_length = layer.clone().cost_by(|request: &Parts| request.uri.path().len() as u32);
    assert_eq!(left(&by_length, get("/four")).await, "95");
    assert_eq!(left(&layer.clone().cost(Cost::PEEK), get("/peek")).await, "100");

    let told = layer.cost_from(HeaderName::from_static("x-cost"), 2);
    assert_eq!(left(&told, get("/told")).await, "98");
    assert_eq!(left(&told, with(get("/told"), "x-cost", "10")).await, "88");
    assert_eq!(left(&told, with(get("/told"), "x-cost", "0")).await, "88");
    for value in ["-1", "1.5", "", "+1", " 1 2", "1000000000001", "99999999999999999999", "five"] {
        let answer = send(&told, &inner, with(get("/told"), "x-cost", value)).await;
        assert_eq!(answer.status, 400, "{value}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("x-cost: \"") && detail.contains("0 to 1000000000000"), "{detail}");
    }
    let twice = with(with(get("/told"), "x-cost", "1"), "x-cost", "1");
    assert_eq!(send(&told, &inner, twice).await.status, 400);
    assert_eq!(left(&told, with(get("/told"), "x-cost", "0")).await, "88", "nothing of it was charged");
}

#[tokio::test]
async fn a_cost_that_never_fits_is_429_without_retry_after() {
    let (layer, inner) = layer_of(5);
    let answer = send(&layer.cost(6), &inner, get("/")).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, ""));
    assert!(answer.json()["detail"].as_str().unwrap().contains("waiting does not help"));
}

#[tokio::test]
async fn a_policy_is_worked_out_or_told() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let policies = [("free", 1), ("pro", 50)].map(|(name, n)| Policy::single(name, bucket(n)).unwrap());
    let policies = tidegate::PolicySet::new(policies).unwrap();
    let limiter = Limiter::builder(policies).clock(clock.clone()).build();
    let [free, pro] = ["free", "pro"].map(|name| limiter.policy(name).unwrap());

    let layer = RateLimitLayer::new(free.clone(), path, MissingKey::Deny);
    let told =
        layer.clone().policy_from(HeaderName::from_static("x-plan"), [("pro", pro.clone())], free.clone());
    let worked_out = layer.policy_by(move |request: &Parts| match request.headers.get("x-plan") {
        Some(plan) if plan == "pro" => pro.clone(),
        _ => free.clone(),
    });
    for layer in [told, worked_out] {
        let limit =
            async |request| send(&layer, &inner, request).await.header("x-ratelimit-limit").to_owned();
        assert_eq!(limit(with(get("/a"), "x-plan", "pro")).await, "50");
        assert_eq!(limit(get("/a")).await, "1");
        assert_eq!(limit(with(get("/a"), "x-plan", "gold")).await, "1");
    }
}

#[tokio::test]
async fn what_is_skipped_is_neither_charged_nor_told() {
    let (layer, inner) = layer_of(1);
    let layer = layer
        .skip_if(|request: &Parts| request.method == "OPTIONS")
        .skip_if(|request: &Parts| request.uri.query() == Some("internal"));
    for _ in 0..3 {
        let answer = send(&layer, &inner, get("/a?internal")).await;
        assert_eq!((answer.status, answer.limit_fields()), (200, 0));
        let options = Request::options("/a").body(String::new()).unwrap();
        assert_eq!(send(&layer, &inner, options).await.status, 200);
    }
    assert!(inner.seen().iter().all(|seen| seen.decision.is_none()));
    assert_eq!(send(&layer, &inner, get("/a")).await.status, 200);
    assert_eq!(send(&layer, &inner, get("/a")).await.status, 429);
}

#[tokio::test]
async fn a_shadow_decides_charges_and_reports_but_never_denies() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let clock = clock();
    let inner = Inner::new(&clock);
    let layer = RateLimitLayer::new(
        limiter(&clock, bucket(1)),
        key::header("k"),
        MissingKey::DenyWith(StatusCode::UNAUTHORIZED),
    )
    .cost_from(HeaderName::from_static("x-cost"), 1)
    .shadow_if(|request: &Parts| request.uri.path() == "/shadowed")
    .on_report({
        let reports = Arc::clone(&reports);
        move |request, report| {
            let said = match report {
                Report::Admitted(checked) => format!("admitted, {} left", checked.decision().remaining()),
                Report::Denied(Reason::Refused(checked)) => format!("refused to {:?}", checked.key()),
                Report::Passed(Reason::Refused(_)) => "would refuse".to_owned(),
                Report::Passed(Reason::MissingKey(status)) => format!("would answer {status}"),
                Report::Passed(Reason::UnreadableCost(error)) => format!("would say {error}"),
                other => panic!("{other:?}"),
            };
            reports.lock().unwrap().push(format!("{}: {said}", request.uri.path()));
        }
    });
    for _ in 0..2 {
        let answer = send(&layer, &inner, with(get("/shadowed"), "k", "a")).await;
        assert_eq!((answer.status, answer.limit_fields(), answer.header("retry-after")), (200, 0, ""));
    }
    assert_eq!(send(&layer, &inner, get("/shadowed")).await.status, 200);
    let costly = with(with(get("/shadowed"), "k", "a"), "x-cost", "x");
    assert_eq!(send(&layer, &inner, costly).await.status, 200);
    assert_eq!(send(&layer, &inner, with(get("/enforced"), "k", "a")).await.status, 429);

    let decisions: Vec<Option<bool>> =
        inner.seen().iter().map(|seen| seen.decision.map(|decision| decision.is_allowed())).collect();
    assert_eq!(decisions, [Some(true), Some(false), None, None]);
    assert_eq!(
        *reports.lock().unwrap(),
        [
            "/shadowed: admitted, 0 left",
            "/shadowed: would refuse",
            "/shadowed: would answer 401 Unauthorized",
            "/shadowed: would say x-cost: \"x\": a cost is a whole number from 0 to 1000000000000, given once",
            "/enforced: refused to [97]",
        ]
    );
    let all = layer.shadow();
    assert_eq!(send(&all, &inner, with(get("/enforced"), "k", "a")).await.status, 200);
}

#[tokio::test]
async fn the_decision_is_in_the_requests_extensions() {
    let (layer, inner) = layer_of(5);
    send(&layer.cost(2), &inner, get("/a")).await;
    let decision = inner.seen()[0].decision.unwrap();
    assert_eq!((decision.outcome(), decision.charged(), decision.remaining()), (Outcome::Allowed, 2, 3));
}

#[tokio::test]
async fn a_leaky_bucket_spaces_requests_by_the_limiters_clock() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let leaky = Limit::leaky_bucket(3, Rate::per_second(1)).unwrap();
    let layer = RateLimitLayer::new(limiter(&clock, leaky), path, MissingKey::Deny);
    let call = || layer.layer(inner.clone()).call(get("/a"));

    let (mut first, mut second, mut third) = (pin!(call()), pin!(call()), pin!(call()));
    assert!(poll(first.as_mut()).is_ready());
    assert!(poll(second.as_mut()).is_pending());
    assert!(poll(third.as_mut()).is_pending());
    let Poll::Ready(Ok(fourth)) = poll(pin!(call())) else { panic!("denied at once") };
    assert_eq!(fourth.status(), 429);

    clock.advance(Duration::from_micros(999_999));
    assert!(poll(second.as_mut()).is_pending(), "not before its turn");
    clock.advance(Duration::from_micros(1));
    let Poll::Ready(Ok(answer)) = poll(second.as_mut()) else { panic!("its turn") };
    assert_eq!(read(answer).await.header("ratelimit"), r#""api";r=1;t=1"#);
    clock.advance(Duration::from_secs(1));
    assert!(poll(third.as_mut()).is_ready());
    let starts: Vec<u64> = inner.seen().iter().map(|seen| seen.at.micros_since(at(0))).collect();
    assert_eq!(starts, [0, 1_000_000, 2_000_000]);
}

#[tokio::test]
async fn a_delay_is_handed_on_by_choice_and_a_shadow_has_none() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let leaky = Limit::leaky_bucket(3, Rate::per_second(1)).unwrap();
    let layer = RateLimitLayer::new(limiter(&clock, leaky), path, MissingKey::Deny).pacing(Pacing::HandOn);
    for _ in 0..3 {
        assert_eq!(send(&layer, &inner, get("/a")).await.status, 200);
    }
    let handed: Vec<Option<u128>> =
        inner.seen().iter().map(|seen| seen.delay.map(|HandedDelay(wait)| wait.as_micros())).collect();
    assert_eq!(handed, [None, Some(1_000_000), Some(2_000_000)]);

    let shadow = layer.pacing(Pacing::Sleep).shadow();
    for _ in 0..2 {
        assert!(poll(pin!(shadow.layer(inner.clone()).call(get("/b")))).is_ready());
    }
}

#[tokio::test]
async fn a_request_given_up_before_its_turn_never_starts() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let leaky = Limit::leaky_bucket(3, Rate::per_second(1)).unwrap();
    let layer = RateLimitLayer::new(limiter(&clock, leaky), path, MissingKey::Deny);
    send(&layer, &inner, get("/a")).await;
    {
        let mut second = pin!(layer.layer(inner.clone()).call(get("/a")));
        assert!(poll(second.as_mut()).is_pending());
        assert_eq!(clock.next_wake(), Some(at(1_000_000)));
    }
    assert_eq!(clock.next_wake(), None);
    assert_eq!(inner.seen().len(), 1);
}

#[tokio::test]
async fn limit_fields_are_a_choice() {
    let (layer, inner) = layer_of(1);
    let epoch =
        LimitFields { families: Families::XRateLimit, reset: ResetStyle::Epoch, ..Default::default() };
    let answer = send(&layer.clone().fields(epoch), &inner, get("/epoch")).await;
    assert_eq!(answer.header("x-ratelimit-reset"), (START / 1_000_000 + 1).to_string());
    assert_eq!(answer.header("ratelimit"), "");

    let quiet = layer.clone().fields_on_admission(false);
    assert_eq!(send(&quiet, &inner, get("/quiet")).await.limit_fields(), 0);
    let denied = send(&quiet, &inner, get("/quiet")).await;
    assert_eq!((denied.limit_fields(), denied.header("retry-after")), (5, "1"));

    let none = layer.fields(LimitFields { families: Families::None, ..Default::default() });
    assert_eq!(send(&none, &inner, get("/none")).await.limit_fields(), 0);
    let denied = send(&none, &inner, get("/none")).await;
    assert_eq!((denied.limit_fields(), denied.header("retry-after")), (0, "1"));
}

#[tokio::test]
async fn of_two_layers_the_inner_one_tells_its_limit_and_each_field_is_there_once() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let of = |name: &str, n| {
        let limiter = Limiter::builder(Policy::single(name, bucket(n)).unwrap()).clock(clock.clone()).build();
        RateLimitLayer::new(limiter.policy(name).unwrap(), path, MissingKey::Deny)
    };
    let (outer, narrow) = (of("outer", 10), of("narrow", 1));
    let mut service = outer.layer(narrow.layer(inner.clone()));
    let mut call = async || {
        let (parts, _) = service.call(get("/a")).await.unwrap().into_parts();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body: String::new() }
    };
    let admitted = call().await;
    assert_eq!(admitted.header("ratelimit"), r#""narrow";r=0;t=1"#);
    let denied = call().await;
    assert_eq!((denied.status, denied.header("retry-after")), (429, "1"));
    assert_eq!(denied.header("ratelimit"), r#""narrow";r=0;t=1"#);
    assert_eq!(denied.header("x-ratelimit-limit"), "1");
}

#[tokio::test]
async fn a_denial_may_be_answered_otherwise() {
    let (layer, inner) = layer_of(0);
    let own = layer.clone().on_denial(|denial: &Denial<'_>| {
        let path = denial.request().uri.path();
        let wait = denial.decision().unwrap().retry_after();
        let mut response = Response::new(format!("{path}: {:?}, {}", wait, denial.status()));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    });
    let answer = send(&own, &inner, get("/a")).await;
    assert_eq!((answer.status, answer.body.as_str()), (418, "/a: None, 429 Too Many Requests"));
    assert_eq!(answer.header("x-ratelimit-limit"), "0", "the fields come by themselves");

    let streamed = layer.clone().on_denial(|_: &Denial<'_>| {
        Response::new(DenialBody::new(http_body_util::Full::<bytes::Bytes>::from("streamed")))
    });
    assert_eq!(send(&streamed, &inner, get("/a")).await.body, "streamed");
    let empty = layer.clone().on_denial(|_: &Denial<'_>| Response::new(DenialBody::empty()));
    assert_eq!(send(&empty, &inner, get("/a")).await.body, "");
    let back = empty.on_denial(ProblemDenial);
    assert_eq!(send(&back, &inner, get("/a")).await.json()["status"], 429);
}

#[tokio::test]
async fn a_store_that_is_full_is_503() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let store = MemoryStore::builder().shards(1).max_keys(1).on_full(OnFull::RefuseNew).build();
    let limiter =
        Limiter::builder(Policy::single("api", bucket(5)).unwrap()).store(store).clock(clock.clone()).build();
    let layer = RateLimitLayer::new(limiter.policy("api").unwrap(), path, MissingKey::Deny);
    let mut answers = Vec::new();
    for n in 0..50 {
        answers.push(send(&layer, &inner, get(&format!("/{n}"))).await);
    }
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, ""));
    let kind = refused.json()["type"].as_str().unwrap().to_owned();
    assert!(kind.ends_with("#temporary-reduced-capacity"), "{kind}");
    assert_eq!(refused.header("ratelimit"), r#""api";r=0"#);
    let mut codes = Vec::new();
    for n in 0..50 {
        let answer = send(&layer.clone().on_denial(GrpcDenial), &inner, get(&format!("/grpc/{n}"))).await;
        codes.push(answer.header("grpc-status").to_owned());
    }
    assert!(codes.contains(&"14".to_owned()), "{codes:?}");
}

#[tokio::test]
async fn a_reload_is_followed() {
    let clock = clock();
    let inner = Inner::new(&clock);
    let limiter = Limiter::builder(Policy::single("api", bucket(1)).unwrap()).clock(clock.clone()).build();
    let layer = RateLimitLayer::new(limiter.policy("api").unwrap(), path, MissingKey::Deny);
    assert_eq!(send(&layer, &inner, get("/a")).await.header("ratelimit-policy"), r#""api";q=1;w=1"#);
    let changed = Policy::builder("api")
        .limit("api", bucket(3))
        .limit("day", Limit::fixed_window(9, Period::DAY))
        .build();
    limiter.reload(changed.unwrap()).unwrap();
    let answer = send(&layer, &inner, get("/b")).await;
    assert_eq!(answer.header("ratelimit-policy"), r#""api";q=3;w=3, "day";q=9;w=86400"#);
}

#[test]
fn the_future_and_the_service_can_go_to_other_threads() {
    fn sendable<T: Send>(_: T) {}
    let (layer, inner) = layer_of(1);
    sendable(layer.layer(inner.clone()).call(get("/a")));
    sendable(layer.layer(inner));
    assert!(format!("{layer:?}").contains("missing: Deny"));
    assert_eq!(layer_of(1).1.clock.now(), at(0));
}
