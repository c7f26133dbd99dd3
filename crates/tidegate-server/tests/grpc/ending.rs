//! Health, and how the door closes.

use tidegate_server::Stopped;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::server::start;

const CONFIG: &str = "policies: {api: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}";

#[tokio::test]
async fn health_is_told_by_name_and_the_unknown_is_refused_or_awaited() {
    let server = start(CONFIG).await;
    let mut health = HealthClient::new(server.channel.clone());
    for service in ["", "ratelimit", tidegate_server::grpc::RATE_LIMIT_SERVICE] {
        let asked = HealthCheckRequest { service: service.into() };
        assert_eq!(health.check(asked).await.unwrap().into_inner().status, 1, "{service:?}");
    }
    let unknown = HealthCheckRequest { service: "nobody".into() };
    assert_eq!(health.check(unknown.clone()).await.unwrap_err().code(), Code::NotFound);
    let mut watch = health.watch(unknown).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 3);
}

#[tokio::test]
async fn told_to_stop_it_answers_what_is_under_way_and_ends() {
    let server = start(CONFIG).await;
    server.stop.send(()).unwrap();
    assert_eq!(server.stopped.await.unwrap(), Stopped::Drained);
    assert!(server.app.is_ready(), "the door alone does not begin the drain of the server");
}
