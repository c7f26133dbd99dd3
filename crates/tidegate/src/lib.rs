//! Exact rate limiting: token bucket, GCRA, leaky bucket, fixed window, sliding window log and sliding window
//! counter, several limits together all or nothing, in bounded memory.
//!
//! ```
//! use tidegate::{Limit, Limiter, Period, Policy, Rate};
//!
//! let limiter = Limiter::new(
//!     Policy::builder("api")
//!         .limit("burst", Limit::token_bucket(100, Rate::per_second(10)))
//!         .limit("daily", Limit::fixed_window(10_000, Period::DAY))
//!         .build()?,
//! );
//! let api = limiter.policy("api")?;
//! let decision = api.check("user:42", 3);
//! assert!(decision.is_allowed());
//! assert_eq!(decision.remaining(), 97);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What every decision means, to the microsecond, is fixed by [`tidegate_core`]; this crate adds keys, a
//! [`MemoryStore`], a [`clock`] and policies that can be changed while they run.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as tidegate; // for what unit tests share with those in tests/

/// The README's example has to run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod active;
mod adhoc;
mod batch;
pub mod clock;
mod group;
mod handle;
mod limiter;
mod memory;
mod patience;
mod policy;
mod reload;
pub mod store;
mod wait;

pub use active::{ActivePolicy, PlanId, PolicyNumber};
pub use adhoc::{AdHocCheck, AdHocLimit, AdHocSpace, AdHocStore, AdHocStoreBuilder};
pub use group::Asked;
pub use handle::PolicyHandle;
pub use limiter::{Limiter, LimiterBuilder, UnknownPolicy};
pub use memory::{MemoryStats, MemoryStore, MemoryStoreBuilder, OnFull};
pub use policy::{KeyPattern, Policy, PolicyBuilder, PolicyError, PolicySet};
pub use reload::{Reload, TooManyFigures};
pub use tidegate_core::{
    Algorithm, Cost, Decision, Figures, KeyState, Limit, LimitDecision, LimitError, MAX_LIMITS,
    MAX_LOG_LIMIT, Outcome, Penalty, Period, Plan, QuantityError, Rate, Timestamp, Units, Wait,
};
pub use wait::{Acquire, AcquireError};
