//! The RESP door, over real sockets in virtual time, and driven by the clients people have.
#![allow(clippy::unwrap_used)]

mod auth;
mod chunks;
mod clients;
mod conformance;
mod ending;
mod frames;
mod handshake;
mod policies;
mod server;
mod slow;
mod throttle;
mod wire;
