//! What Envoy's descriptors meet: our own section of the file, and files written for envoyproxy/ratelimit.

mod check;
mod leaf;
pub(super) mod raw;

pub(super) use check::rules;
