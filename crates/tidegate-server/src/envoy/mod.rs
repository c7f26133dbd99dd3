//! Envoy's rate limit service, apart from the wire: which limits descriptors meet, and what is decided.
//!
//! Descriptors meet a tree of [`EnvoyRules`], entry by entry, as they do in envoyproxy/ratelimit: first a node of
//! the very key and value, then those with a `*` in the order of the file, then the one of the key alone.

mod answer;
mod charge;
mod decide;
mod in_force;
mod part;
mod request;
mod tree;

pub(crate) use answer::{Answer, CurrentLimit, Status};
pub(crate) use decide::decide;
pub(crate) use in_force::InForce;
pub(crate) use request::{Descriptor, Override, Refused, Request, Unit};
pub use tree::{Charge, Effect, EnvoyRules, Level, Node, Rule};
