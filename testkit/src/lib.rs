//! What every store and every front door of Tidegate is judged by.
//!
//! * [`oracle`]: the meaning of a decision once more, slowly and obviously, in exact rationals.
//! * [`cases`]: faults reported against other limiters, as traces with the right answers.
//! * [`conformance`]: the suite. A store or door is mounted by implementing [`conformance::Subject`].
//! * [`strategies`]: random limits and traces for property tests.
//!
//! Nothing here depends on Tidegate's own crates, so that a mistake in them cannot be made twice.
#![forbid(unsafe_code)]

pub mod cases;
pub mod conformance;
pub mod oracle;
pub mod strategies;
