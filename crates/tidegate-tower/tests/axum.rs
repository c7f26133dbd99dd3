//! The layer in axum: routes, extractors, and the example over a real socket.
#![allow(clippy::unwrap_used)]

#[path = "../examples/axum.rs"]
#[allow(dead_code, reason = "its main is not ours")]
mod example;
mod support;

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::connect_info::MockConnectInfo;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Json, Router};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use support::{bucket, clock, limiter};
use tidegate::{Decision, Limiter};
use tidegate_tower::client_ip::{ClientIp, Trust};
use tidegate_tower::{Denial, MissingKey, RateLimitLayer, key};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

/// The status, the units left by the headers, and the body.
async fn ask(app: &Router, request: Request<Body>) -> (u16, String, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let left = parts.headers.get("x-ratelimit-remaining").map_or("", |left| left.to_str().unwrap());
    (parts.status.as_u16(), left.to_owned(), String::from_utf8(body.to_vec()).unwrap())
}

async fn get_path(app: &Router, path: &str) -> (u16, String) {
    let (status, left, _) = ask(app, Request::get(path).body(Body::empty()).unwrap()).await;
    (status, left)
}

fn left(status: u16, left: &str) -> (u16, String) {
    (status, left.to_owned())
}

#[tokio::test]
async fn a_path_parameter_is_a_key() {
    let layer = RateLimitLayer::new(
        limiter(&clock(), bucket(2)),
        key::path_param("tenant"),
        MissingKey::DenyWith(StatusCode::BAD_REQUEST),
    );
    let orders = Router::new().route("/orders/{id}", get(async || "order"));
    let app =
        Router::new().nest("/{tenant}", orders).route("/about", get(async || "us")).layer(layer.clone());
    assert_eq!(get_path(&app, "/acme/orders/1").await, left(200, "1"));
    assert_eq!(get_path(&app, "/acme/orders/2").await, left(200, "0"));
    assert_eq!(get_path(&app, "/acme/orders/3").await, left(429, "0"));
    assert_eq!(get_path(&app, "/%61cme/orders/3").await, left(429, "0"), "decoded");
    assert_eq!(get_path(&app, "/other/orders/1").await, left(200, "1"));
    assert_eq!(get_path(&app, "/about").await, left(400, ""), "a route without it");
    assert_eq!(get_path(&app, "/%ff/orders/1").await, left(400, ""), "not UTF-8");

    let around = Router::new().route("/{tenant}", get(async || "x"));
    let around = tower::Layer::layer(&layer, around);
    let response = around.oneshot(Request::get("/acme").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 400, "around a router no route is chosen yet");
}

#[tokio::test]
async fn handlers_find_the_decision() {
    async fn handler(Extension(decision): Extension<Decision>) -> String {
        format!("{} left", decision.remaining())
    }
    let layer =
        RateLimitLayer::new(limiter(&clock(), bucket(9)), key::constant("all"), MissingKey::Deny).cost(2);
    let app = Router::new().route("/", get(handler)).layer(layer);
    assert_eq!(ask(&app, Request::get("/").body(Body::empty()).unwrap()).await.2, "7 left");
}

#[tokio::test]
async fn a_denial_may_be_any_response_of_axums() {
    let layer = RateLimitLayer::new(limiter(&clock(), bucket(0)), key::constant("all"), MissingKey::Deny)
        .on_denial(|denial: &Denial<'_>| {
            let decision = denial.decision().expect("refused");
            (denial.status(), Json(serde_json::json!({ "limit": decision.limit().get() }))).into_response()
        });
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    let answer = ask(&app, Request::get("/").body(Body::empty()).unwrap()).await;
    assert_eq!(answer, (429, "0".to_owned(), r#"{"limit":0}"#.to_owned()));
}

#[tokio::test]
async fn each_client_behind_the_proxy_has_its_own_limit_and_cannot_make_up_another() {
    let trusted = Trust::proxies(["10.0.0.0/8"]).unwrap();
    let layer = RateLimitLayer::new(
        limiter(&clock(), bucket(1)),
        key::client_ip(ClientIp::x_forwarded_for(trusted)),
        MissingKey::Deny,
    );
    let app = |peer: [u8; 4]| {
        Router::new()
            .route("/", get(async || "hello"))
            .layer(layer.clone())
            .layer(MockConnectInfo(SocketAddr::from((peer, 4711))))
    };
    let status = async |app: &Router, list: &str| {
        let request = Request::get("/").header("x-forwarded-for", list).body(Body::empty()).unwrap();
        ask(app, request).await.0
    };
    let behind = app([10, 0, 0, 1]);
    assert_eq!(status(&behind, "203.0.113.1").await, 200);
    assert_eq!(status(&behind, "203.0.113.2").await, 200);
    assert_eq!(status(&behind, "203.0.113.2").await, 429);
    assert_eq!(status(&behind, "9.9.9.9, 203.0.113.2").await, 429, "made up");
    let direct = app([192, 0, 2, 1]);
    assert_eq!(status(&direct, "203.0.113.77").await, 200);
    assert_eq!(status(&direct, "203.0.113.78").await, 429, "no proxy of ours");
}

#[tokio::test]
async fn without_connect_info_a_peer_key_is_missing_and_not_a_constant() {
    let layer = RateLimitLayer::new(limiter(&clock(), bucket(5)), key::peer_ip(), MissingKey::Deny);
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    assert_eq!(get_path(&app, "/").await, left(403, ""));
}

#[tokio::test]
async fn the_example_over_a_real_socket() {
    let clock = clock();
    let limiter = Limiter::builder(example::policy().unwrap()).clock(clock.clone()).build();
    let app = example::app(&limiter).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await.unwrap();
    });

    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut client, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut get = async || {
        let request =
            Request::get("/").header("host", "localhost").body(Empty::<bytes::Bytes>::new()).unwrap();
        let (parts, body) = client.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts, String::from_utf8(body.to_vec()).unwrap())
    };
    for n in (0..5).rev() {
        let (parts, body) = get().await;
        assert_eq!((parts.status.as_u16(), body.as_str()), (200, "hello\n"));
        assert_eq!(parts.headers["ratelimit"], format!("\"api\";r={n};t=1"));
    }
    let (parts, body) = get().await;
    assert_eq!(parts.status, 429);
    assert_eq!(parts.headers["retry-after"], "1");
    assert_eq!(parts.headers["content-type"], "application/problem+json");
    assert_eq!(parts.headers["content-length"], body.len().to_string());
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["api"]));

    clock.advance(Duration::from_secs(1));
    assert_eq!(get().await.0.status, 200);
    assert_eq!(get().await.0.status, 429);
}
