//! `POST /json` and `/healthcheck`, as envoyproxy/ratelimit answers them.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::MemoryStore;
use tidegate_server::Drain;

use crate::server::{Server, Told};

const CONFIG: &str = "
policies: {tenant: {limits: [{name: minute, algorithm: fixed_window, limit: 10, window: 1min}]}}
envoy: {edge: [{key: tenant, policy: tenant, descriptors: [{key: free, unlimited: true}]}]}";

async fn post(server: &Server, body: impl ToString, headers: &[(&str, &str)]) -> Told {
    let request = server.client.post(format!("http://{}/json", server.address)).body(body.to_string());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Told::of(request.send().await.unwrap()).await
}

async fn ask(server: &Server, body: Value) -> (u16, Value) {
    let told = post(server, body, &[]).await;
    (told.status, serde_json::from_str(&told.body).unwrap_or(Value::Null))
}

fn one(hits: Value) -> Value {
    let entries = json!([{"key": "tenant", "value": "acme"}]);
    json!({"domain": "edge", "descriptors": [{"entries": entries, "hitsAddend": hits}]})
}

#[tokio::test]
async fn ok_is_200_and_over_the_limit_429() {
    let server = Server::start(CONFIG).await;
    let (status, answer) = ask(&server, one(json!(4))).await;
    let limit = json!({"requestsPerUnit": 10, "unit": "MINUTE", "name": "minute"});
    assert_eq!((status, &answer["overallCode"]), (200, &json!("OK")));
    assert_eq!(
        answer["statuses"],
        json!([{"code": "OK", "currentLimit": limit, "limitRemaining": 6, "durationUntilReset": "60s"}])
    );
    let header = json!({"key": "x-ratelimit-remaining", "value": "6"});
    assert!(answer["responseHeadersToAdd"].as_array().unwrap().contains(&header), "{answer}");
    assert_eq!(ask(&server, one(json!("6"))).await.0, 200, "a number in quotes");
    let told = post(&server, one(json!(1)), &[]).await;
    assert_eq!(told.status, 429);
    assert_eq!(told.header("content-type"), Some("application/json"));
    let answer: Value = serde_json::from_str(&told.body).unwrap();
    assert_eq!(answer["overallCode"], "OVER_LIMIT");
    let expected = json!({"code": "OVER_LIMIT", "currentLimit": limit, "durationUntilReset": "60s"});
    assert_eq!(answer["statuses"], json!([expected]), "what is zero is left out");
    assert!(answer["rawBody"].as_str().unwrap().starts_with("eyJ0eXBlIjoi"), "problem details in base64");
}

#[tokio::test]
async fn names_in_both_spellings_and_what_is_null_is_not_there() {
    let server = Server::start(CONFIG).await;
    let entries = json!([{"key": "tenant", "value": "acme"}]);
    let of = |descriptor: Value| json!({"domain": "edge", "descriptors": [descriptor], "hits_addend": 2});
    let left = async |body: Value| {
        let (status, answer) = ask(&server, body).await;
        assert_eq!(status, 200, "{answer}");
        answer["statuses"][0]["limitRemaining"].as_u64().unwrap_or(0)
    };
    assert_eq!(left(of(json!({"entries": entries}))).await, 8);
    assert_eq!(left(of(json!({"entries": entries, "hits_addend": 0}))).await, 8);
    assert_eq!(left(of(json!({"entries": entries, "hitsAddend": null}))).await, 6);
    assert_eq!(left(of(json!({"entries": entries, "hitsAddend": 3.0, "isNegativeHits": true}))).await, 9);
    assert_eq!(left(of(json!({"entries": entries, "hits_addend": 1, "is_negative_hits": true}))).await, 10);
    for (requests, unit) in [("requestsPerUnit", json!("HOUR")), ("requests_per_unit", json!(3))] {
        let brought = json!({"entries": entries, "limit": {requests: 7, "unit": unit}});
        assert!(left(of(brought)).await <= 5);
    }
    let free = json!([{"key": "tenant", "value": "acme"}, {"key": "free", "value": ""}]);
    assert_eq!(left(of(json!({"entries": free}))).await, u64::from(u32::MAX));
    assert_eq!(left(json!({"domain": "other", "descriptors": [{}]})).await, 0);
}

#[tokio::test]
async fn what_is_no_question_is_400() {
    let server = Server::start(CONFIG).await;
    for (body, said) in [
        ("", "EOF"),
        ("\"x\"", "invalid type"),
        ("{}", "domain: it is empty"),
        (r#"{"domain": "edge"}"#, "descriptors: there is none"),
        (r#"{"domain": "edge", "descriptors": [], "x": 1}"#, "unknown field `x`"),
        (r#"{"domain": 7}"#, "invalid type"),
        (r#"{"domain": "edge", "descriptors": [{"hitsAddend": -1}]}"#, "a whole number"),
        (r#"{"domain": "edge", "descriptors": [{"hitsAddend": 1.5}]}"#, "a whole number"),
        (r#"{"domain": "edge", "descriptors": [{"hitsAddend": "+1"}]}"#, "a whole number"),
        (r#"{"domain": "edge", "descriptors": [{}], "hitsAddend": 4294967296}"#, "out of range"),
        (r#"{"domain": "edge", "descriptors": [{"limit": {"unit": "WEEK"}}]}"#, "limit.unit"),
        (r#"{"domain": "edge", "descriptors": [{"limit": {"unit": "hour"}}]}"#, "limit.unit"),
        (r#"{"domain": "edge", "descriptors": [{"limit": {"unit": 7}}]}"#, "limit.unit"),
        (r#"{"domain": "edge", "descriptors": [{"limit": {}}]}"#, "limit.unit"),
    ] {
        let told = post(&server, body, &[]).await;
        assert_eq!(told.status, 400, "{body}");
        assert!(told.body.contains(said), "{body}: {}", told.body);
    }
    let none = Server::start("policies: {a: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}").await;
    assert_eq!(post(&none, one(json!(1)), &[]).await.status, 400);
}

#[tokio::test]
async fn a_page_of_another_site_charges_nobody() {
    let server = Server::start(CONFIG).await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    assert_eq!(post(&server, one(json!(1)), &[form]).await.status, 200);
    let foreign = ("origin", "https://elsewhere.example");
    assert_eq!(post(&server, one(json!(1)), &[form, foreign]).await.status, 415);
    assert_eq!(ask(&server, one(json!(0))).await.1["statuses"][0]["limitRemaining"], 9);
}

#[tokio::test]
async fn healthcheck_says_ok_until_the_drain() {
    let drain = Drain { notice: Duration::from_secs(3_600), ..Drain::default() };
    let mut server = Server::start_with(CONFIG, MemoryStore::default(), |app| app, drain).await;
    let told = server.get("/healthcheck").await;
    assert_eq!((told.status, &*told.body), (200, "OK"));
    server.stop();
    while server.app.is_ready() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/healthcheck").await.status, 500);
}
