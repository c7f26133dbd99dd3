//! The end of a server.

use std::time::Duration;

use tidegate::MemoryStore;
use tidegate_server::{Drain, Stopped};
use tokio::net::TcpStream;

use crate::server::{FIVE, Server};
use crate::wire::{Wire, check, somebody_sleeps_until};

/// So long after the signal connections without a request are kept.
const LAST_CALL_MS: u64 = 250;

/// A request that is under way: all but its last byte was sent, and the server waits for it.
async fn under_way(server: &Server) -> (Wire, String) {
    let mut wire = Wire::to(server).await;
    let whole = check(r#"{"key":"k"}"#);
    let (most, last) = whole.split_at(whole.len() - 1);
    wire.send(most).await;
    somebody_sleeps_until(server, 30_000).await;
    (wire, last.to_owned())
}

async fn is_not_ready(server: &Server) {
    while server.app.is_ready() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_under_way_is_answered_and_nothing_new_is_taken() {
    let mut server = Server::start(FIVE).await;
    let (mut wire, last) = under_way(&server).await;
    server.stop();
    somebody_sleeps_until(&server, LAST_CALL_MS).await;
    assert!(TcpStream::connect(server.address).await.is_err());
    wire.send(last).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert!(wire.is_closed().await);
    assert_eq!(server.stopped().await, Stopped::Drained);
}

#[tokio::test]
async fn the_drain_has_an_end() {
    let mut server = Server::start(FIVE).await;
    let (mut wire, _) = under_way(&server).await;
    server.stop();
    somebody_sleeps_until(&server, LAST_CALL_MS).await;
    server.advance(Duration::from_secs(10));
    assert_eq!(server.stopped().await, Stopped::Cut { connections: 1 });
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn idle_connections_hold_nothing_up_for_long() {
    let mut server = Server::start(FIVE).await;
    let mut idle = Wire::to(&server).await;
    idle.send(check(r#"{"key":"k"}"#)).await;
    assert_eq!(idle.reply().await.status, 200);
    server.stop();
    somebody_sleeps_until(&server, LAST_CALL_MS).await;
    server.advance(Duration::from_millis(LAST_CALL_MS));
    assert_eq!(server.stopped().await, Stopped::Drained);
    assert!(idle.is_closed().await);
}

#[tokio::test]
async fn a_request_that_crosses_the_signal_is_answered() {
    let mut server = Server::start(FIVE).await;
    let mut kept = Wire::to(&server).await;
    kept.send(check(r#"{"key":"k"}"#)).await;
    assert_eq!(kept.reply().await.header("connection"), None);
    let mut fresh = Wire::to(&server).await;
    // Both were let in, neither has a request under way, and neither client knows.
    server.stop();
    somebody_sleeps_until(&server, LAST_CALL_MS).await;
    for wire in [&mut kept, &mut fresh] {
        wire.send(check(r#"{"key":"k"}"#)).await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
        assert!(wire.is_closed().await);
    }
    assert_eq!(server.stopped().await, Stopped::Drained);
}

#[tokio::test]
async fn who_waits_to_be_let_in_is_let_in() {
    let mut server = Server::start(FIVE).await;
    // On one thread nothing is accepted between these lines: the system alone knows of the connections.
    server.stop();
    let mut waiting: Vec<_> = (0..20)
        .map(|_| std::net::TcpStream::connect(server.address).unwrap())
        .map(|stream| {
            stream.set_nonblocking(true).unwrap();
            Wire::over(TcpStream::from_std(stream).unwrap())
        })
        .collect();
    for wire in &mut waiting {
        wire.send(check(r#"{"key":"k"}"#)).await;
    }
    for wire in &mut waiting {
        assert_eq!(wire.reply().await.status, 200);
    }
    assert_eq!(server.stopped().await, Stopped::Drained);
}

#[tokio::test]
async fn load_balancers_are_given_notice() {
    let drain = Drain { notice: Duration::from_secs(5), grace: Duration::from_secs(1) };
    let mut server = Server::start_with(FIVE, MemoryStore::default(), |app| app, drain).await;
    server.stop();
    is_not_ready(&server).await;
    for path in ["/readyz", "/healthz"] {
        let told = server.get(path).await;
        assert_eq!((told.status, &*told.body), (503, "draining\n"), "{path}");
    }
    assert_eq!(server.get("/livez").await.status, 200);
    // Whoever comes all the same is served, and asked to come to another next time.
    let mut late = Wire::to(&server).await;
    late.send(check(r#"{"key":"k"}"#)).await;
    let reply = late.reply().await;
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    somebody_sleeps_until(&server, 5_000).await;
    server.advance(Duration::from_secs(5));
    assert_eq!(server.stopped().await, Stopped::Drained);
}
