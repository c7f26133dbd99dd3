//! What decisions look like.

use serde_json::json;
use tidegate::{MemoryStore, OnFull};
use tidegate_server::Drain;

use crate::server::{FIVE, Server};

#[tokio::test]
async fn a_decision_has_every_field_in_order() {
    let server = Server::start(FIVE).await;
    let told = server.check("user:42", 2).await;
    assert_eq!(told.status, 200);
    assert_eq!(told.header("content-type"), Some("application/json"));
    assert_eq!(told.header("cache-control"), Some("no-store"));
    let limit = r#"{"name":"token_bucket","algorithm":"token_bucket","limit":5,"remaining":3,"#;
    let expected = [
        r#"{"allowed":true,"outcome":"allowed","policy":"api","bound_by":"token_bucket","limit":5,"#,
        r#""remaining":3,"retry_after_ms":0,"reset_after_ms":2000,"delay_ms":0,"limits":["#,
        limit,
        r#""retry_after_ms":0,"reset_after_ms":2000,"delay_ms":0}]}"#,
    ];
    assert_eq!(told.body, expected.concat());
}

#[tokio::test]
async fn a_denial_is_an_answer_like_any_other() {
    let server = Server::start(FIVE).await;
    server.check("k", 5).await;
    server.at_ms(1);
    let told = server.check("k", 1).await;
    assert_eq!(told.status, 200);
    let json = told.json();
    assert_eq!(json["allowed"], false);
    assert_eq!(json["outcome"], "denied");
    assert_eq!(json["retry_after_ms"], 999);
    let told = server.check("k", 6).await;
    assert_eq!(told.status, 200);
    let json = told.json();
    assert_eq!(json["outcome"], "cost_exceeds_capacity");
    assert_eq!(json["retry_after_ms"], json!(null));
    assert_eq!(json["reset_after_ms"], 4999);
}

#[tokio::test]
async fn what_never_comes_is_null_and_no_number_that_means_never() {
    let once = "policies: {once: {limits: [{algorithm: token_bucket, capacity: 1, refill: 0/s}]}}";
    let server = Server::start(once).await;
    server.check("k", 1).await;
    let told = server.check("k", 1).await;
    let json = told.json();
    assert_eq!((&json["retry_after_ms"], &json["reset_after_ms"]), (&json!(null), &json!(null)));
    let all = format!("{} {:?}", told.body, told.headers).to_lowercase();
    for word in ["inf", "nan", "-1", "18446744073709551615", "340282366920938463463374607431768211455"] {
        assert!(!all.contains(word), "{word}: {all}");
    }
    assert_eq!(told.header("retry-after"), None);
}

#[tokio::test]
async fn waits_longer_than_64_bits_are_integers() {
    let slow =
        "policies: {slow: {limits: [{algorithm: token_bucket, capacity: 1000000000000, refill: 1/366d}]}}";
    let server = Server::start(slow).await;
    server.check("k", 1_000_000_000_000).await;
    let told = server.check("k", 1_000_000_000_000).await;
    assert!(told.body.contains("\"retry_after_ms\":31622400000000000000000,"), "{}", told.body);
    assert_eq!(told.header("retry-after"), Some("31622400000000000000"));
}

#[tokio::test]
async fn a_leaky_bucket_tells_the_delay() {
    let leaky = "policies: {q: {limits: [{algorithm: leaky_bucket, capacity: 3, leak: 3/2s}]}}";
    let server = Server::start(leaky).await;
    server.check("k", 1).await;
    let json = server.check("k", 1).await.json();
    // Two thirds of a second, rounded up.
    assert_eq!((&json["delay_ms"], &json["limits"][0]["delay_ms"]), (&json!(667), &json!(667)));
}

