//! The exact arithmetic of Tidegate's rate limits.
//!
//! Everything here is a pure function of integers: there is no clock, no I/O, no float and no dependency. A
//! [`Plan`] of one to eight [`Limit`]s decides a check at an instant it is told, over state that a store keeps
//! as it likes behind [`Cells`]. Whoever keeps the state, in memory or in Redis, gets the same [`Decision`],
//! bit for bit.
//!
//! ```
//! use tidegate_core::{Cost, KeyState, Limit, Plan, Rate, Timestamp};
//! let plan = Plan::single(Limit::token_bucket(10, Rate::per_second(1)));
//! let mut key = KeyState::new(&plan);
//! let now = Timestamp::from_micros(1_700_000_000_000_000)?;
//! let decision = plan.check(&mut key, now, Cost::new(4)?);
//! assert!(decision.is_allowed());
//! assert_eq!(decision.remaining(), 6);
//! assert_eq!(decision.reset_after().unwrap().as_secs_ceil(), 4);
//! # Ok::<(), tidegate_core::QuantityError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bucket;
mod carry;
mod decision;
mod figures;
mod hold;
mod limit;
mod log;
mod packed;
mod plan;
mod quantity;
mod state;
mod window;

pub use carry::Since;
pub use decision::{Decision, MAX_LIMITS, Outcome};
pub use figures::{Figures, LimitDecision};
pub use limit::{Algorithm, Limit, LimitError, MAX_LOG_LIMIT};
pub use log::Log;
pub use packed::{MAX_WORDS, WORD_BITS};
pub use plan::{Penalty, Plan, PlanError};
pub use quantity::{Cost, Period, QuantityError, Rate, Timestamp, Units, Wait};
pub use state::{Cells, KeyState, State};
