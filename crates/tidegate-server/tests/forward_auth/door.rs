//! What a rule lets through and what it charges.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use tidegate::{MemoryStore, OnFull};
use tidegate_server::config::Config;
use tidegate_server::{Drain, Reloader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Server, Told};

/// Twenty at once, one a second: four writes of five.
pub const POLICIES: &str =
    "policies: {api: {limits: [{name: burst, algorithm: token_bucket, capacity: 20, refill: 1/s}]}}\n";

/// A server that trusts this machine's own address, with this rule, named `r`.
pub async fn server_with(rule: &str) -> Server {
    let proxies = "trusted_proxies: {addresses: [127.0.0.1]}\n";
    Server::start(&format!("{POLICIES}{proxies}rules: [{{name: r, {rule}}}]")).await
}

/// Asks at the rule `r`, the way behind it and the headers as given.
pub async fn ask(server: &Server, method: &str, behind: &str, headers: &[(&str, &str)]) -> Told {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = server.client.request(method, server.url(&format!("/v1/forward-auth/r{behind}")));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Told::of(request.send().await.unwrap()).await
}

/// What is left after an answer; `None` if it was not charged.
pub fn left(told: &Told) -> Option<u64> {
    told.header("x-ratelimit-remaining").map(|left| left.parse().unwrap())
}

const WRITES: &str = "match: {method: [POST, PUT], path: /v1/*}, policy: api, key: header:x-api-key, cost: 5";

fn post<'a>(uri: &'a str, key: &'a str) -> [(&'a str, &'a str); 3] {
    [("x-forwarded-method", "POST"), ("x-forwarded-uri", uri), ("x-api-key", key)]
}

