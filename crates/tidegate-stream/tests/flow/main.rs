//! Streams and loops, in virtual time.
#![allow(clippy::unwrap_used)]

mod pace;
mod stores;
#[path = "../support/mod.rs"]
mod support;
mod throttle;
