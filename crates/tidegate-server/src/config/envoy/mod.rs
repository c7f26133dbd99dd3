//! What Envoy's descriptors meet: our own section of the file, and files written for envoyproxy/ratelimit.

mod check;
mod leaf;
pub mod ratelimit;
pub(super) mod raw;
mod words;

pub(super) use check::rules;
pub use words::descriptors_in_words;
