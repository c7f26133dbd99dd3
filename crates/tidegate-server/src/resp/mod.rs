//! RESP: any Redis client is a client of ours.
//!
//! `CL.THROTTLE` is answered as redis-cell does, `TG.CHECK` and its kin decide under the policies of the
//! configuration, and the rest is what clients say when they connect. A connection is a task: it reads, decides
//! all it has read at one instant, writes all replies at once. What each reply means is told in `docs/resp.md`.

mod commands;
mod conversation;
mod directory;
mod door;
mod input;
mod limits;
pub mod parse;
mod reply;
mod run;
mod secret;
mod serve;
mod session;

pub use conversation::{Conversation, Next};
pub use door::Door;
pub use secret::{Password, PasswordError};
pub(crate) use serve::Reception;
pub use serve::serve;
