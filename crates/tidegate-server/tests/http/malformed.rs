//! Requests that are wrong, and what is said about them.

use reqwest::Method;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::server::{FIVE, Server, Told};

#[tokio::test]
async fn each_wrong_body_is_told_its_field_its_value_the_rule_and_the_mend() {
    let range = "not a whole number from 0 to 1000000000000";
    let table = [
        (r#"{"key":"k","cost":-1}"#, format!("cost: -1: {range} (POST /v1/credit gives units back)")),
        (r#"{"key":"k","cost":-0.5}"#, format!("cost: -0.5: {range} (POST /v1/credit")),
        (r#"{"key":"k","cost":1.5}"#, format!("cost: 1.5: {range} (round it as is fair to the client)")),
        (r#"{"key":"k","cost":0.000001}"#, format!("cost: 0.000001: {range} (round it")),
        (r#"{"key":"k","cost":1e3}"#, format!("cost: 1e3: {range} (write digits only, without an exponent)")),
        (r#"{"key":"k","cost":1.0e3}"#, format!("cost: 1.0e3: {range} (write digits only")),
        (r#"{"key":"k","cost":-1.0}"#, format!("cost: -1.0: {range} (POST /v1/credit")),
        (r#"{"key":"k","cost":1000000000001.0}"#, format!("cost: 1000000000001.0: {range} (send less)")),
        (r#"{"key":"k","cost":"1"}"#, format!("cost: \"1\": {range} (write it without quotes)")),
        (r#"{"key":"k","cost":true}"#, format!("cost: true: {range} (write a number)")),
        (r#"{"key":"k","cost":null}"#, format!("cost: null: {range} (leave the field out for a cost of 1)")),
        (r#"{"key":"k","cost":1000000000001}"#, format!("cost: 1000000000001: {range} (send less)")),
        (r#"{"key":"k","cost":99999999999999999999}"#, format!("cost: 99999999999999999999: {range}")),
        (r#"{"key":"k","cost":[1]}"#, format!("cost: [1]: {range}")),
        (r#"{"key":7}"#, "key: 7: not a string (write it in quotes)".into()),
        (r#"{"key":null}"#, "key: null: not a string (leave the field out instead)".into()),
        (
            r#"{"key":"\ud800"}"#,
            "key: \"\\ud800\": not Unicode text (send keys that are not as key_b64)".into(),
        ),
        (r#"{"key_b64":"?"}"#, "key_b64: \"?\": not base64".into()),
        (r#"{"key_b64":"YQ==YQ=="}"#, "key_b64: \"YQ==YQ==\": not base64".into()),
        (r#"{"key":"k","key_b64":"aw=="}"#, "key: given twice (send key or key_b64, not both)".into()),
        (r#"{}"#, "key: missing".into()),
        (r#"{"policy":1,"key":"k"}"#, "policy: 1: not a string".into()),
        (r#"{"key":"k","coost":1}"#, "unknown field `coost`, expected one of".into()),
        (r#"{"key":"k","cost":1,"cost":1}"#, "duplicate field `cost`".into()),
        (r#"{"key":"k","cost":1,"c\u006fst":1}"#, "duplicate field `cost`".into()),
        (r#"["api","k",null,1]"#, "the body: [\"api\",\"k\",null,1]: not an object".into()),
        (r#"" k""#, "the body: invalid type: string".into()),
        (r#"{"key":"k"} x"#, "not JSON: trailing characters".into()),
        (r#"{"key":"k""#, "not JSON: EOF".into()),
        (r#"{'key':'k'}"#, "not JSON: key must be a string".into()),
        ("", "the body: empty".into()),
        ("\u{feff}{}", "not JSON".into()),
        ("{\"key\":\"a\nb\"}", "not JSON: control character".into()),
    ];
    let server = Server::start(FIVE).await;
    for (body, said) in table {
        server.post("/v1/check", body).await.is_problem(400, &said);
    }
    assert_eq!(server.check("k", 0).await.json()["remaining"], 5, "something was charged");
}

#[tokio::test]
async fn what_was_written_is_cut_to_a_line() {
    let server = Server::start(FIVE).await;
    let told = server.post("/v1/check", format!(r#"{{"key":"k","cost":{}}}"#, "9".repeat(5_000))).await;
    told.is_problem(400, "cost: 99999");
    assert!(told.body.len() < 500, "{}", told.body);
}

#[tokio::test]
async fn no_depth_is_too_deep() {
    let server = Server::start(FIVE).await;
    let deep = "[".repeat(30_000);
    server.post("/v1/check", format!(r#"{{"key":{deep}"#)).await.is_problem(400, "not JSON");
    server
        .post("/v1/check", format!(r#"{{"cost":{deep}{}}}"#, "]".repeat(30_000)))
        .await
        .is_problem(400, "cost: [[[");
    server.post("/v1/check", deep).await.is_problem(400, "not an object");
}

#[tokio::test]
async fn a_body_that_is_not_utf8_is_refused_with_the_mend() {
    let server = Server::start(FIVE).await;
    let body = b"{\"key\":\"\xff\"}".to_vec();
    server
        .post("/v1/check", body)
        .await
        .is_problem(400, "not UTF-8 at byte 8 (send JSON in UTF-8; a key that is not");
}

#[tokio::test]
async fn a_key_has_a_longest() {
    let server = Server::start(FIVE).await;
    let told = server.check(&"\u{e9}".repeat(2_049), 1).await;
    told.is_problem(400, "key: 4098 bytes: a key has at most 4096");
    let told = server.get(&format!("/v1/peek?key={}", "k".repeat(4_097))).await;
    told.is_problem(400, "key: 4097 bytes");
}

#[tokio::test]
async fn an_unknown_policy_is_told_the_known_ones() {
    let server = Server::start(FIVE).await;
    let said = "policy: \"apy\": no policy has this name (there are api)";
    server.post("/v1/check", r#"{"policy":"apy","key":"k"}"#).await.is_problem(404, said);
    server.get("/v1/peek?policy=apy&key=k").await.is_problem(404, said);
    let two = FIVE.replace("{api:", "{login: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}, api:");
    let server = Server::start(&two).await;
    server
        .check("k", 1)
        .await
        .is_problem(400, "policy: missing, and there are several (name one of login, api)");
}

#[tokio::test]
async fn a_query_is_read_as_strictly() {
    let server = Server::start(FIVE).await;
    for (query, said) in [
        ("", "key: missing"),
        ("?key=%ff", "key: \"%ff\": not UTF-8 (send keys that are not as key_b64)"),
        ("?key=a&key=b", "key: given twice"),
        ("?key=a&cost=1", "unknown parameter \"cost\""),
        ("?key_b64=%3F", "key_b64: \"?\": not base64"),
    ] {
        server.get(&format!("/v1/peek{query}")).await.is_problem(400, said);
    }
}

/// Posts with this media type.
async fn post_as(server: &Server, media_type: Option<&str>) -> Told {
    let request = server.client.post(server.url("/v1/check")).body(r#"{"key":"k"}"#);
    let request = match media_type {
        Some(media_type) => request.header(CONTENT_TYPE, media_type),
        None => request,
    };
    Told::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn only_json_may_be_posted() {
    let server = Server::start(FIVE).await;
    for right in ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"] {
        assert_eq!(post_as(&server, Some(right)).await.status, 200, "{right}");
    }
    for wrong in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonp",
        "json",
    ] {
        post_as(&server, Some(wrong)).await.is_problem(415, wrong);
    }
    post_as(&server, None)
        .await
        .is_problem(415, "content-type: missing (send content-type: application/json)");
    let zipped = server.client.post(server.url("/v1/check")).header(CONTENT_TYPE, "application/json");
    let zipped = zipped.header(CONTENT_ENCODING, "gzip").body("x").send().await.unwrap();
    Told::of(zipped).await.is_problem(415, "content-encoding");
    assert_eq!(server.get("/v1/peek?key=k").await.json()["remaining"], 2);
}

#[tokio::test]
async fn a_body_has_a_largest() {
    let server = Server::start(FIVE).await;
    let padded = |bytes: usize| format!("{{\"key\":\"k\"{}}}", " ".repeat(bytes - 11));
    assert_eq!(server.post("/v1/check", padded(64 << 10)).await.status, 200);
    let too_large = server.post("/v1/check", padded((64 << 10) + 1)).await;
    too_large.is_problem(413, "the body is larger than 64 KiB");
    let batch = format!("{{\"checks\":[]{}}}", " ".repeat((1 << 20) - 13));
    assert_eq!(server.post("/v1/check/batch", batch.clone()).await.status, 200);
    server.post("/v1/check/batch", batch + " ").await.is_problem(413, "the body is larger than 1024 KiB");
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let server = Server::start(FIVE).await;
    for (method, path, allow) in [
        (Method::GET, "/v1/check", "POST"),
        (Method::PUT, "/v1/check/batch", "POST"),
        (Method::OPTIONS, "/v1/check", "POST"),
        (Method::POST, "/v1/peek", "GET,HEAD"),
        (Method::DELETE, "/v1/policies", "GET,HEAD"),
        (Method::GET, "/v1/credit", "POST"),
        (Method::POST, "/metrics", "GET,HEAD"),
        (Method::POST, "/docs", "GET,HEAD"),
        (Method::TRACE, "/livez", "GET,HEAD"),
    ] {
        let told = server.request(method.clone(), path).await;
        told.is_problem(405, &format!("{method} {path}: the path does not take this method"));
        assert_eq!(told.header("allow"), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn nowhere_is_a_problem_too() {
    let server = Server::start(FIVE).await;
    for path in ["/", "/v1", "/v1/check/", "/v1/nothing?x=1", "/docs/../etc/passwd", "//v1/check"] {
        let told = server.get(path).await;
        told.is_problem(404, "nothing is at this path (see /docs)");
    }
}
