//! Files written for envoyproxy/ratelimit, unchanged: a domain each, a tree of descriptors, a limit where one ends.
//!
//! Each limit becomes a policy of a fixed window, charged whatever becomes of the others, as there. What it takes is
//! taken here, what it refuses is refused, with a line; what has no effect here is remarked.

mod check;
mod convert;
mod files;
mod leaf;
mod names;
mod raw;

pub use convert::to_yaml;
pub use files::{RatelimitFiles, parse};

use tidegate::Policy;

use super::super::warnings::Warning;
use crate::envoy::EnvoyRules;

/// What a folder of such files means.
#[derive(Debug, Clone, Default)]
pub struct Translated {
    /// A policy for each limit.
    pub policies: Vec<Policy>,
    /// Which descriptors meet which.
    pub rules: EnvoyRules,
    /// What may surprise.
    pub remarks: Vec<Warning>,
}