#[tokio::test]
async fn the_cost_is_one_and_the_policy_the_only_one_unless_said() {
    let server = Server::start(FIVE).await;
    let json = server.post("/v1/check", r#"{"key":"k"}"#).await.json();
    assert_eq!((&json["policy"], &json["remaining"]), (&json!("api"), &json!(4)));
    let json = server.post("/v1/check", r#"{"policy":"api","key":"k","cost":0}"#).await.json();
    assert_eq!(json["remaining"], 4);
}

/// To JSON and its schemas 5.0 is an integer, and some clients cannot write it otherwise.
#[tokio::test]
async fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
    let server = Server::start(FIVE).await;
    assert_eq!(server.post("/v1/check", r#"{"key":"k","cost":3.0}"#).await.json()["remaining"], 2);
    assert_eq!(server.post("/v1/check", r#"{"key":"k","cost":2.000}"#).await.json()["remaining"], 0);
    for nothing in ["-0", "-0.0", "0.0"] {
        let body = format!(r#"{{"key":"l","cost":{nothing}}}"#);
        assert_eq!(server.post("/v1/check", body).await.json()["remaining"], 5, "{nothing}");
    }
}

#[tokio::test]
async fn of_several_policies_default_needs_no_name() {
    let two = "policies: {
        api: {limits: [{algorithm: gcra, rate: 1/s, burst: 5}]},
        default: {limits: [{algorithm: gcra, rate: 1/s, burst: 9}]},
    }";
    let server = Server::start(two).await;
    assert_eq!(server.check("k", 1).await.json()["limit"], 9);
    let json = server.post("/v1/check", r#"{"policy":"api","key":"k"}"#).await.json();
    // The same key under another policy is another bucket.
    assert_eq!((&json["limit"], &json["remaining"]), (&json!(5), &json!(4)));
}

#[tokio::test]
async fn any_bytes_are_a_key_of_their_own() {
    let server = Server::start(FIVE).await;
    let keys = [
        r#""key":"""#,
        r#""key":"a""#,
        r#""key":"a\u0000""#,
        r#""key":"\u00e9""#,
        r#""key_b64":"6Q==""#,
        r#""key_b64":"//8=""#,
        r#""key_b64":"AA==""#,
    ];
    for key in keys {
        let told = server.post("/v1/check", format!("{{{key},\"cost\":5}}")).await;
        assert_eq!(told.json()["remaining"], 0, "{key}: {}", told.body);
    }
    // The same bytes written otherwise are the same key.
    for (key, remaining) in
        [(r#""key":"\u0061""#, 0), (r#""key_b64":"YQ""#, 0), (r#""key_b64":"__8""#, 0), (r#""key":"b""#, 4)]
    {
        let told = server.post("/v1/check", format!("{{{key}}}")).await;
        assert_eq!(told.json()["remaining"], remaining, "{key}: {}", told.body);
    }
}

#[tokio::test]
async fn the_longest_key_is_a_key() {
    let server = Server::start(FIVE).await;
    let longest = "k".repeat(4_096);
    assert_eq!(server.check(&longest, 5).await.json()["remaining"], 0);
    assert_eq!(server.check(&longest[1..], 1).await.json()["remaining"], 4);
}

#[tokio::test]
async fn a_peek_shows_and_takes_nothing() {
    let server = Server::start(FIVE).await;
    server.check("a b", 3).await;
    for path in ["/v1/peek?key=a+b", "/v1/peek?key=a%20b&policy=api", "/v1/peek?key_b64=YSBi"] {
        let told = server.get(path).await;
        assert_eq!(told.status, 200);
        assert_eq!(told.json()["remaining"], 2, "{path}");
        assert_eq!(told.header("x-ratelimit-remaining"), Some("2"));
    }
    let head = server.request(reqwest::Method::HEAD, "/v1/peek?key=a+b").await;
    assert_eq!((head.status, head.header("x-ratelimit-remaining"), &*head.body), (200, Some("2"), ""));
}

#[tokio::test]
async fn a_full_store_refuses_new_keys_as_overloaded() {
    let store = MemoryStore::builder().max_keys(1).on_full(OnFull::RefuseNew).build();
    let server = Server::start_with(FIVE, store, |app| app, Drain::default()).await;
    server.check("first", 1).await;
    let told = server.check("second", 1).await;
    let json = told.json();
    assert_eq!((told.status, &json["allowed"], &json["outcome"]), (200, &json!(false), &json!("overloaded")));
    assert_eq!(json["retry_after_ms"], json!(null));
    assert_eq!(told.header("retry-after"), None);
    assert_eq!(server.check("first", 1).await.json()["outcome"], "allowed");
}

#[tokio::test]
async fn a_batch_is_decided_in_order_and_each_entry_on_its_own() {
    let server = Server::start(FIVE).await;
    let checks = r#"{"checks":[
        {"key":"a","cost":3},
        {"key":"a","cost":3},
        {"key":"b"},
        {"key":"a","cost":-1},
        {"policy":"none","key":"a"},
        7,
        {"key":"a","cost":2}
    ]}"#;
    let told = server.post("/v1/check/batch", checks).await;
    assert_eq!(told.status, 200, "{}", told.body);
    let json = told.json();
    let answers = json["answers"].as_array().unwrap();
    let remaining = |index: usize| (answers[index]["outcome"].as_str(), answers[index]["remaining"].as_u64());
    assert_eq!(answers.len(), 7);
    assert_eq!(remaining(0), (Some("allowed"), Some(2)));
    assert_eq!(remaining(1), (Some("denied"), Some(2)));
    assert_eq!(remaining(2), (Some("allowed"), Some(4)));
    assert_eq!(answers[3]["problem"]["field"], "checks[3].cost");
    assert_eq!(answers[4]["problem"]["status"], 404);
    assert_eq!(answers[5]["problem"]["field"], "checks[5]");
    assert_eq!(remaining(6), (Some("allowed"), Some(0)));
    // Several keys stand differently, so no header speaks for them.
    assert_eq!(told.header("x-ratelimit-limit"), None);
}

#[tokio::test]
async fn a_batch_may_be_empty_and_may_be_full() {
    let server = Server::start(FIVE).await;
    assert_eq!(server.post("/v1/check/batch", r#"{"checks":[]}"#).await.body, r#"{"answers":[]}"#);
    let most = vec![r#"{"key":"k","cost":0}"#; 1_000].join(",");
    let told = server.post("/v1/check/batch", format!("{{\"checks\":[{most}]}}")).await;
    assert_eq!(told.json()["answers"].as_array().unwrap().len(), 1_000);
    let told = server.post("/v1/check/batch", format!("{{\"checks\":[{most},7]}}")).await;
    told.is_problem(400, "checks: a batch has at most 1000 (send several)");
}

#[tokio::test]
async fn policies_are_listed_as_they_decide() {
    let config = r#"policies:
      api:
        limits:
          - {name: burst, algorithm: token_bucket, capacity: 100, refill: 10/s}
          - {name: daily, algorithm: fixed_window, limit: 10000, window: 1d}
        overrides:
          "secret-key": {burst: {capacity: 1000, refill: 100/s}}
      login:
        limits: [{algorithm: sliding_window_log, limit: 5, window: 1min}]"#;
    let server = Server::start(config).await;
    let told = server.get("/v1/policies").await;
    let json = told.json();
    assert_eq!(json["policies"][0]["name"], "api");
    assert_eq!(json["policies"][0]["default"], false);
    assert_eq!(json["policies"][0]["overrides"], 1);
    assert!(!told.body.contains("secret-key"));
    let burst = &json["policies"][0]["limits"][0];
    assert_eq!(
        (&burst["name"], &burst["limit"], &burst["rate"]),
        (&json!("burst"), &json!(100), &json!("10/s"))
    );
    assert_eq!((&burst["rate_amount"], &burst["rate_per_us"]), (&json!(10), &json!(1_000_000)));
    assert_eq!(burst["window_us"], json!(null));
    assert_eq!(burst["in_words"], "at most 100 at once, then 10 every second (one per 100 ms)");
    let daily = &json["policies"][0]["limits"][1];
    assert_eq!((&daily["rate"], &daily["window_us"]), (&json!(null), &json!(86_400_000_000_u64)));
    assert_eq!(json["policies"][1]["limits"][0]["algorithm"], "sliding_window_log");
}

#[tokio::test]
async fn a_key_with_figures_of_its_own_is_told_those() {
    let config = r#"policies: {api: {
        limits: [{name: burst, algorithm: token_bucket, capacity: 5, refill: 1/s}],
        overrides: {"vip:*": {burst: {capacity: 50, refill: 10/s}}}}}"#;
    let server = Server::start(config).await;
    let told = server.check("vip:1", 1).await;
    assert_eq!(told.json()["limit"], 50);
    assert_eq!(told.header("ratelimit-policy"), Some("\"burst\";q=50;w=5"));
}
