//! `classic.lua`: the bucket that many services keep already.

use redis::Value;
use tidegate::{Limit, Timestamp};

use super::{Call, Script, Unheard};

static CLASSIC: Script = Script { name: "classic", source: include_str!("classic.lua") };

/// What is done to a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Check(u64),
    UpTo(u64),
    Credit(u64),
    Charge(u64),
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) admitted: bool,
    /// Tokens there were, refilled to the instant it was decided at.
    pub(crate) before: f64,
    /// Tokens there are.
    pub(crate) after: f64,
    /// The instant it was decided at, in seconds since the Unix epoch.
    pub(crate) at: f64,
}

/// The call that does `deed` to the bucket called `name`.
pub(crate) fn classic(name: Vec<u8>, limit: &Limit, now: Timestamp, deed: Deed) -> Call {
    let rate = limit.rate().map_or(0.0, |rate| {
        let (amount, period) = rate.lowest_terms();
        amount as f64 * 1e6 / period as f64
    });
    let (what, amount) = match deed {
        Deed::Check(cost) => ("check", cost),
        Deed::UpTo(most) => ("upto", most),
        Deed::Credit(units) => ("credit", units),
        Deed::Charge(units) => ("charge", units),
    };
    let micros = now.as_micros();
    let args = [
        limit.capacity().get().to_string(),
        format!("{rate:?}"),
        format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000),
        what.to_owned(),
        amount.to_string(),
        limit.debt().get().to_string(),
    ];
    Call { script: &CLASSIC, keys: vec![name], args: args.map(String::into_bytes).to_vec() }
}

impl Bucket {
    pub(crate) fn of(reply: &Value) -> Result<Bucket, Unheard> {
        let unheard = || Unheard { script: CLASSIC.name, reply: format!("{reply:?}") };
        let Value::Array(words) = reply else { return Err(unheard()) };
        let number = |word: &Value| match word {
            Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<f64>().ok(),
            _ => None,
        };
        match &words[..] {
            [Value::Int(admitted @ (0 | 1)), before, after, at] => Ok(Bucket {
                admitted: *admitted == 1,
                before: number(before).ok_or_else(unheard)?,
                after: number(after).ok_or_else(unheard)?,
                at: number(at).ok_or_else(unheard)?,
            }),
            _ => Err(unheard()),
        }
    }
}
