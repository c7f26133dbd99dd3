//! Denials as gRPC statuses.

mod status;
mod wire;

use http::{HeaderValue, Response, StatusCode, header};
use tidegate::Outcome;
use tidegate::store::StoreErrorKind;

use crate::body::DenialBody;
use crate::denial::{Denial, DenialHandler, Reason};
use status::{Code, Detail, Status};

/// Answers with a gRPC status, in the one frame of headers that gRPC calls *trailers-only*: a refusal is
/// `RESOURCE_EXHAUSTED` with `google.rpc.QuotaFailure` for each limit that refuses, and `google.rpc.RetryInfo`
/// if waiting helps.
///
/// A store that may hold no more keys, or does not answer, is `UNAVAILABLE`, one whose record of the key is damaged
/// `DATA_LOSS`, one that is not set up for what is asked `FAILED_PRECONDITION`; an unreadable cost `INVALID_ARGUMENT`; a missing key `UNAUTHENTICATED` if the status chosen is 401, `INVALID_ARGUMENT` for 400, else
/// `PERMISSION_DENIED`.
///
/// ```
/// use tidegate::{Limit, Limiter, Policy, Rate};
/// use tidegate_tower::{GrpcDenial, MissingKey, RateLimitLayer, key};
/// let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(100, Rate::per_second(10)))?);
/// let layer = RateLimitLayer::new(limiter.policy("api")?, key::peer_ip(), MissingKey::Deny)
///     .on_denial(GrpcDenial);
/// // tonic::transport::Server::builder().layer(layer).add_service(...)
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GrpcDenial;

impl DenialHandler for GrpcDenial {
    fn respond(&self, denial: &Denial<'_>) -> Response<DenialBody> {
        let mut response = Response::new(DenialBody::empty());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        status_of(denial).write(headers);
        response
    }
}

fn status_of(denial: &Denial<'_>) -> Status {
    let code = match (denial.reason(), denial.status()) {
        (Reason::Refused(checked), _) => match checked.decision().outcome() {
            Outcome::Overloaded => Code::Unavailable,
            _ => Code::ResourceExhausted,
        },
        (Reason::StoreUnavailable(error), _) => match error.kind {
            StoreErrorKind::Outage => Code::Unavailable,
            StoreErrorKind::Damaged => Code::DataLoss,
            _ => Code::FailedPrecondition,
        },
        (Reason::UnreadableCost(_), _) | (Reason::MissingKey(_), StatusCode::BAD_REQUEST) => {
            Code::InvalidArgument
        }
        (Reason::MissingKey(_), StatusCode::UNAUTHORIZED) => Code::Unauthenticated,
        (Reason::MissingKey(_), _) => Code::PermissionDenied,
    };
    Status { code, message: denial.problem().detail, details: details(denial) }
}

fn details(denial: &Denial<'_>) -> Vec<Detail> {
    let Reason::Refused(checked) = denial.reason() else { return Vec::new() };
    let decision = checked.decision();
    let mut details = Vec::new();
    if let Some(wait) = decision.retry_after() {
        details.push(Detail::RetryInfo { micros: wait.as_micros() });
    }
    let limits = checked.policy().limit_names().zip(decision.limits());
    let violations = limits.filter(|(_, limit)| !limit.admits()).map(|(name, limit)| status::Violation {
        subject: format!("policy:{}", checked.policy().name()),
        description: format!("limit {name:?} of {}", limit.limit()),
        quota_id: name.to_owned(),
        quota_value: limit.limit().get(),
    });
    details.push(Detail::QuotaFailure(violations.collect()));
    details
}
