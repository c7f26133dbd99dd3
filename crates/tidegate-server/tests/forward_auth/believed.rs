//! Who says what the original request was, and who is believed.

use reqwest::Client;

use crate::door::{POLICIES, ask, left, server_with};
use crate::server::{Server, Told};

const WRITES: &str =
    "match: {method: POST, path: /v1/*, host: api.example.com}, policy: api, key: header:x-api-key";

#[tokio::test]
async fn every_proxys_words_are_understood() {
    let host = ("x-forwarded-host", "api.example.com");
    let conventions: [&[(&str, &str)]; 5] = [
        &[("x-forwarded-method", "POST"), ("x-forwarded-uri", "/v1/a?b"), host],
        &[
            ("x-original-method", "POST"),
            ("x-original-uri", "/v1/a?b"),
            ("x-original-host", "api.example.com"),
        ],
        &[("x-original-method", "POST"), ("x-original-url", "https://api.example.com/v1/a?b"), host],
        &[("x-forwarded-method", "POST"), ("x-envoy-original-path", "/v1/a?b"), host],
        // Two that say the same.
        &[("x-forwarded-method", "POST"), ("x-original-method", "POST"), ("x-original-uri", "/v1/a"), host],
    ];
    let server = server_with(WRITES).await;
    for (words, remaining) in conventions.into_iter().zip((0..20).rev()) {
        let headers = [words, &[("x-api-key", "acme")]].concat();
        let told = ask(&server, "GET", "", &headers).await;
        assert_eq!((told.status, left(&told)), (200, Some(remaining)), "{words:?}: {}", told.body);
    }
}

/// Envoy's way: the original's own method, path and host, which anybody may ask with.
#[tokio::test]
async fn a_path_behind_the_rules_name_is_the_original_one() {
    for peers in ["trusted_proxies: {addresses: [127.0.0.1]}\n", ""] {
        let server = Server::start(&format!("{POLICIES}{peers}rules: [{{name: r, {WRITES}}}]")).await;
        let headers = [("host", "api.example.com:80"), ("x-api-key", "acme")];
        assert_eq!(left(&ask(&server, "POST", "/v1/a?b=c", &headers).await), Some(19));
        for (method, behind, host) in [
            ("PUT", "/v1/a", "api.example.com"),
            ("POST", "/v2/a", "api.example.com"),
            ("POST", "/", "api.example.com"),
            ("POST", "/v1/a", "example.com"),
        ] {
            let told = ask(&server, method, behind, &[("host", host), headers[1]]).await;
            assert_eq!((told.status, left(&told)), (200, None), "{method} {behind} {host}");
        }
    }
}

#[tokio::test]
async fn no_spelling_slips_past_a_rule() {
    let server = server_with("match: {path: /v1/*}, key: const:all, cost: 0").await;
    for path in [
        "/v1/a",
        "/%761/a",
        "//v1/a",
        "/./v1/a",
        "/x/../v1/a",
        "/x/%2e%2e/v1/a",
        "/v1/..%2f..%2fx",
        "/%761/..%2fx",
        "/v1//a",
        "/v1%2fa",
        "/x%2f..%2fv1%2fa",
        "/v1/%",
        "http://h/v1/a",
        "/v1/../x",
    ] {
        let told = ask(&server, "GET", "", &[("x-forwarded-uri", path)]).await;
        assert_eq!(left(&told), Some(20), "{path}");
    }
    for path in ["/v1", "/v2/a", "/a/v1/b", "/?/v1/a", "/#/v1/a"] {
        let told = ask(&server, "GET", "", &[("x-forwarded-uri", path)]).await;
        assert_eq!((told.status, left(&told)), (200, None), "{path}");
    }
}

