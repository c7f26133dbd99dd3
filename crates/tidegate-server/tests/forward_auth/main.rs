//! Forward auth: asked over real sockets in virtual time, and by real proxies.
#![allow(clippy::unwrap_used)]

mod believed;
mod door;
mod keys;
mod proxies;
#[path = "../http/server.rs"]
#[allow(dead_code, reason = "the server of the HTTP door's tests has more to it than is asked here")]
mod server;
