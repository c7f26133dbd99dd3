//! A decision as a line of JSON: the HTTP answer's fields, with durations in whole microseconds.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use tidegate::{Decision, Policy, Wait};

use crate::trace::{BadLine, TraceCheck};

/// Writes one line for a check and what was decided, with its end.
///
/// # Errors
/// The output's.
pub fn write_decision(
    out: &mut impl Write,
    check: &TraceCheck,
    policy: &Policy,
    decision: &Decision,
) -> io::Result<()> {
    let line = DecisionLine {
        at_us: check.at.as_micros(),
        key: JsonKey::new(&check.key),
        cost: check.cost.get(),
        policy: policy.name(),
        allowed: decision.is_allowed(),
        outcome: decision.outcome().as_str(),
        bound_by: policy.limit_name(decision.bound_by()),
        limit: decision.limit().get(),
        remaining: decision.remaining(),
        retry_after_us: decision.retry_after().map(Wait::as_micros),
        reset_after_us: decision.reset_after().map(Wait::as_micros),
        delay_us: decision.delay().as_micros(),
        limits: EachLimit { policy, decision },
    };
    write_line(out, &line)
}

/// Writes the line that stands for a line of the trace that is no check.
///
/// # Errors
/// The output's.
pub fn write_bad_line(out: &mut impl Write, line: u64, error: &BadLine) -> io::Result<()> {
    write_line(out, &BadLineLine { line, error: error.to_string() })
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct DecisionLine<'a> {
    at_us: u64,
    #[serde(flatten)]
    key: JsonKey<'a>,
    cost: u64,
    policy: &'a str,
    allowed: bool,
    outcome: &'a str,
    bound_by: &'a str,
    limit: u64,
    remaining: u64,
    retry_after_us: Option<u128>,
    reset_after_us: Option<u128>,
    delay_us: u128,
    limits: EachLimit<'a>,
}

#[derive(Serialize)]
struct BadLineLine {
    line: u64,
    error: String,
}

/// A key as it stands in JSON: `key` if it is UTF-8, else `key_b64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) enum JsonKey<'a> {
    #[serde(rename = "key")]
    Text(&'a str),
    #[serde(rename = "key_b64")]
    Bytes(String),
}

impl<'a> JsonKey<'a> {
    pub(crate) fn new(key: &'a [u8]) -> Self {
        std::str::from_utf8(key).map_or_else(|_| JsonKey::Bytes(STANDARD.encode(key)), JsonKey::Text)
    }
}

/// Every limit's own figures, written without being collected first.
struct EachLimit<'a> {
    policy: &'a Policy,
    decision: &'a Decision,
}

#[derive(Serialize)]
struct LimitLine<'a> {
    name: &'a str,
    algorithm: &'a str,
    limit: u64,
    remaining: u64,
    retry_after_us: Option<u128>,
    reset_after_us: Option<u128>,
    delay_us: u128,
}

impl Serialize for EachLimit<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let limits = self.policy.limit_names().zip(self.policy.plan().limits()).zip(self.decision.limits());
        serializer.collect_seq(limits.map(|((name, limit), figures)| LimitLine {
            name,
            algorithm: limit.algorithm().name(),
            limit: figures.limit().get(),
            remaining: figures.remaining(),
            retry_after_us: figures.retry_after().map(Wait::as_micros),
            reset_after_us: figures.reset_after().map(Wait::as_micros),
            delay_us: figures.delay().as_micros(),
        }))
    }
}
