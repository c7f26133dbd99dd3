//! `swap.lua`: another record in the place of one that was read, if it still is as it was.

use redis::Value;

use super::{Call, Script, Unheard};
use crate::record::{double, doubles};

static SWAP: Script = Script { name: "swap", source: include_str!("swap.lua") };

/// What becomes of a record and its logs.
#[derive(Debug, Clone)]
pub(crate) struct Swap {
    /// The record's name, then that of each log that changes.
    pub(crate) keys: Vec<Vec<u8>>,
    /// As it was read; empty for none.
    pub(crate) before: Vec<u8>,
    /// As it is to be; empty for none.
    pub(crate) after: Vec<u8>,
    /// Milliseconds it lives; for ever if `None`.
    pub(crate) life: Option<u64>,
    /// What becomes of each log.
    pub(crate) logs: Vec<LogChange>,
}

/// What becomes of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogChange {
    /// It goes.
    Forget,
    /// It goes on.
    Keep {
        /// Entries up to this stamp go; `None` for none.
        aged_out: Option<u64>,
        /// The running total as it was.
        from: u64,
        /// The running total as it is to be: less takes the newest entries back, more adds one.
        to: u64,
        /// The stamp of what is added.
        at: u64,
        /// Milliseconds it lives.
        life: u64,
    },
}

/// The call that does it.
pub(crate) fn swap(swap: Swap) -> Call {
    let mut args = vec![swap.before, swap.after, swap.life.unwrap_or(0).to_string().into_bytes()];
    for log in swap.logs {
        let mut arg = Vec::with_capacity(40);
        match log {
            LogChange::Forget => doubles(&[-1.0, 0.0, -1.0, 0.0, 0.0], &mut arg),
            LogChange::Keep { aged_out, from, to, at, life } => {
                let aged_out = aged_out.map_or(-1.0, double);
                doubles(&[aged_out, double(from), double(to), double(at), double(life)], &mut arg);
            }
        }
        args.push(arg);
    }
    Call { script: &SWAP, keys: swap.keys, args }
}

impl Swap {
    /// Whether it was done; `false` if the record was another by then.
    pub(crate) fn done(reply: &Value) -> Result<bool, Unheard> {
        match reply {
            Value::Int(done @ (0 | 1)) => Ok(*done == 1),
            other => Err(Unheard { script: SWAP.name, reply: format!("{other:?}") }),
        }
    }
}
