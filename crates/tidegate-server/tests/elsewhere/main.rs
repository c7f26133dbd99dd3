//! A server whose store is elsewhere: each answer comes later, out of a task, or not at all.
#![allow(clippy::unwrap_used)]

mod http;
mod pipeline;
mod remote;

#[path = "../grpc/server.rs"]
#[allow(dead_code, reason = "only its client is used")]
mod grpc_client;

use std::sync::Arc;

use remote::Remote;
use tidegate::Limiter;
use tidegate::clock::ManualClock;
use tidegate_server::config::Config;
use tidegate_server::{AdminToken, AnyStore, App};

/// The admin token.
const TOKEN: &str = "s3cret-of-the-tests";

const CONFIG: &str = "
policies:
  api: {limits: [{name: burst, algorithm: token_bucket, capacity: 5, refill: 1/s}]}
  log: {limits: [{name: day, algorithm: sliding_window_log, limit: 3, window: 1d}]}
rules: [{name: r, policy: api, key: 'header:x-api-key'}]
trusted_proxies: {addresses: [127.0.0.1]}
envoy:
  edge:
    - {key: user, policy: api}
    - {key: forced, policy: api, charge: always}
    - {key: dark, policy: log, shadow: true}
    - {key: dark_forced, policy: log, shadow: true, charge: always}
";

/// A server over this store, in virtual time.
fn app_over(store: AnyStore) -> Arc<App> {
    let config = Config::parse(CONFIG, "test.yaml").unwrap_or_else(|errors| panic!("{errors}"));
    let limiter =
        Limiter::builder(config.policies().clone()).store(store).clock(ManualClock::default()).build();
    let app = App::new(limiter).with_gateway(config.gateway().clone()).with_envoy(config.envoy().clone());
    Arc::new(app.with_admin_token(AdminToken::new(TOKEN).unwrap()))
}

/// A server over a store elsewhere.
fn app() -> (Remote, Arc<App>) {
    let remote = Remote::default();
    let app = app_over(AnyStore::elsewhere(remote.clone()));
    (remote, app)
}
