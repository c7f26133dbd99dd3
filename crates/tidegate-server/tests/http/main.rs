//! The HTTP door, asked over real sockets in virtual time.
#![allow(clippy::unwrap_used)]

mod admin;
mod answers;
mod conformance;
mod drain;
mod fields;
mod malformed;
mod metrics;
mod openapi;
mod pages;
mod ratelimit;
mod reload;
mod server;
mod wire;
