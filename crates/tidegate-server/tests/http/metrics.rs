//! What is counted, as Prometheus reads it.

use std::time::Duration;

use tidegate::{MemoryStore, OnFull};
use tidegate_server::Drain;

use crate::server::{FIVE, Server};

#[tokio::test]
async fn decisions_keys_and_time_are_counted() {
    let store = MemoryStore::builder().max_keys(2).on_full(OnFull::RefuseNew).build();
    let server = Server::start_with(FIVE, store, |app| app, Drain::default()).await;
    server.check("secret-key", 5).await;
    server.check("secret-key", 1).await;
    server.check("secret-key", 6).await;
    server.check("other", 1).await;
    server.check("third", 1).await;
    server.post("/v1/check/batch", r#"{"checks":[{"key":"secret-key","cost":0},{"key":7}]}"#).await;
    server.get("/v1/peek?key=secret-key").await;
    let told = server.get("/metrics").await;
    assert_eq!(told.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        "tidegate_decisions_total{policy=\"api\",outcome=\"allowed\"} 3",
        "tidegate_decisions_total{policy=\"api\",outcome=\"denied\"} 1",
        "tidegate_decisions_total{policy=\"api\",outcome=\"cost_exceeds_capacity\"} 1",
        "tidegate_decisions_total{policy=\"api\",outcome=\"overloaded\"} 1",
        "tidegate_decision_duration_seconds_count 6",
        "tidegate_keys 2",
        "tidegate_keys_refused_total 1",
        "tidegate_keys_shed_total 0",
    ] {
        assert!(told.body.lines().any(|is| is == line), "{line} is not in\n{}", told.body);
    }
    assert!(!told.body.contains("secret-key"), "{}", told.body);
}

#[tokio::test]
async fn keys_that_vanish_are_counted() {
    let server = Server::start(FIVE).await;
    for key in 0..1_000 {
        server.app.limiter().policy("api").unwrap().check(format!("{key}"), 1).await.unwrap();
    }
    server.advance(Duration::from_secs(10));
    for key in 1_000..3_000 {
        server.app.limiter().policy("api").unwrap().check(format!("{key}"), 1).await.unwrap();
    }
    let body = server.get("/metrics").await.body;
    let value = |name: &str| -> u64 {
        let line = body.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (keys, vanished) = (value("tidegate_keys"), value("tidegate_keys_vanished_total"));
    assert_eq!(keys + vanished, 3_000);
    assert!(vanished > 0 && value("tidegate_keys_bytes") > 16 * keys, "{body}");
}
