//! A server of its own for each test, and a client to it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Limiter;
use tidegate::clock::ManualClock;
use tidegate_server::config::Config;
use tidegate_server::grpc::messages::{
    Code, Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
};
use tidegate_server::{AnyStore, App, Stopped, grpc};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;
use tower::ServiceExt as _;

/// A server as its client sees it.
pub struct Client {
    pub address: SocketAddr,
    pub clock: ManualClock,
    pub app: Arc<App>,
    pub channel: Channel,
}

/// The door alone, and a client to it.
pub struct Server {
    pub client: Client,
    pub stop: oneshot::Sender<()>,
    pub stopped: JoinHandle<Stopped>,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

fn read(text: &str) -> Config {
    Config::parse(text, "tidegate.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// What `text` configures, in virtual time.
pub fn app(text: &str) -> (ManualClock, Arc<App>) {
    app_of(&read(text))
}

fn app_of(config: &Config) -> (ManualClock, Arc<App>) {
    let clock = ManualClock::default();
    let limiter = Limiter::builder(config.policies().clone())
        .clock(clock.clone())
        .store(AnyStore::from(config.store().memory_store()))
        .build();
    let app = App::new(limiter).with_headers(config.headers()).with_envoy(config.envoy().clone());
    (clock, Arc::new(app))
}

/// A client of the server at `address`.
pub async fn connect(address: SocketAddr, clock: ManualClock, app: Arc<App>) -> Client {
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    Client { address, clock, app, channel }
}

/// Serves what `text` configures.
pub async fn start(text: &str) -> Server {
    start_with(read(text)).await
}

/// Serves this configuration.
pub async fn start_with(config: Config) -> Server {
    serve(&config, SocketAddr::from(([127, 0, 0, 1], 0))).await
}

/// Serves what `text` configures at this address.
pub async fn start_at(text: &str, address: SocketAddr) -> Server {
    serve(&read(text), address).await
}

async fn serve(config: &Config, address: SocketAddr) -> Server {
    let (clock, app) = app_of(config);
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = oneshot::channel();
    let serving = grpc::serve(listener, Arc::clone(&app), Duration::from_secs(10), async {
        stopping.await.unwrap_or(());
    });
    let stopped = tokio::spawn(serving);
    Server { client: connect(address, clock, app).await, stop, stopped }
}

/// A descriptor of one hit.
pub fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

impl Client {
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

/// What the HTTP door shows at `/metrics`.
pub async fn metrics(app: &Arc<App>) -> String {
    let request = http::Request::get("/metrics").body(axum::body::Body::empty()).unwrap();
    let answer = tidegate_server::http::router(Arc::clone(app)).oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}
