//! `ShouldRateLimit`: the message decoded, decided, encoded.

use std::time::Duration;

use tidegate::Wait;
use tidegate::store::{StoreErrorKind, within};
use tonic::Status;

use super::messages::{
    Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitOverride, RateLimitRequest, RateLimitResponse,
    Unit as Wire,
};
use crate::app::App;
use crate::envoy::{self, Answer, CurrentLimit, Descriptor, Override, Refused, Unit};

/// Answers one question; `given` is how long its caller will wait, if it says so. A limit is an answer, never an
/// error: Envoy lets pass what ends in one.
pub(super) async fn answer(
    app: &App,
    message: &RateLimitRequest,
    given: Option<Duration>,
) -> Result<RateLimitResponse, Status> {
    let decided = decide(app, message);
    let answer = match given {
        // Of what the caller will wait some is for the way back: it is to hear what policies answer without their store.
        Some(given) => within(given - given / 4, Box::pin(decided)).await,
        None => decided.await,
    };
    answer.map(encode).map_err(status)
}

async fn decide(app: &App, message: &RateLimitRequest) -> Result<Answer, Refused> {
    let descriptors = message.descriptors.iter().enumerate().map(|(index, descriptor)| {
        Ok(Descriptor {
            entries: descriptor.entries.iter().map(|entry| (&*entry.key, &*entry.value)).collect(),
            limit: descriptor.limit.map(|limit| brought(index, limit)).transpose()?,
            hits: descriptor.hits_addend,
            gives_back: descriptor.is_negative_hits,
        })
    });
    let request = envoy::Request {
        domain: &message.domain,
        descriptors: descriptors.collect::<Result<_, _>>()?,
        hits_addend: message.hits_addend,
    };
    envoy::decide(app, &request).await
}

fn brought(index: usize, limit: RateLimitOverride) -> Result<Override, Refused> {
    let unit = Wire::try_from(limit.unit).ok().and_then(|unit| match unit {
        Wire::Second => Some(Unit::Second),
        Wire::Minute => Some(Unit::Minute),
        Wire::Hour => Some(Unit::Hour),
        Wire::Day => Some(Unit::Day),
        Wire::Month => Some(Unit::Month),
        Wire::Year => Some(Unit::Year),
        // Of this message's own enumeration it is not.
        Wire::Week | Wire::Unknown => None,
    });
    let unit = unit.ok_or_else(|| Refused::Unit { index, unit: limit.unit.to_string() })?;
    Ok(Override { requests: limit.requests_per_unit, unit })
}

fn encode(answer: Answer) -> RateLimitResponse {
    let headers = answer.headers.iter().map(|(name, value)| HeaderValue {
        key: name.as_str().to_owned(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    });
    RateLimitResponse {
        overall_code: code(answer.over).into(),
        statuses: answer.statuses.into_iter().map(descriptor_status).collect(),
        response_headers_to_add: headers.collect(),
        raw_body: answer.body.into_bytes(),
        dynamic_metadata: answer.degraded.then(degraded),
    }
}

/// Tells the proxy's log that the store all instances share had no part in the answer.
fn degraded() -> prost_types::Struct {
    let yes = prost_types::Value { kind: Some(prost_types::value::Kind::BoolValue(true)) };
    prost_types::Struct { fields: [("degraded".to_owned(), yes)].into() }
}

fn descriptor_status(status: envoy::Status) -> DescriptorStatus {
    DescriptorStatus {
        code: code(status.over).into(),
        current_limit: status.limit.map(current_limit),
        limit_remaining: status.remaining,
        duration_until_reset: status.reset.map(duration),
    }
}

/// The longest that protobuf allows is 10,000 years; what is longer is told as that.
fn duration(wait: Wait) -> prost_types::Duration {
    const MICROS: u128 = 1_000_000;
    const LONGEST: i64 = 315_576_000_000;
    match i64::try_from(wait.as_micros() / MICROS) {
        Ok(seconds) if seconds < LONGEST => {
            let micros = i32::try_from(wait.as_micros() % MICROS).unwrap_or_default();
            prost_types::Duration { seconds, nanos: micros * 1_000 }
        }
        _ => prost_types::Duration { seconds: LONGEST, nanos: 0 },
    }
}

fn current_limit(limit: CurrentLimit) -> RateLimit {
    let unit = limit.unit.map_or(Wire::Unknown, |unit| match unit {
        Unit::Second => Wire::Second,
        Unit::Minute => Wire::Minute,
        Unit::Hour => Wire::Hour,
        Unit::Day => Wire::Day,
        Unit::Week => Wire::Week,
        Unit::Month => Wire::Month,
        Unit::Year => Wire::Year,
    });
    RateLimit { requests_per_unit: limit.requests, unit: unit.into(), name: limit.name }
}

fn code(over: bool) -> Code {
    if over { Code::OverLimit } else { Code::Ok }
}

/// As envoyproxy/ratelimit answers: UNKNOWN for a question without a domain, descriptors or limits.
fn status(refused: Refused) -> Status {
    let text = refused.to_string();
    match refused {
        Refused::NoDomain | Refused::NoDescriptors | Refused::NoRules => Status::unknown(text),
        Refused::Unit { .. } => Status::invalid_argument(text),
        // Codes after which nobody tries again by itself.
        Refused::Unanswered(StoreErrorKind::Damaged) => Status::data_loss(text),
        Refused::Unanswered(StoreErrorKind::Unfit) => Status::failed_precondition(text),
        Refused::NoPolicy { .. } | Refused::NoRoom | Refused::Unanswered(_) => Status::unavailable(text),
    }
}
