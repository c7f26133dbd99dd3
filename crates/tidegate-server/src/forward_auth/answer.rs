//! What a proxy is told.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tidegate::Timestamp;
use tidegate_fields::{Problem, Standing};

use crate::app::App;
use crate::config::DenyStatus;
use crate::http::limit_fields;
use crate::view::View;

/// Why a request is not let through, as `application/problem+json` (RFC 9457).
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the document's words for what is written by tidegate-fields")]
pub(crate) struct Refusal {
    /// Names the kind of problem: one registered with the IANA, or about:blank.
    #[schema(rename = "type", example = "https://iana.org/assignments/http-problem-types#quota-exceeded")]
    uri: String,
    /// The kind in words.
    #[schema(example = "Quota Exceeded")]
    title: String,
    /// The HTTP status.
    #[schema(example = 429, minimum = 400, maximum = 599)]
    status: u16,
    /// What happened this time, and what to do.
    detail: String,
    /// The names of the limits that refused; left out if there are none.
    #[schema(rename = "violated-policies", nullable = false)]
    violated_policies: Option<Vec<String>>,
}

/// A request that is not charged. It has no limit fields: there is nothing to tell.
pub(super) fn let_through() -> Response {
    uncached(StatusCode::OK.into_response())
}

/// A decision.
pub(super) fn decided(app: &App, view: &View<'_>, denied: DenyStatus, at: Timestamp) -> Response {
    let mut response = match Problem::of_refusal(view.policy(), view.decision()) {
        None => let_through(),
        Some(refusal) => {
            let status = match (refusal.status, denied) {
                // No word on the client, and no proxy should take it for one.
                (StatusCode::SERVICE_UNAVAILABLE, _) => StatusCode::SERVICE_UNAVAILABLE,
                (_, DenyStatus::TooManyRequests) => StatusCode::TOO_MANY_REQUESTS,
                (_, DenyStatus::Forbidden) => StatusCode::FORBIDDEN,
            };
            refused(&Problem { status, ..refusal })
        }
    };
    let standing = Standing { policy: view.policy(), key: view.key(), decision: view.decision(), now: at };
    limit_fields(app.headers()).write(response.headers_mut(), &standing);
    response
}

/// A request without a part of its key, where that is denied.
pub(super) fn nobody_to_charge() -> Response {
    refused(&Problem::of_status(StatusCode::FORBIDDEN, "The request does not say for whom it is counted."))
}

/// A request with a part of its key given twice.
pub(super) fn ambiguous() -> Response {
    refused(&Problem::of_status(StatusCode::FORBIDDEN, "The request says twice for whom it is counted."))
}

fn refused(problem: &Problem) -> Response {
    let mut response = (problem.status, problem.to_json()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, Problem::MEDIA_TYPE);
    uncached(response)
}

/// True only now.
fn uncached(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