#[tokio::test]
async fn words_that_contradict_each_other_are_refused() {
    let server = server_with(WRITES).await;
    let right =
        [("x-original-method", "POST"), ("x-original-uri", "/v1/a"), ("x-original-host", "api.example.com")];
    for (name, value) in [
        ("x-forwarded-uri", "/free"),
        ("x-original-url", "/free"),
        ("x-original-uri", "/free"),
        ("x-forwarded-method", "GET"),
        ("x-forwarded-host", "example.com"),
    ] {
        let told = ask(&server, "GET", "", &[&right[..], &[(name, value)]].concat()).await;
        told.is_problem(400, "tell different things (let the proxy set one");
    }
    let told = ask(&server, "POST", "/v1/a", &[("x-forwarded-uri", "/free")]).await;
    told.is_problem(400, "the path asked at and the headers tell different things");
}

#[tokio::test]
async fn what_a_rule_needs_and_nobody_tells_is_refused() {
    for (rule, needs) in [
        ("match: {method: POST}, key: ip", "the rule needs the method of the original request"),
        ("match: {path: /v1/*}, key: ip", "the rule needs the URI of the original request"),
        ("match: {host: example.com}, key: ip", "the rule needs the host of the original request"),
        ("key: path", "the rule needs the URI"),
        ("key: query:t", "let the proxy set X-Forwarded-Uri or X-Original-URI"),
    ] {
        let server = server_with(rule).await;
        ask(&server, "POST", "", &[]).await.is_problem(400, needs);
    }
}

/// Asks from another of this machine's addresses.
async fn ask_from(address: &str, server: &Server, headers: &[(&str, &str)]) -> Told {
    let client = Client::builder().no_proxy().local_address(address.parse::<std::net::IpAddr>().unwrap());
    let request = client.build().unwrap().get(server.url("/v1/forward-auth/r"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Told::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_peer_that_is_not_trusted_is_refused_and_not_passed_over() {
    let server = server_with("match: {path: /v1/*}, key: ip").await;
    for name in ["x-forwarded-uri", "x-original-uri", "x-original-method", "x-forwarded-host"] {
        let told = ask_from("127.0.0.2", &server, &[(name, "/free")]).await;
        told.is_problem(400, "told by 127.0.0.2, which is not trusted (add it to trusted_proxies.addresses)");
        assert_eq!(told.json()["field"], name);
    }
}

#[tokio::test]
async fn the_client_is_whom_trusted_proxies_name() {
    let server = server_with("key: ip").await;
    let of = async |key: &str| server.get(&format!("/v1/peek?key={key}")).await.json()["remaining"].clone();
    // The leftmost is the client's own claim.
    ask(&server, "GET", "", &[("x-forwarded-for", "6.6.6.6, 203.0.113.9")]).await;
    ask(&server, "GET", "", &[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "203.0.113.9, 127.0.0.1")])
        .await;
    assert_eq!((of("203.0.113.9").await, of("6.6.6.6").await), (18.into(), 20.into()));
    // Only one kind of header counts.
    ask(&server, "GET", "", &[("x-real-ip", "6.6.6.6"), ("forwarded", "for=6.6.6.6")]).await;
    assert_eq!((of("127.0.0.1").await, of("6.6.6.6").await), (19.into(), 20.into()));
    // Who is not trusted is the client.
    ask_from("127.0.0.2", &server, &[("x-forwarded-for", "6.6.6.6")]).await;
    assert_eq!((of("127.0.0.2").await, of("6.6.6.6").await), (19.into(), 20.into()));
}

#[tokio::test]
async fn one_header_of_ones_choice_names_the_client() {
    for (header, line) in [("forwarded", "for=6.6.6.6, for=203.0.113.9"), ("X-Real-IP", "203.0.113.9")] {
        let config = format!(
            "{POLICIES}trusted_proxies: {{addresses: 127.0.0.0/8, client_ip: {header}}}\nrules: [{{name: r, key: ip}}]"
        );
        let server = Server::start(&config).await;
        ask(&server, "GET", "", &[(header, line), ("x-forwarded-for", "6.6.6.6")]).await;
        assert_eq!(server.get("/v1/peek?key=203.0.113.9").await.json()["remaining"], 19, "{header}");
    }
}
