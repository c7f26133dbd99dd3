//! Health, and how the door closes.

use std::time::Duration;

use tidegate_server::{Drain, Listeners, Stopped};
use tokio::sync::oneshot;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::server::{Server, app, codes, connect, descriptor, start};

const CONFIG: &str = "
policies: {api: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}
envoy: {edge: [{key: user, policy: api}]}";

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

#[tokio::test]
async fn health_is_told_by_name_and_the_unknown_is_refused_or_awaited() {
    let server = start(CONFIG).await;
    let mut health = HealthClient::new(server.channel.clone());
    for service in ["", "ratelimit", tidegate_server::grpc::RATE_LIMIT_SERVICE] {
        assert_eq!(health.check(of(service)).await.unwrap().into_inner().status, 1, "{service:?}");
    }
    let unknown = of("nobody");
    assert_eq!(health.check(unknown.clone()).await.unwrap_err().code(), Code::NotFound);
    let mut watch = health.watch(unknown).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 3);
}

#[tokio::test]
async fn told_to_stop_the_door_ends_and_lets_watchers_go() {
    let server = start(CONFIG).await;
    let mut health = HealthClient::new(server.channel.clone());
    let mut watch = health.watch(of("")).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 1);
    let Server { client, stop, stopped } = server;
    stop.send(()).unwrap();
    assert!(watch.message().await.unwrap().is_none(), "it would hold the end up");
    assert_eq!(stopped.await.unwrap(), Stopped::Drained);
    assert!(client.app.is_ready(), "the door alone does not begin the drain of the server");
}

#[tokio::test]
async fn a_drain_is_told_first_and_what_comes_meanwhile_is_answered() {
    let (clock, app) = app(CONFIG);
    let http = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let grpc = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = grpc.local_addr().unwrap();
    let (stop, stopping) = oneshot::channel::<()>();
    let drain = Drain { notice: Duration::from_secs(5), grace: Duration::from_secs(5) };
    let listeners = Listeners::http(http).with_grpc(grpc);
    let running = tidegate_server::run(listeners, app.clone(), drain, async {
        stopping.await.unwrap_or(());
    });
    let running = tokio::spawn(running);
    let server = connect(address, clock, app).await;
    let mut health = HealthClient::new(server.channel.clone());
    let mut watch = health.watch(of("ratelimit")).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 1);
    stop.send(()).unwrap();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 2, "not serving");
    let answer = server.descriptors(&[descriptor(&[("user", "ann")])]).await;
    assert!(codes(&answer).0);
    server.clock.advance(Duration::from_secs(5));
    assert!(watch.message().await.unwrap().is_none());
    assert_eq!(running.await.unwrap(), Stopped::Drained);
}
