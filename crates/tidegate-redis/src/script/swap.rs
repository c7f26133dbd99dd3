//! `swap.lua`: another record in the place of one that was read, if it still is as it was.

use redis::Value;

use super::{Call, Script, Unheard};

static SWAP: Script = Script { name: "swap", source: include_str!("swap.lua") };

/// What becomes of a record.
#[derive(Debug, Clone)]
pub(crate) struct Swap {
    /// The record's name.
    pub(crate) record: Vec<u8>,
    /// As it was read; empty for none.
    pub(crate) before: Vec<u8>,
    /// As it is to be; empty for none.
    pub(crate) after: Vec<u8>,
    /// Milliseconds it lives; for ever if `None`.
    pub(crate) life: Option<u64>,
}

/// The call that does it.
pub(crate) fn swap(swap: Swap) -> Call {
    let life = swap.life.unwrap_or(0).to_string().into_bytes();
    Call { script: &SWAP, keys: vec![swap.record], args: vec![swap.before, swap.after, life] }
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
