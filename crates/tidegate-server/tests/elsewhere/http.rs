//! HTTP, forward auth, and gRPC.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::{Request, Response, header};
use serde_json::Value;
use tidegate::clock::ManualClock;
use tidegate::store::StoreErrorKind;
use tidegate_server::grpc::messages::{RateLimitDescriptor, RateLimitOverride, RateLimitRequest, Unit};
use tidegate_server::{App, Stopped, grpc};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::Code;
use tower::ServiceExt as _;

use crate::grpc_client::{Client, connect, descriptor};
use crate::{TOKEN, app};

async fn send(app: &Arc<App>, request: Request<Body>) -> (http::response::Parts, String) {
    let answered: Response<Body> =
        tidegate_server::http::router(Arc::clone(app)).oneshot(request).await.unwrap();
    let (head, body) = answered.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    (head, String::from_utf8(body.to_vec()).unwrap())
}

fn post(path: &str, body: &str) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Body::from(body.to_owned()))
        .unwrap()
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).header("x-api-key", "k").body(Body::empty()).unwrap()
}

/// The gRPC door of this server, open, and a client at it.
async fn grpc_door(app: Arc<App>) -> (JoinHandle<Stopped>, Client) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let door = grpc::serve(listener, Arc::clone(&app), Duration::from_secs(1), std::future::pending());
    let serving = tokio::spawn(door);
    (serving, connect(address, ManualClock::default(), app).await)
}

