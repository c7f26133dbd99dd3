//! `read.lua`: a record and whole logs.

use redis::Value;

use super::{Call, Script, Unheard};
use crate::record::KeptLog;

static READ: Script = Script { name: "read", source: include_str!("read.lua") };

/// A record as it is, and its logs as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    /// Empty if there is none.
    pub(crate) kept: Vec<u8>,
    /// Each log's entries as (stamp, running total before it), one number after the other.
    logs: Vec<Vec<u64>>,
}

/// The call that reads the record called by the first of `keys` and the logs called by the others.
pub(crate) fn read(keys: Vec<Vec<u8>>) -> Call {
    Call { script: &READ, keys, args: Vec::new() }
}

impl Read {
    pub(crate) fn of(reply: Value) -> Result<Read, Unheard> {
        let unheard = |reply: &Value| Unheard { script: READ.name, reply: format!("{reply:?}") };
        let Value::Array(words) = &reply else { return Err(unheard(&reply)) };
        let [Value::BulkString(kept), logs @ ..] = &words[..] else { return Err(unheard(&reply)) };
        let read = |log: &Value| match log {
            Value::BulkString(bytes) => numbers(bytes),
            _ => None,
        };
        let logs = logs.iter().map(|log| read(log).ok_or_else(|| unheard(log))).collect::<Result<_, _>>()?;
        Ok(Read { kept: kept.clone(), logs })
    }

    /// The logs, whose running totals are `totals`.
    pub(crate) fn logs(&self, totals: &[u64]) -> Vec<KeptLog> {
        self.logs.iter().zip(totals).map(|(log, total)| entries(log, *total)).collect()
    }
}

/// Entries that came with the total before them, with the total after them.
pub(super) fn entries(told: &[u64], total: u64) -> KeptLog {
    let base = told.get(1).copied().unwrap_or(total);
    let after = told.chunks_exact(2).skip(1).map(|pair| pair[1]).chain([total]);
    let entries = told.chunks_exact(2).zip(after).map(|(pair, after)| (pair[0], after)).collect();
    KeptLog { base, entries }
}

/// Whole numbers not below zero, as the scripts write them.
pub(super) fn numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    if !bytes.len().is_multiple_of(8) {
        return None;
    }
    let number = |chunk: &[u8]| {
        let number = f64::from_be_bytes(chunk.try_into().ok()?);
        let whole = number.fract() == 0.0 && (0.0..=(1u64 << 53) as f64).contains(&number);
        whole.then_some(number as u64)
    };
    bytes.chunks_exact(8).map(number).collect()
}
