//! The header fields of answers, word for word.

use std::time::Duration;

use crate::server::{FIVE, Server, Told};

/// What clients are told, in the order of this list.
fn fields(told: &Told) -> Vec<String> {
    let names = [
        "retry-after",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "ratelimit-policy",
        "ratelimit",
    ];
    let line = |name: &&str| told.header(name).map(|value| format!("{name}: {value}"));
    names.iter().filter_map(line).collect()
}

const WINDOW: &str = "policies: {api: {limits: [{name: w, algorithm: fixed_window, limit: 1, window: 60s}]}}";

#[tokio::test]
async fn on_every_answer_first_last_and_denied() {
    let server = Server::start(WINDOW).await;
    server.at_ms(1_700_000_000_250);
    let state = |remaining: u32, wait: &str| {
        let mut lines = Vec::from_iter((!wait.is_empty()).then(|| format!("retry-after: {wait}")));
        lines.push("x-ratelimit-limit: 1".to_owned());
        lines.push(format!("x-ratelimit-remaining: {remaining}"));
        lines
    };
    let policy = "ratelimit-policy: \"w\";q=1;w=60";
    let peek = fields(&server.get("/v1/peek?key=k").await);
    assert_eq!(
        peek,
        [&state(1, "")[..], &["x-ratelimit-reset: 0".into(), policy.into(), "ratelimit: \"w\";r=1".into()]]
            .concat()
    );
    let spent =
        ["x-ratelimit-reset: 40".to_owned(), policy.to_owned(), "ratelimit: \"w\";r=0;t=40".to_owned()];
    assert_eq!(fields(&server.check("k", 1).await), [&state(0, "")[..], &spent].concat());
    assert_eq!(fields(&server.check("k", 1).await), [&state(0, "40")[..], &spent].concat());
}

#[tokio::test]
async fn the_family_is_a_choice_and_so_is_the_epoch() {
    for (headers, expected) in [
        (
            "{family: x-ratelimit}",
            vec![
                "retry-after: 40",
                "x-ratelimit-limit: 1",
                "x-ratelimit-remaining: 0",
                "x-ratelimit-reset: 40",
            ],
        ),
        (
            "{family: x-ratelimit, reset: epoch}",
            vec![
                "retry-after: 40",
                "x-ratelimit-limit: 1",
                "x-ratelimit-remaining: 0",
                "x-ratelimit-reset: 1700000040",
            ],
        ),
        (
            "{family: ietf}",
            vec!["retry-after: 40", "ratelimit-policy: \"w\";q=1;w=60", "ratelimit: \"w\";r=0;t=40"],
        ),
        ("{family: none}", vec!["retry-after: 40"]),
    ] {
        let server = Server::start(&format!("headers: {headers}\n{WINDOW}")).await;
        server.at_ms(1_700_000_000_250);
        server.check("k", 1).await;
        assert_eq!(fields(&server.check("k", 1).await), expected, "{headers}");
    }
}

#[tokio::test]
async fn a_wait_is_whole_seconds_and_never_none() {
    let server = Server::start(FIVE).await;
    server.check("k", 5).await;
    for (ms, after) in [(0, "1"), (1, "1"), (999, "1")] {
        server.at_ms(ms);
        assert_eq!(server.check("k", 1).await.header("retry-after"), Some(after), "at {ms} ms");
    }
    assert_eq!(server.check("k", 2).await.header("retry-after"), Some("2"));
    assert_eq!(server.check("k", 9).await.header("retry-after"), None);
}

/// Whoever waits as long as the header says is admitted, whatever the policy.
#[tokio::test]
async fn a_wait_in_whole_seconds_is_long_enough() {
    let config = "policies: {api: {limits: [
        {name: bucket, algorithm: token_bucket, capacity: 7, refill: 3/7s},
        {name: window, algorithm: sliding_window_counter, limit: 11, window: 13s},
        {name: log, algorithm: sliding_window_log, limit: 9, window: 5s}]}}";
    let server = Server::start(config).await;
    server.at_ms(1_700_000_003_333);
    let mut denials = 0;
    for step in 0..60 {
        let told = server.check("k", 1 + step % 7).await;
        let Some(wait) = told.header("retry-after") else { continue };
        denials += 1;
        server.advance(Duration::from_secs(wait.parse().unwrap()));
        let told = server.check("k", 1 + step % 7).await;
        assert_eq!(told.json()["allowed"], true, "step {step}: {}", told.body);
    }
    assert!(denials > 10, "{denials}");
}

/// `t` is the time until more is left, so it never lies beyond the wait for the cost that was refused.
#[tokio::test]
async fn retry_after_and_t_do_not_contradict_each_other() {
    let config = "policies: {api: {limits: [
        {name: a, algorithm: gcra, rate: 100/60s, burst: 100},
        {name: b, algorithm: sliding_window_counter, limit: 60, window: 20s},
        {name: c, algorithm: fixed_window, limit: 70, window: 30s},
        {name: d, algorithm: sliding_window_log, limit: 50, window: 11s}]}}";
    let server = Server::start(config).await;
    let mut denials = 0;
    for step in 0..200_u64 {
        server.advance(Duration::from_millis(37 * (step % 29)));
        let told = server.check("k", 1 + step * 7 % 49).await;
        let Some(wait) = told.header("retry-after") else { continue };
        denials += 1;
        let wait: u64 = wait.parse().unwrap();
        for part in told.header("ratelimit").unwrap().split(", ") {
            let t = part.split(";t=").nth(1).map_or(0, |t| t.parse().unwrap());
            assert!(t <= wait, "step {step}: retry-after {wait}, {part}");
        }
    }
    assert!(denials > 50, "{denials}");
}

#[tokio::test]
async fn two_limits_and_names_that_need_escapes() {
    let config = r#"policies: {api: {limits: [
        {name: "a\"b\\c", algorithm: token_bucket, capacity: 100, refill: 100/min},
        {name: daily, algorithm: fixed_window, limit: 1000, window: 1d}]}}"#;
    let server = Server::start(config).await;
    let told = server.check("k", 50).await;
    let policy = r#""a\"b\\c";q=100;w=60, "daily";q=1000;w=86400"#;
    assert_eq!(told.header("ratelimit-policy"), Some(policy));
    assert!(told.header("ratelimit").unwrap().starts_with(r#""a\"b\\c";r=50;t=1"#), "{:?}", told.headers);
    assert_eq!(told.header("x-ratelimit-limit"), Some("100"));
}
