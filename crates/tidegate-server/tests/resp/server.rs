//! A RESP server on a free port, with a clock to set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::clock::{Clock, ManualClock, SystemClock};
use tidegate::{Limiter, Timestamp};
use tidegate_server::config::Config;
use tidegate_server::resp::{self, Door, Password};
use tidegate_server::{AdminToken, AnyStore, App, Stopped};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The admin token of every server.
pub const TOKEN: &str = "s3cret-of-the-tests";
/// The password of those that have one.
pub const PASSWORD: &str = "pass word";

/// Five at once, one a second; ten a day; and one that spaces work.
pub const POLICIES: &str = "policies:
  api: {limits: [{name: burst, algorithm: token_bucket, capacity: 5, refill: 1/s}]}
  daily: {limits: [{name: day, algorithm: fixed_window, limit: 10, window: 1d}]}
  once: {limits: [{name: gift, algorithm: token_bucket, capacity: 1, refill: 0/s}]}
  even: {limits: [{name: leak, algorithm: leaky_bucket, capacity: 3, leak: 1/s}]}
";

/// A running server. It runs beside the test, which may so wait for programs.
pub struct Server {
    pub address: SocketAddr,
    pub clock: ManualClock,
    pub app: Arc<App>,
    pub door: Arc<Door>,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Stopped>,
}

/// What it opens its door to.
pub fn app(config: &str, clock: impl Clock) -> App {
    let config = Config::parse(config, "test.yaml").unwrap();
    let store = AnyStore::from(config.store().memory_store());
    App::new(Limiter::builder(config.policies().clone()).store(store).clock(clock).build())
}

impl Server {
    /// A server of [`POLICIES`] without a password.
    pub fn start() -> Self {
        Self::start_with(POLICIES, |door| door)
    }

    /// The same with a password.
    pub fn start_guarded() -> Self {
        Self::start_with(POLICIES, |door| door.with_password(Password::new(PASSWORD).unwrap()))
    }

    /// A server of a configuration and a door.
    pub fn start_with(config: &str, furnish: impl FnOnce(Door) -> Door) -> Self {
        let clock = ManualClock::default();
        Self::run(config, clock.clone(), clock, furnish)
    }

    /// A server that time passes for.
    pub fn start_in_real_time() -> Self {
        Self::run(POLICIES, SystemClock::new(), ManualClock::default(), |door| door)
    }

    fn run(config: &str, clock: impl Clock, hand: ManualClock, furnish: impl FnOnce(Door) -> Door) -> Self {
        let app = Arc::new(app(config, clock).with_admin_token(AdminToken::new(TOKEN).unwrap()));
        let door = Arc::new(furnish(Door::new(Arc::clone(&app))));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel();
        let shutdown = async { stopping.await.unwrap_or(()) };
        let grace = Duration::from_secs(10);
        let task = runtime.spawn(resp::serve(listener, Arc::clone(&door), grace, shutdown));
        Server { address, clock: hand, app, door, runtime, stop: Some(stop), task }
    }

    /// Sets the clock to so many milliseconds since the epoch.
    pub fn at_ms(&self, ms: u64) {
        self.clock.set(Timestamp::from_micros(ms * 1_000).unwrap());
    }

    /// Gives the signal to stop.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// How it ended.
    pub fn stopped(self) -> Stopped {
        self.runtime.block_on(self.task).unwrap()
    }
}
