//! `read.lua`: a record as it is.

use redis::Value;

use super::{Call, Script, Unheard};

static READ: Script = Script { name: "read", source: include_str!("read.lua") };

/// The call that reads the record called `record`.
pub(crate) fn read(record: Vec<u8>) -> Call {
    Call { script: &READ, keys: vec![record], args: Vec::new() }
}

/// The record that was read; empty if there is none.
pub(crate) fn was_read(reply: Value) -> Result<Vec<u8>, Unheard> {
    match reply {
        Value::BulkString(record) => Ok(record),
        other => Err(Unheard { script: READ.name, reply: format!("{other:?}") }),
    }
}
