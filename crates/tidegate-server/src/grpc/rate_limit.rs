//! `ShouldRateLimit`: the message decoded, decided, encoded.

use std::sync::Arc;
use std::time::Duration;

use tidegate::Wait;
use tidegate::store::within;
use tonic::codegen::BoxFuture;
use tonic::metadata::MetadataMap;
use tonic::server::UnaryService;
use tonic::{Request, Response, Status};

use super::messages::{
    Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitOverride, RateLimitRequest, RateLimitResponse,
    Unit as Wire,
};
use crate::app::App;
use crate::envoy::{self, Answer, CurrentLimit, Descriptor, Override, Refused, Unit};

/// A limit is an answer, never an error: Envoy lets pass what ends in one.
#[derive(Debug, Clone)]
pub(super) struct ShouldRateLimit(pub Arc<App>);

impl UnaryService<RateLimitRequest> for ShouldRateLimit {
    type Response = RateLimitResponse;
    type Future = BoxFuture<Response<RateLimitResponse>, Status>;

    fn call(&mut self, request: Request<RateLimitRequest>) -> Self::Future {
        let app = Arc::clone(&self.0);
        // Of what the caller will wait some is for the way back: it is to hear what policies answer without their store.
        let left = deadline(request.metadata()).map(|left| left - left / 4);
        let answer = Box::pin(async move {
            let answer = decide(&app, request.get_ref()).await.map_err(status)?;
            Ok(Response::new(encode(&answer)))
        });
        match left {
            Some(left) => Box::pin(within(left, answer)),
            None => answer,
        }
    }
}

/// How long the caller will wait, if it says so: `grpc-timeout`, at most eight digits and a unit.
fn deadline(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
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

fn encode(answer: &Answer) -> RateLimitResponse {
    let headers = answer.headers.iter().map(|(name, value)| HeaderValue {
        key: name.as_str().to_owned(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    });
    RateLimitResponse {
        overall_code: code(answer.over).into(),
        statuses: answer.statuses.iter().map(descriptor_status).collect(),
        response_headers_to_add: headers.collect(),
        raw_body: answer.body.clone().into_bytes(),
        dynamic_metadata: answer.degraded.then(degraded),
    }
}

/// Tells the proxy's log that the store all instances share had no part in the answer.
fn degraded() -> prost_types::Struct {
    let yes = prost_types::Value { kind: Some(prost_types::value::Kind::BoolValue(true)) };
    prost_types::Struct { fields: [("degraded".to_owned(), yes)].into() }
}

fn descriptor_status(status: &envoy::Status) -> DescriptorStatus {
    DescriptorStatus {
        code: code(status.over).into(),
        current_limit: status.limit.as_ref().map(current_limit),
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

fn current_limit(limit: &CurrentLimit) -> RateLimit {
    let unit = limit.unit.map_or(Wire::Unknown, |unit| match unit {
        Unit::Second => Wire::Second,
        Unit::Minute => Wire::Minute,
        Unit::Hour => Wire::Hour,
        Unit::Day => Wire::Day,
        Unit::Week => Wire::Week,
        Unit::Month => Wire::Month,
        Unit::Year => Wire::Year,
    });
    RateLimit { requests_per_unit: limit.requests, unit: unit.into(), name: limit.name.clone() }
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
        Refused::NoPolicy { .. } | Refused::NoRoom | Refused::StoreDown => Status::unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_the_caller_waits_is_read_as_grpc_writes_it() {
        let read = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            deadline(&metadata)
        };
        assert_eq!(read("20m"), Some(Duration::from_millis(20)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(read("20000u"), read("20m"));
        assert_eq!(deadline(&MetadataMap::new()), None);
        for wrong in ["", "m", "20", "20x", "-20m", "999999999m", "2 m"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
