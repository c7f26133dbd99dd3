//! From an answer to JSON, in which what is zero is left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tidegate::Wait;

use crate::envoy::{Answer, CurrentLimit, Status};

/// A `RateLimitResponse`.
pub(super) fn message(answer: &Answer) -> Value {
    let mut message = Map::new();
    message.insert("overallCode".into(), code(answer.over));
    message.insert("statuses".into(), answer.statuses.iter().map(status).collect());
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        json!({
            "key": name.as_str(), "value": String::from_utf8_lossy(value.as_bytes()),
        })
    };
    let headers: Vec<Value> = answer.headers.iter().map(header).collect();
    if !headers.is_empty() {
        message.insert("responseHeadersToAdd".into(), headers.into());
    }
    if !answer.body.is_empty() {
        message.insert("rawBody".into(), STANDARD.encode(&answer.body).into());
    }
    if answer.degraded {
        message.insert("dynamicMetadata".into(), json!({ "degraded": true }));
    }
    Value::Object(message)
}

fn status(status: &Status) -> Value {
    let mut message = Map::new();
    message.insert("code".into(), code(status.over));
    if let Some(limit) = &status.limit {
        message.insert("currentLimit".into(), current_limit(limit));
    }
    if status.remaining > 0 {
        message.insert("limitRemaining".into(), status.remaining.into());
    }
    if let Some(reset) = status.reset {
        message.insert("durationUntilReset".into(), duration(reset).into());
    }
    Value::Object(message)
}

fn current_limit(limit: &CurrentLimit) -> Value {
    let mut message = Map::new();
    if limit.requests > 0 {
        message.insert("requestsPerUnit".into(), limit.requests.into());
    }
    if let Some(unit) = limit.unit {
        message.insert("unit".into(), unit.name().to_ascii_uppercase().into());
    }
    message.insert("name".into(), limit.name.as_str().into());
    Value::Object(message)
}

/// Seconds, with three or six digits behind the point if they are no whole ones; at most 10,000 years.
fn duration(wait: Wait) -> String {
    const MICROS: u128 = 1_000_000;
    const LONGEST: u128 = 315_576_000_000;
    let (seconds, micros) = (wait.as_micros() / MICROS, wait.as_micros() % MICROS);
    match (seconds, micros) {
        (LONGEST.., _) => format!("{LONGEST}s"),
        (_, 0) => format!("{seconds}s"),
        (_, micros) if micros % 1_000 == 0 => format!("{seconds}.{:03}s", micros / 1_000),
        (_, micros) => format!("{seconds}.{micros:06}s"),
    }
}

fn code(over: bool) -> Value {
    if over { "OVER_LIMIT".into() } else { "OK".into() }
}
