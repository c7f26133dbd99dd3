//! Envoy's rate limit service over gRPC, in virtual time, by tonic's client.
#![allow(clippy::unwrap_used)]

mod decisions;
mod ending;
mod server;