#[tokio::test]
async fn a_request_that_fits_is_charged_and_then_denied() {
    let server = server_with(WRITES).await;
    for remaining in [15, 10, 5, 0] {
        let told = ask(&server, "GET", "", &post("/v1/orders?a=b", "acme")).await;
        assert_eq!((told.status, &*told.body, left(&told)), (200, "", Some(remaining)));
        assert_eq!(told.header("ratelimit-policy"), Some("\"burst\";q=20;w=20"));
        assert_eq!(told.header("cache-control"), Some("no-store"));
        assert_eq!(told.header("retry-after"), None);
    }
    let told = ask(&server, "GET", "", &post("/v1/orders", "acme")).await;
    assert_eq!((told.status, left(&told)), (429, Some(0)));
    assert_eq!(told.header("retry-after"), Some("5"));
    assert_eq!(told.header("ratelimit"), Some("\"burst\";r=0;t=1"));
    assert_eq!(told.header("content-type"), Some("application/problem+json"));
    assert_eq!(told.header("cache-control"), Some("no-store"));
    let problem = told.json();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((problem["status"].as_u64(), &problem["violated-policies"][0]), (Some(429), &"burst".into()));
    let other = ask(&server, "GET", "", &post("/v1/orders", "other")).await;
    assert_eq!((other.status, left(&other)), (200, Some(15)));
    server.advance(Duration::from_secs(5));
    assert_eq!(ask(&server, "GET", "", &post("/v1/orders", "acme")).await.status, 200);
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_let_through_uncharged() {
    let server = server_with(WRITES).await;
    for (method, uri) in [("GET", "/v1/orders"), ("POST", "/v2/orders"), ("POST", "/v1"), ("post", "/v1/a")] {
        let headers = [("x-forwarded-method", method), ("x-forwarded-uri", uri), ("x-api-key", "acme")];
        let told = ask(&server, "POST", "", &headers).await;
        assert_eq!((told.status, left(&told), &*told.body), (200, None, ""), "{method} {uri}");
    }
    assert_eq!(left(&ask(&server, "GET", "", &post("/v1/orders", "acme")).await), Some(15));
}

#[tokio::test]
async fn everything_a_rule_matches_has_to_fit() {
    let all = "match: {method: [POST], path: [/a, /b/*], host: ['*.example.com'], headers: {x-plan: [free, trial*], x-b: '*'}}, key: ip";
    let server = server_with(all).await;
    let fits = [
        ("x-forwarded-method", "POST"),
        ("x-forwarded-uri", "/b/c"),
        ("x-forwarded-host", "Api.Example.Com:8443"),
        ("x-plan", "trial-2"),
        ("x-b", ""),
    ];
    assert_eq!(left(&ask(&server, "GET", "", &fits).await), Some(19));
    for (at, (name, other)) in [
        ("x-forwarded-method", "PUT"),
        ("x-forwarded-uri", "/b"),
        ("x-forwarded-host", "example.com"),
        ("x-plan", "paid"),
        ("x-other", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let mut headers = fits;
        headers[at] = (name, other);
        let told = ask(&server, "GET", "", &headers).await;
        assert_eq!((told.status, left(&told)), (200, None), "{name}: {other}");
    }
    // One line of several is enough.
    let twice = [&fits[..], &[("x-plan", "paid")]].concat();
    assert_eq!(left(&ask(&server, "GET", "", &twice).await), Some(18));
}

#[tokio::test]
async fn any_method_will_do_and_the_body_is_ignored() {
    let server = server_with("key: ip").await;
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"];
    for (method, remaining) in methods.into_iter().zip((0..20).rev()) {
        let told = ask(&server, method, "", &[]).await;
        assert_eq!((told.status, left(&told)), (200, Some(remaining)), "{method}");
    }
    let body = server.client.post(server.url("/v1/forward-auth/r")).body(vec![b'x'; 100_000]);
    assert_eq!(body.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn http_1_0_will_do() {
    let server = server_with("key: ip").await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /v1/forward-auth/r HTTP/1.0\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.0 200 OK\r\n"), "{reply}");
    assert!(reply.contains("x-ratelimit-remaining: 19\r\n"), "{reply}");
}

#[tokio::test]
async fn a_denial_may_have_another_status() {
    let server = server_with("key: ip, cost: 20, deny_status: 403").await;
    assert_eq!(ask(&server, "GET", "", &[]).await.status, 200);
    let told = ask(&server, "GET", "", &[]).await;
    assert_eq!((told.status, told.header("retry-after"), left(&told)), (403, Some("20"), Some(0)));
    assert_eq!(told.json()["status"], 403);
    let server = server_with("key: ip, cost: 21").await;
    let told = ask(&server, "GET", "", &[]).await;
    assert_eq!((told.status, told.header("retry-after")), (429, None));
}

#[tokio::test]
async fn a_header_may_tell_the_cost() {
    let server = server_with("key: header:x-k, cost: {header: x-cost, default: 2, max: 7}").await;
    for (n, (told, charged)) in
        [("3", 3), ("7", 7), ("8", 7), ("99999999999999999999", 7), ("0", 2), ("-1", 2), ("x", 2), ("", 2)]
            .into_iter()
            .enumerate()
    {
        let key = n.to_string();
        let answer = ask(&server, "GET", "", &[("x-k", &key), ("x-cost", told)]).await;
        assert_eq!(left(&answer), Some(20 - charged), "{told}");
    }
    assert_eq!(left(&ask(&server, "GET", "", &[("x-k", "none")]).await), Some(18));
    let twice = [("x-k", "twice"), ("x-cost", "3"), ("x-cost", "4")];
    assert_eq!(left(&ask(&server, "GET", "", &twice).await), Some(18));
}

#[tokio::test]
async fn a_rule_that_is_not_there_lets_nothing_through() {
    let server = server_with("key: ip").await;
    server
        .get("/v1/forward-auth/writes")
        .await
        .is_problem(404, "\"writes\": no rule has this name (there are r)");
    server.get("/v1/forward-auth/R").await.is_problem(404, "no rule has this name");
    assert_eq!(server.get("/v1/forward-auth/").await.status, 404);
    assert_eq!(server.get("/v1/forward-auth").await.status, 404);
    let none = Server::start(POLICIES).await;
    none.get("/v1/forward-auth/r").await.is_problem(404, "(there are none)");
}

#[tokio::test]
async fn a_full_store_is_unavailable_whatever_the_status_of_denials() {
    let store = MemoryStore::builder().max_keys(1).on_full(OnFull::RefuseNew).build();
    let config = format!("{POLICIES}rules: [{{name: r, key: header:k, deny_status: 403}}]");
    let server = Server::start_with(&config, store, |app| app, Drain::default()).await;
    let mut last = 200;
    // How many places there are is the store's affair; in the end there is none.
    for n in 0..1_000 {
        last = ask(&server, "GET", "", &[("k", &n.to_string())]).await.status;
        if last != 200 {
            break;
        }
    }
    assert_eq!(last, 503);
}

#[tokio::test]
async fn rules_are_reloaded_with_their_policies() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    let old = format!("{POLICIES}rules: [{{name: r, key: ip}}]");
    fs::write(&file, &old).unwrap();
    let server = Server::start(&old).await;
    let reloader = Reloader::new(Arc::clone(&server.app), &file, &Config::load(&file).unwrap(), None);
    assert_eq!(left(&ask(&server, "GET", "", &[]).await), Some(19));
    fs::write(&file, old.replace("api:", "web:").replace("key: ip", "key: ip, cost: 3")).unwrap();
    reloader.reload().unwrap();
    assert_eq!(left(&ask(&server, "GET", "", &[]).await), Some(17));
    fs::write(&file, old.replace("key: ip", "key: who")).unwrap();
    assert!(reloader.reload().is_err());
    assert_eq!(left(&ask(&server, "GET", "", &[]).await), Some(14));
}

#[tokio::test]
async fn what_proxies_ask_is_counted() {
    let server = server_with("key: ip, cost: 20").await;
    for _ in 0..3 {
        ask(&server, "GET", "", &[]).await;
    }
    let told = server.get("/metrics").await.body;
    let count = |outcome: &str| {
        told.lines()
            .any(|line| line.contains("policy=\"api\"") && line.contains(outcome) && line.ends_with(" 2"))
    };
    assert!(count("\"denied\""), "{told}");
}
