//! The configuration file: as typed, as meant, and what is wrong with it.
//!
//! A text becomes a tree with a line for every value (`yaml`), the tree a structure that mirrors the file
//! (`raw`), and that, in the one step that may fail, a [`Config`] in which nothing can be wrong. All errors of
//! both steps are kept, not only the first.

mod checked;
mod envoy;
mod errors;
mod figures;
mod leaf;
mod limits;
mod number;
mod policies;
mod raw;
mod reader;
mod remote;
mod rules;
mod schema;
mod source;
mod store;
mod suggest;
mod time_units;
mod warnings;
mod words;
mod yaml;

pub use checked::{Config, HeaderFamily, HeaderSettings, LoadError, MAX_FILE_BYTES, ResetStyle};
pub use envoy::{descriptors_in_words, ratelimit};
pub use errors::{ConfigError, ConfigErrors, Fault, Place};
pub use figures::{parse_period, parse_rate, parse_units, show_period, show_rate};
pub use remote::{AddressRule, Layout, OnDamage, OnOutage, SharedStore};
pub(crate) use rules::{DenyStatus, KeyPart, Match, OnMissing, RuleCost};
pub use rules::{Gateway, Pattern, Rule, TrustedProxies, proxies_in_words, rule_in_words};
pub use schema::json_schema;
pub use source::Source;
pub use store::{StoreKind, StoreSettings};
pub use warnings::{Severity, Warning, warnings};
pub use words::{headers_in_words, limit_in_words, rate_in_words, store_in_words};

/// Checks any bytes as a configuration file: the entry for fuzzing.
///
/// # Errors
/// All that is wrong with them.
pub fn parse(bytes: &[u8]) -> Result<Config, ConfigErrors> {
    Config::parse_bytes(bytes, "-")
}

#[cfg(test)]
mod tests;
