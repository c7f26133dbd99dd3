//! The scripts that run inside the server, and what is said to them.

mod check;
mod classic;
mod read;
mod swap;
mod swift;
mod written;

pub(crate) use check::{Ask, Item, Mode, Told, check};
pub(crate) use classic::{Bucket, Deed, classic};
pub(crate) use read::{read, was_read};
pub(crate) use swap::{Swap, swap};
pub(crate) use swift::Swift;

use tidegate::Limit;

use crate::record::double;

/// The most that a window's count weighs, however many were counted under other figures.
pub(crate) fn most_counted(limit: &Limit) -> f64 {
    double(limit.capacity().get() + limit.capacity().max(limit.debt()).get())
}

/// How long records live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lives {
    /// Milliseconds for which one outlives its being as new.
    pub(crate) spare: u64,
    /// Milliseconds for which one lives that never becomes as new, from the last time it is written; for ever if `None`.
    pub(crate) unending: Option<u64>,
}

impl Lives {
    /// Both as the scripts are told: 0 is for ever.
    pub(super) fn doubles(self) -> [f64; 2] {
        [double(self.spare), double(self.unending.unwrap_or(0))]
    }
}

/// A script: its text, and its name for messages.
#[derive(Debug)]
pub(crate) struct Script {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// Lua 5.1, as Redis and Valkey run it.
    pub(crate) source: &'static str,
}

/// One call of a script. Its keys are all in one slot.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
}

/// A reply that no script of ours gives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script {script} was answered {reply}, which it never replies")]
pub(crate) struct Unheard {
    pub(crate) script: &'static str,
    pub(crate) reply: String,
}
