//! The layer before a tonic service, asked by a tonic client over a socket.
#![allow(clippy::unwrap_used)]

#[path = "../examples/tonic.rs"]
#[allow(dead_code, reason = "its main is not ours")]
mod example;
mod support;

use std::time::Duration;

use http_body::Body;
use prost::Message;
use support::{bucket, clock, limiter};
use tidegate::clock::ManualClock;
use tidegate::{Limit, Limiter, Period, Policy};
use tidegate_tower::{GrpcDenial, MissingKey, RateLimitLayer, key};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, Service};

/// The messages of google.rpc, read by another implementation than the one that wrote them.
mod rpc {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Status {
        #[prost(int32, tag = "1")]
        pub code: i32,
        #[prost(string, tag = "2")]
        pub message: String,
        #[prost(message, repeated, tag = "3")]
        pub details: Vec<Any>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Any {
        #[prost(string, tag = "1")]
        pub type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        pub value: Vec<u8>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct RetryInfo {
        #[prost(message, optional, tag = "1")]
        pub retry_delay: Option<Duration>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Duration {
        #[prost(int64, tag = "1")]
        pub seconds: i64,
        #[prost(int32, tag = "2")]
        pub nanos: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct QuotaFailure {
        #[prost(message, repeated, tag = "1")]
        pub violations: Vec<Violation>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Violation {
        #[prost(string, tag = "1")]
        pub subject: String,
        #[prost(string, tag = "2")]
        pub description: String,
        #[prost(string, tag = "5")]
        pub quota_id: String,
        #[prost(int64, tag = "7")]
        pub quota_value: i64,
    }
}

/// A server on a port of its own, and a client of it.
async fn served<F>(serve: impl FnOnce(TcpIncoming) -> F) -> HealthClient<Channel>
where
    F: Future<Output = ()> + Send + 'static,
{
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    tokio::spawn(serve(incoming));
    let channel = Endpoint::new(format!("http://{address}")).unwrap().connect().await.unwrap();
    HealthClient::new(channel)
}

async fn limited(layer: RateLimitLayer) -> HealthClient<Channel> {
    served(async move |incoming| {
        let (_, health) = tonic_health::server::health_reporter();
        Server::builder().layer(layer).add_service(health).serve_with_incoming(incoming).await.unwrap();
    })
    .await
}

async fn check(
    client: &mut HealthClient<Channel>,
    headers: &[(&'static str, &str)],
) -> Result<tonic::metadata::MetadataMap, Status> {
    let mut request = Request::new(HealthCheckRequest { service: String::new() });
    for (name, value) in headers {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    client.check(request).await.map(|response| response.metadata().clone())
}

#[tokio::test]
async fn the_example_refuses_with_resource_exhausted() {
    let clock = clock();
    let limiter = Limiter::builder(example::policy().unwrap()).clock(clock.clone()).build();
    let mut client = served(async move |incoming| example::serve(&limiter, incoming).await.unwrap()).await;
    let key = [("x-api-key", "k")];
    for left in ["2", "1", "0"] {
        let metadata = check(&mut client, &key).await.unwrap();
        assert_eq!(metadata.get("x-ratelimit-remaining").unwrap(), left);
    }
    let status = check(&mut client, &key).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "Limit \"calls\" of 3 is used up; try again in 1 s.");
    assert_eq!(status.metadata().get("retry-after").unwrap(), "1");
    assert_eq!(status.metadata().get("ratelimit").unwrap(), "\"calls\";r=0;t=1");
    assert_eq!(check(&mut client, &[]).await.unwrap_err().code(), Code::Unauthenticated);

    clock.advance(Duration::from_secs(1));
    assert!(check(&mut client, &key).await.is_ok(), "the connection goes on");
}

fn details(status: &Status) -> rpc::Status {
    rpc::Status::decode(status.details()).unwrap()
}

/// Two limits that refuse the third call, and one that does not.
fn two_limits() -> (ManualClock, RateLimitLayer) {
    let clock = clock();
    let policy = Policy::builder("api")
        .limit("burst", bucket(2))
        .limit("daily", Limit::fixed_window(2, Period::MINUTE))
        .limit("wide", bucket(50))
        .build();
    let limiter = Limiter::builder(policy.unwrap()).clock(clock.clone()).build();
    let layer = RateLimitLayer::new(limiter.policy("api").unwrap(), key::peer_ip(), MissingKey::Deny)
        .on_denial(GrpcDenial);
    (clock, layer)
}

#[tokio::test]
async fn details_tell_when_to_retry_and_which_limits_refused() {
    let (clock, layer) = two_limits();
    let mut client = limited(layer).await;
    assert!(check(&mut client, &[]).await.is_ok());
    assert!(check(&mut client, &[]).await.is_ok());
    clock.advance(Duration::from_micros(250_001));
    let status = check(&mut client, &[]).await.unwrap_err();
    let told = details(&status);
    assert_eq!((told.code, told.message.as_str()), (8, status.message()));
    let kinds: Vec<&str> = told.details.iter().map(|any| any.type_url.as_str()).collect();
    assert_eq!(
        kinds,
        ["type.googleapis.com/google.rpc.RetryInfo", "type.googleapis.com/google.rpc.QuotaFailure"]
    );
    let retry = rpc::RetryInfo::decode(&*told.details[0].value).unwrap().retry_delay.unwrap();
    // The window that holds the start ends 40 s after it.
    assert_eq!((retry.seconds, retry.nanos), (39, 749_999_000));
    let failure = rpc::QuotaFailure::decode(&*told.details[1].value).unwrap();
    let violated: Vec<_> = failure
        .violations
        .iter()
        .map(|it| (it.subject.as_str(), it.quota_id.as_str(), it.quota_value))
        .collect();
    assert_eq!(violated, [("policy:api", "burst", 2), ("policy:api", "daily", 2)]);
    assert_eq!(failure.violations[1].description, "limit \"daily\" of 2");
}

#[tokio::test]
async fn a_refusal_is_one_frame_of_headers() {
    let layer = RateLimitLayer::new(limiter(&clock(), bucket(0)), support::path, MissingKey::Deny)
        .on_denial(GrpcDenial);
    let inner = support::Inner::new(&clock());
    let response = layer.layer(inner).call(support::get("/a")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.body().is_end_stream());
    let header = |name| response.headers()[name].to_str().unwrap();
    assert_eq!((header("content-type"), header("grpc-status")), ("application/grpc", "8"));
}

#[tokio::test]
async fn a_cost_that_never_fits_has_no_retry_info() {
    let layer = RateLimitLayer::new(limiter(&clock(), bucket(2)), key::peer_ip(), MissingKey::Deny)
        .cost(3)
        .on_denial(GrpcDenial);
    let status = check(&mut limited(layer).await, &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let kinds: Vec<String> = details(&status).details.iter().map(|any| any.type_url.clone()).collect();
    assert_eq!(kinds, ["type.googleapis.com/google.rpc.QuotaFailure"]);
}

#[tokio::test]
async fn what_is_no_limits_refusal_has_a_code_of_its_own() {
    let layer = |missing| {
        RateLimitLayer::new(limiter(&clock(), bucket(2)), key::header("k"), missing)
            .cost_from(http::HeaderName::from_static("x-cost"), 1)
            .on_denial(GrpcDenial)
    };
    for (missing, code) in [
        (MissingKey::Deny, Code::PermissionDenied),
        (MissingKey::DenyWith(http::StatusCode::UNAUTHORIZED), Code::Unauthenticated),
        (MissingKey::DenyWith(http::StatusCode::BAD_REQUEST), Code::InvalidArgument),
    ] {
        let mut client = limited(layer(missing)).await;
        let status = check(&mut client, &[]).await.unwrap_err();
        assert_eq!((status.code(), status.details()), (code, &[][..]));
        let status = check(&mut client, &[("k", "a"), ("x-cost", "%")]).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with("x-cost: \"%\": a cost is"), "{}", status.message());
    }
}
