//! The gRPC door: Envoy's rate limit service, health, and reflection.

mod descriptors;
mod health;
pub mod messages;
mod rate_limit;
mod reflection;
mod route;
mod serve;
mod tls;
mod unary;

pub(crate) use serve::Reception;
pub use serve::serve;
pub use tls::{Tls, TlsError, TlsFiles};

/// The rate limit service's full name.
pub const RATE_LIMIT_SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";
