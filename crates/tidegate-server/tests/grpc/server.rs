//! A server of its own for each test, and a client to it.

use std::sync::Arc;
use std::time::Duration;

use tidegate::Limiter;
use tidegate::clock::ManualClock;
use tidegate_server::config::Config;
use tidegate_server::grpc::messages::{
    Code, Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
};
use tidegate_server::{App, Stopped, grpc};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

pub struct Server {
    pub clock: ManualClock,
    pub app: Arc<App>,
    pub channel: Channel,
    pub stop: oneshot::Sender<()>,
    pub stopped: JoinHandle<Stopped>,
}

/// Serves what `text` configures.
pub async fn start(text: &str) -> Server {
    let config = Config::parse(text, "tidegate.yaml").unwrap_or_else(|errors| panic!("{errors}"));
    let clock = ManualClock::default();
    let limiter = Limiter::builder(config.policies().clone()).clock(clock.clone()).build();
    let app = Arc::new(App::new(limiter).with_envoy(config.envoy().clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopping) = oneshot::channel();
    let serving = grpc::serve(listener, Arc::clone(&app), Duration::from_secs(10), async {
        stopping.await.unwrap_or(());
    });
    let stopped = tokio::spawn(serving);
    let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
    Server { clock, app, channel, stop, stopped }
}

/// A descriptor of one hit.
pub fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

impl Server {
    pub async fn ask(&self, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
        let mut client = Grpc::new(self.channel.clone());
        client.ready().await.unwrap();
        let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit".parse().unwrap();
        let codec: ProstCodec<RateLimitRequest, RateLimitResponse> = ProstCodec::default();
        client.unary(Request::new(request), path, codec).await.map(tonic::Response::into_inner)
    }

    /// Asks about these in the domain `edge`.
    pub async fn descriptors(&self, descriptors: &[RateLimitDescriptor]) -> RateLimitResponse {
        let descriptors = descriptors.to_vec();
        let request = RateLimitRequest { domain: "edge".into(), descriptors, hits_addend: 0 };
        let answer = self.ask(request).await.unwrap();
        let codes = answer.statuses.iter().map(|status| status.code);
        assert!(codes.into_iter().all(|code| code != i32::from(Code::Unknown)));
        answer
    }
}

/// Whether the request may go ahead, and each descriptor.
pub fn codes(answer: &RateLimitResponse) -> (bool, Vec<bool>) {
    let ok = |code: i32| code == i32::from(Code::Ok);
    (ok(answer.overall_code), answer.statuses.iter().map(|status| ok(status.code)).collect())
}
