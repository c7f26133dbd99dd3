//! An axum service behind a rate limit: 5 requests at once for each client address, then one a second.
//!
//! ```text
//! cargo run -p tidegate-tower --example axum
//! for i in 1 2 3 4 5 6; do curl -i localhost:3000/; done
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tidegate::{Limit, Limiter, Policy, Rate};
use tidegate_tower::{MissingKey, RateLimitLayer, key};
use tokio::net::TcpListener;

/// Five at once, then one a second.
pub fn policy() -> Result<Policy, Box<dyn Error>> {
    Ok(Policy::single("api", Limit::token_bucket(5, Rate::per_second(1)))?)
}

/// The service behind its limit.
pub fn app(limiter: &Limiter) -> Result<Router, Box<dyn Error>> {
    let limit = RateLimitLayer::new(limiter.policy("api")?, key::peer_ip(), MissingKey::Deny);
    Ok(Router::new().route("/", get(async || "hello\n")).layer(limit))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = app(&Limiter::new(policy()?))?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("try: curl -i http://{}/", listener.local_addr()?);
    // Whom a request counts for is the peer's address, so axum has to keep it.
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
