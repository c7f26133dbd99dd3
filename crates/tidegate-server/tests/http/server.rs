//! A server on a free port, with a clock to set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, Response};
use serde_json::Value;
use tidegate::clock::ManualClock;
use tidegate::{Limiter, MemoryStore, Timestamp};
use tidegate_server::config::Config;
use tidegate_server::{AdminToken, AnyStore, App, Drain, Listeners, Stopped, run};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The admin token of every server that has one.
pub const TOKEN: &str = "s3cret-of-the-tests";

/// Five at once, one a second: figures small enough to follow by heart.
pub const FIVE: &str = "policies: {api: {limits: [{algorithm: token_bucket, capacity: 5, refill: 1/s}]}}";

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub clock: ManualClock,
    pub app: Arc<App>,
    pub client: Client,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Stopped>,
}

/// An answer, all of it.
#[derive(Debug)]
pub struct Told {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Server {
    /// A server of this configuration, without an admin token.
    pub async fn start(config: &str) -> Self {
        Self::start_with(config, MemoryStore::default(), |app| app, Drain::default()).await
    }

    /// The same with an admin token.
    pub async fn start_admin(config: &str) -> Self {
        let admin = |app: App| app.with_admin_token(AdminToken::new(TOKEN).unwrap());
        Self::start_with(config, MemoryStore::default(), admin, Drain::default()).await
    }

    /// A server of a configuration, a store and whatever else.
    pub async fn start_with(
        config: &str,
        store: MemoryStore,
        furnish: impl FnOnce(App) -> App,
        drain: Drain,
    ) -> Self {
        let config = Config::parse(config, "test.yaml").unwrap();
        let clock = ManualClock::default();
        let limiter = Limiter::builder(config.policies().clone()).store(AnyStore::from(store));
        let limiter = limiter.clock(clock.clone()).build();
        let app = App::new(limiter).with_headers(config.headers()).with_gateway(config.gateway().clone());
        let app = Arc::new(furnish(app.with_envoy(config.envoy().clone())));
        let listeners = Listeners::http(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listeners.http.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel();
        let shutdown = async { stopping.await.unwrap_or(()) };
        let task = tokio::spawn(run(listeners, Arc::clone(&app), drain, shutdown));
        // No proxy that the environment names stands between a test and its server.
        let client = Client::builder().no_proxy().build().unwrap();
        Server { address, clock, app, client, stop: Some(stop), task }
    }

    /// Sets the clock to so many milliseconds since the epoch.
    pub fn at_ms(&self, ms: u64) {
        self.clock.set(Timestamp::from_micros(ms * 1_000).unwrap());
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn get(&self, path: &str) -> Told {
        Told::of(self.client.get(self.url(path)).send().await.unwrap()).await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Told {
        let request = self.client.post(self.url(path)).header(CONTENT_TYPE, "application/json");
        Told::of(request.body(body).send().await.unwrap()).await
    }

    /// Posts JSON with the admin token.
    pub async fn post_admin(&self, path: &str, body: &str) -> Told {
        let request = self.client.post(self.url(path)).header(CONTENT_TYPE, "application/json");
        Told::of(request.bearer_auth(TOKEN).body(body.to_owned()).send().await.unwrap()).await
    }

    pub async fn request(&self, method: Method, path: &str) -> Told {
        Told::of(self.client.request(method, self.url(path)).send().await.unwrap()).await
    }

    /// Checks `key` at a cost under the policy that needs no name.
    pub async fn check(&self, key: &str, cost: u64) -> Told {
        self.post("/v1/check", serde_json::json!({"key": key, "cost": cost}).to_string()).await
    }

    /// Gives the signal to stop.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// How it ended.
    pub async fn stopped(self) -> Stopped {
        self.task.await.unwrap()
    }
}

impl Told {
    pub async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Told { status, headers, body: response.text().await.unwrap() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// A header's value, which must be there at most once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map(|value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} is sent twice: {:?}", self.headers);
        value
    }

    /// Asserts that this is a problem of this status whose detail contains `said`.
    pub fn is_problem(&self, status: u16, said: &str) {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(self.header("cache-control"), Some("no-store"));
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["type"].as_str().unwrap().starts_with("/docs#"), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{detail:?} does not say {said:?}");
    }
}