fn json(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

#[tokio::test]
async fn every_route_waits_for_the_store() {
    let (remote, app) = app();
    let remaining = async |request| json(&send(&app, request).await.1)["remaining"].as_u64().unwrap();
    assert_eq!(remaining(post("/v1/check", r#"{"policy":"api","key":"k","cost":2}"#)).await, 3);
    assert_eq!(remaining(get("/v1/peek?policy=api&key=k")).await, 3);
    assert_eq!(remaining(post("/v1/credit", r#"{"policy":"api","key":"k","units":1}"#)).await, 4);
    assert_eq!(remaining(post("/v1/penalize", r#"{"policy":"api","key":"k","units":2}"#)).await, 2);
    assert_eq!(remaining(post("/v1/reset", r#"{"policy":"api","key":"k"}"#)).await, 5);
    let (head, _) = send(&app, get("/v1/forward-auth/r")).await;
    assert_eq!((head.status.as_u16(), &head.headers["x-ratelimit-remaining"]), (200, &"4".parse().unwrap()));
    // One question each.
    assert_eq!(remote.asked(), 6);
    let checks = r#"{"checks":[{"policy":"log","key":"a"},{"policy":"none","key":"a"},{"policy":"api","key":"k","cost":4},
        {"policy":"log","key":"a","cost":3},{"policy":"log","key":"b"}]}"#;
    let (_, body) = send(&app, post("/v1/check/batch", checks)).await;
    let answers = json(&body)["answers"].as_array().unwrap().clone();
    let told = |answer: &Value| answer["remaining"].as_u64();
    assert_eq!(answers.iter().map(told).collect::<Vec<_>>(), [Some(2), None, Some(0), Some(2), Some(2)]);
    assert_eq!(answers[1]["problem"]["status"], 404);
    assert_eq!(remote.asked(), 1, "all of a batch in one question");
}

#[tokio::test]
async fn a_store_that_is_down_is_503_and_no_refusal() {
    let (remote, app) = app();
    remote.fail(true);
    let requests = [
        post("/v1/check", r#"{"policy":"api","key":"k"}"#),
        get("/v1/peek?policy=api&key=k"),
        post("/v1/credit", r#"{"policy":"api","key":"k","units":1}"#),
        post("/v1/penalize", r#"{"policy":"api","key":"k","units":1}"#),
        post("/v1/reset", r#"{"policy":"api","key":"k"}"#),
        get("/v1/forward-auth/r"),
    ];
    for request in requests {
        let asked = request.uri().to_string();
        let (head, body) = send(&app, request).await;
        assert_eq!(head.status.as_u16(), 503, "{asked}: {body}");
        assert_eq!(head.headers[header::CONTENT_TYPE], "application/problem+json", "{asked}");
        assert!(!head.headers.contains_key("x-ratelimit-remaining"), "{asked}: nothing is known");
        let problem = json(&body);
        assert_eq!(
            problem["type"],
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
        );
        assert!(!body.contains("10.1.2.3"), "{asked}: where the store is is no client's business");
    }
    // Of a batch each has its own.
    let checks = r#"{"checks":[{"policy":"api","key":"k"},{"policy":"api","key":"l"}]}"#;
    let (head, body) = send(&app, post("/v1/check/batch", checks)).await;
    assert_eq!(head.status.as_u16(), 200, "{body}");
    let answers = json(&body)["answers"].as_array().unwrap().clone();
    assert_eq!(answers.iter().map(|it| it["problem"]["status"].clone()).collect::<Vec<_>>(), [503, 503]);
    // What does not need the store is there.
    let (head, body) = send(&app, get("/metrics")).await;
    assert_eq!(head.status.as_u16(), 200);
    assert!(body.contains("tidegate_store_errors_total 8\n"), "{body}");
    assert!(body.contains(r#"decisions_total{policy="api",outcome="denied"} 0"#), "{body}");
    assert!(!body.contains("tidegate_keys "), "it does not know what others keep: {body}");
    let (head, _) = send(&app, post("/v1/check", r#"{"policy":"none","key":"k"}"#)).await;
    assert_eq!(head.status.as_u16(), 404);
    remote.fail(false);
    let (_, body) = send(&app, post("/v1/check", r#"{"policy":"api","key":"k"}"#)).await;
    assert_eq!(json(&body)["remaining"], 4);
}

#[tokio::test]
async fn a_check_without_an_answer_takes_none_of_its_batch_with_it() {
    let (remote, app) = app();
    remote.fail_key("lost", StoreErrorKind::Outage);
    remote.fail_key("bad", StoreErrorKind::Damaged);
    remote.fail_key("apart", StoreErrorKind::Unfit);
    let checks = r#"{"checks":[{"policy":"api","key":"k","cost":2},{"policy":"api","key":"lost"},
        {"policy":"none","key":"k"},{"policy":"log","key":"bad"},{"policy":"log","key":"apart"},{"policy":"api","key":"k"}]}"#;
    let (head, body) = send(&app, post("/v1/check/batch", checks)).await;
    assert_eq!(head.status.as_u16(), 200);
    let answers = json(&body)["answers"].as_array().unwrap().clone();
    let told = |answer: &Value| (answer["remaining"].as_u64(), answer["problem"]["status"].as_u64());
    assert_eq!(
        answers.iter().map(told).collect::<Vec<_>>(),
        [
            (Some(3), None),
            (None, Some(503)),
            (None, Some(404)),
            (None, Some(500)),
            (None, Some(500)),
            (Some(2), None)
        ]
    );
    assert_eq!(answers[3]["problem"]["type"], "/docs#record-damaged");
    assert_eq!(answers[4]["problem"]["type"], "/docs#store-unfit");
    assert!(
        !body.contains("10.1.2.3") && !body.contains("zebra"),
        "what is kept where is no client's business"
    );
    // As it would be alone, and whatever is asked of it.
    for (key, status) in [("lost", 503), ("bad", 500), ("apart", 500)] {
        for (path, more) in
            [("check", ""), ("credit", r#","units":1"#), ("penalize", r#","units":1"#), ("reset", "")]
        {
            let body = format!(r#"{{"policy":"api","key":"{key}"{more}}}"#);
            let (head, body) = send(&app, post(&format!("/v1/{path}"), &body)).await;
            assert_eq!(head.status.as_u16(), status, "{path}: {body}");
            assert_eq!(json(&body)["detail"].as_str().unwrap().contains("try again later"), status == 503);
            assert_eq!(json(&body)["detail"].as_str().unwrap().contains("an operator"), status == 500);
        }
    }
    let (_, body) = send(&app, get("/metrics")).await;
    assert!(body.contains("tidegate_store_errors_total 15\n"), "{body}");
    assert!(body.contains(r#"decisions_total{policy="api",outcome="allowed"} 2"#), "{body}");
}

fn forced(user: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(&[("forced", user)]) }
}

#[tokio::test]
async fn envoy_waits_for_the_store_and_is_told_when_it_is_down() {
    let (remote, app) = app();
    let (serving, client) = grpc_door(app).await;
    let asked = descriptor(&[("user", "ann")]);
    assert_eq!(client.descriptors(std::slice::from_ref(&asked)).await.statuses[0].limit_remaining, 4);
    remote.fail(true);
    let limit = Some(RateLimitOverride { requests_per_unit: 9, unit: Unit::Hour.into() });
    let brought = RateLimitDescriptor { limit, ..asked.clone() };
    let descriptors = vec![brought.clone(), asked.clone(), forced("bob", 2), forced("eve", 3)];
    let request = RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 };
    let status = client.ask(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(!status.message().contains("10.1.2.3"));
    remote.fail(false);
    for (user, kind, code) in [
        ("bad", StoreErrorKind::Damaged, Code::DataLoss),
        ("apart", StoreErrorKind::Unfit, Code::FailedPrecondition),
    ] {
        for descriptors in [vec![descriptor(&[("user", user)])], vec![forced(user, 1), forced("kim", 1)]] {
            // The key of a descriptor is the server's to make; so all are damaged meanwhile.
            remote.fail_all(Some(kind));
            let request = RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 };
            let status = client.ask(request).await.unwrap_err();
            assert_eq!(status.code(), code, "{status}");
            assert!(
                status.message().contains("an operator") && !status.message().contains("zebra"),
                "{status}"
            );
            remote.fail_all(None);
        }
    }
    let left = async |descriptors: &[RateLimitDescriptor]| {
        let statuses = client.descriptors(descriptors).await.statuses;
        statuses.iter().map(|status| status.limit_remaining).collect::<Vec<_>>()
    };
    assert_eq!(left(&[asked.clone(), brought]).await, [3, 8], "nothing was charged, whatever it was under");
    remote.asked();
    assert_eq!(
        left(&[forced("bob", 2), forced("eve", 3), asked.clone(), forced("bob", 1)]).await,
        [3, 2, 2, 2]
    );
    assert_eq!(left(&[forced("tom", 2), forced("joe", 3)]).await, [3, 2], "both on their way at once");
    assert_eq!(remote.asked(), 6);
    remote.let_pass(true);
    let answer = client.descriptors(&[forced("zoe", 1), asked.clone(), descriptor(&[("user", "zoe")])]).await;
    assert_eq!(answer.dynamic_metadata.unwrap().fields.keys().collect::<Vec<_>>(), ["degraded"]);
    let told: Vec<_> = answer.statuses.iter().map(|status| status.current_limit.is_some()).collect();
    assert_eq!(told, [true, false, false], "nothing is known of what was let pass uncounted");
    let header = answer.response_headers_to_add.iter().find(|header| header.key == "x-ratelimit-remaining");
    assert_eq!(header.unwrap().value, "4");
    serving.abort();
}

#[tokio::test]
async fn a_shadow_whose_store_has_no_answer_is_nobodys_trouble() {
    let (remote, app) = app();
    let (serving, client) = grpc_door(app).await;
    let asked = ["user", "dark", "dark_forced"].map(|key| descriptor(&[(key, "ann")]));
    let told = async || {
        let statuses = client.descriptors(&asked).await.statuses;
        statuses.iter().map(|it| (it.current_limit.is_some(), it.limit_remaining)).collect::<Vec<_>>()
    };
    assert_eq!(told().await, [(true, 4), (true, 2), (true, 2)]);
    remote.fail_policy("log");
    assert_eq!(told().await, [(true, 3), (false, 0), (false, 0)], "the request does not depend on shadows");
    remote.fail_policy("api");
    let request = RateLimitRequest { domain: "edge".into(), descriptors: asked.to_vec(), hits_addend: 0 };
    assert_eq!(client.ask(request).await.unwrap_err().code(), Code::Unavailable);
    serving.abort();
}
