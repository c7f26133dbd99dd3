//! What a request says, read strictly from its bytes: pure functions, so that they can be fuzzed.
//!
//! Nothing is guessed: an unknown field, one given twice or a number that is no whole number is a problem that
//! names the field, what was written, the rule and the mend.

mod body;
mod field;
mod query;

use std::borrow::Cow;

use tidegate::{Cost, Units};

pub use body::{AdjustBody, Batch, BatchBody, CheckBody, ResetBody};
pub use body::{decode_adjust, decode_batch, decode_check, decode_reset};
pub(super) use field::shown;
pub use query::decode_peek;

/// A key has at most this many bytes.
pub const MOST_KEY_BYTES: usize = 4_096;

/// A batch has at most this many checks.
pub const MOST_CHECKS: usize = 1_000;

/// Whom a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The policy asked for, if one was.
    pub policy: Option<Cow<'a, str>>,
    /// The key: any bytes.
    pub key: Cow<'a, [u8]>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest<'a> {
    /// Whom it is about.
    pub subject: Subject<'a>,
    /// What it asks for; 1 unless said.
    pub cost: Cost,
}

/// A credit or a penalty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjustRequest<'a> {
    /// Whom it is about.
    pub subject: Subject<'a>,
    /// How much is given back or charged.
    pub units: Units,
}
