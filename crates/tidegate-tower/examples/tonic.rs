//! A gRPC service of tonic's behind a rate limit: 3 calls at once for each API key, then one a second.
//!
//! ```text
//! cargo run -p tidegate-tower --example tonic
//! grpcurl -plaintext -H 'x-api-key: k' localhost:50051 grpc.health.v1.Health/Check
//! ```

use std::error::Error;

use tidegate::{Limit, Limiter, Policy, Rate};
use tidegate_tower::{GrpcDenial, MissingKey, RateLimitLayer, key};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// Three at once, then one a second.
pub fn policy() -> Result<Policy, Box<dyn Error>> {
    Ok(Policy::single("calls", Limit::token_bucket(3, Rate::per_second(1)))?)
}

/// Serves the service behind its limit.
pub async fn serve(limiter: &Limiter, incoming: TcpIncoming) -> Result<(), Box<dyn Error>> {
    let missing = MissingKey::DenyWith(http::StatusCode::UNAUTHORIZED);
    let limit = RateLimitLayer::new(limiter.policy("calls")?, key::header("x-api-key"), missing)
        .on_denial(GrpcDenial);
    let (_, health) = tonic_health::server::health_reporter();
    Ok(Server::builder().layer(limit).add_service(health).serve_with_incoming(incoming).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("listening on 127.0.0.1:50051");
    serve(&Limiter::new(policy()?), TcpIncoming::bind("127.0.0.1:50051".parse()?)?).await
}
