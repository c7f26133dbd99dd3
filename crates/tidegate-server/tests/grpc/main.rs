//! Envoy's rate limit service over gRPC, in virtual time, by tonic's client, by Envoy and by a program in Python.
#![allow(clippy::unwrap_used)]

mod conformance;
mod decisions;
mod ending;
mod envoy;
mod python;
mod ratelimit;
mod reflection;
mod server;
mod tls;
