//! The commands of `tidegate`, apart from the process around them: so that they can be tested without one.
#![forbid(unsafe_code)]

pub mod compare;
pub mod convert;
mod failure;
pub mod replay;
pub mod serve;
mod span;
mod store;
mod table;
pub mod trace;
pub mod validate;

pub use failure::{Failure, print};
