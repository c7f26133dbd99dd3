//! Credits, penalties and resets: who may, and what comes of them.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use crate::server::{FIVE, Server, TOKEN, Told};

const ROUTES: [&str; 3] = ["/v1/credit", "/v1/penalize", "/v1/reset"];

async fn authorized(server: &Server, path: &str, authorization: &str) -> Told {
    let request = server.client.post(server.url(path)).header(CONTENT_TYPE, "application/json");
    let request = request.header(AUTHORIZATION, authorization).body(r#"{"key":"k","units":1}"#);
    Told::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn off_without_a_token() {
    let server = Server::start(FIVE).await;
    for path in ROUTES {
        let told = server.post_admin(path, r#"{"key":"k","units":1}"#).await;
        told.is_problem(403, "start it with --admin-token-file FILE or TIDEGATE_ADMIN_TOKEN");
    }
}

#[tokio::test]
async fn only_for_whoever_shows_the_token() {
    let server = Server::start_admin(FIVE).await;
    server.check("k", 3).await;
    for path in ROUTES {
        let told = server.post(path, r#"{"key":"k","units":1}"#).await;
        told.is_problem(401, "authorization: missing");
        assert_eq!(told.header("www-authenticate"), Some("Bearer realm=\"tidegate\""));
        for wrong in [
            "Bearer wrong".to_owned(),
            "Bearer ".to_owned(),
            "Bearer".to_owned(),
            format!("Bearer {TOKEN}x"),
            format!("Bearer {}", &TOKEN[1..]),
            format!("Basic {TOKEN}"),
            TOKEN.to_owned(),
        ] {
            let told = authorized(&server, path, &wrong).await;
            told.is_problem(401, "authorization: not ");
            assert!(told.header("www-authenticate").is_some());
        }
    }
    assert_eq!(server.get("/v1/peek?key=k").await.json()["remaining"], 2, "something was done");
    assert_eq!(authorized(&server, "/v1/credit", &format!("bearer {TOKEN}")).await.json()["remaining"], 3);
}

#[tokio::test]
async fn a_credit_fills_no_further_than_full() {
    let server = Server::start_admin(FIVE).await;
    server.check("k", 5).await;
    let told = server.post_admin("/v1/credit", r#"{"key":"k","units":2}"#).await;
    assert_eq!((told.status, &told.json()["remaining"]), (200, &json!(2)));
    let told = server.post_admin("/v1/credit", r#"{"policy":"api","key":"k","units":9}"#).await;
    assert_eq!(told.json()["remaining"], 5);
    assert_eq!(server.check("k", 5).await.json()["remaining"], 0);
}

#[tokio::test]
async fn a_penalty_goes_into_debt_and_says_what_was_cut() {
    let config = "policies: {api: {limits: [
        {name: bucket, algorithm: token_bucket, capacity: 1000, refill: 10/s},
        {name: window, algorithm: fixed_window, limit: 1000, window: 1h, debt: 100}]}}";
    let server = Server::start_admin(config).await;
    let told = server.post_admin("/v1/penalize", r#"{"key":"k","units":1500}"#).await;
    let json = told.json();
    assert_eq!(told.status, 200);
    assert_eq!((&json["allowed"], &json["remaining"]), (&json!(false), &json!(0)));
    assert_eq!((&json["limits"][0]["cut"], &json["limits"][1]["cut"]), (&json!(0), &json!(400)));
    let peek = server.get("/v1/peek?key=k").await.json();
    assert_eq!(peek["outcome"], "denied");
    assert_eq!(peek["limits"][0]["retry_after_ms"], 50_000);
    assert!(peek["limits"][0].get("cut").is_none());
}

#[tokio::test]
async fn a_reset_forgets() {
    let server = Server::start_admin(FIVE).await;
    server.check("k", 5).await;
    let told = server.post_admin("/v1/reset", r#"{"key_b64":"aw"}"#).await;
    assert_eq!((&told.json()["remaining"], &told.json()["reset_after_ms"]), (&json!(5), &json!(0)));
    assert_eq!(server.check("k", 5).await.json()["allowed"], true);
}

#[tokio::test]
async fn neither_takes_less_than_nothing_nor_guesses() {
    let server = Server::start_admin(FIVE).await;
    for (path, body, said) in [
        ("/v1/credit", r#"{"key":"k","units":-1}"#, "units: -1: not a whole number"),
        ("/v1/penalize", r#"{"key":"k","units":1.5}"#, "units: 1.5: not a whole number"),
        ("/v1/penalize", r#"{"key":"k","units":1000000000001}"#, "units: 1000000000001: not"),
        ("/v1/credit", r#"{"key":"k"}"#, "units: missing (say how many units)"),
        ("/v1/credit", r#"{"key":"k","cost":1}"#, "unknown field `cost`"),
        ("/v1/reset", r#"{"key":"k","units":1}"#, "unknown field `units`"),
        ("/v1/reset", r#"{}"#, "key: missing"),
    ] {
        server.post_admin(path, body).await.is_problem(400, said);
    }
}
