//! What is answered in place of a decision: problem details as RFC 9457 has them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// The kinds of problem. The page at `/docs` has a line on each, which the problem's `type` points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The request does not say what to do, or says something impossible.
    InvalidRequest,
    /// No policy has the name asked for.
    UnknownPolicy,
    /// Nothing is at this path.
    NotFound,
    /// The path is there, but not for this method.
    MethodNotAllowed,
    /// A POST that does not carry JSON.
    UnsupportedMediaType,
    /// A body of more bytes than are taken.
    BodyTooLarge,
    /// A body that did not arrive in time.
    BodyTooSlow,
    /// A route that needs the admin token, without it or with another.
    Unauthorized,
    /// A route that needs the admin token, on a server that has none.
    AdminOff,
    /// The store did not answer.
    StoreUnavailable,
    /// What the store keeps of the key is damaged.
    RecordDamaged,
    /// The store cannot decide this as it is set up.
    StoreUnfit,
}

impl ProblemKind {
    /// All of them, in the order of the page at `/docs`.
    pub const ALL: [ProblemKind; 12] = [
        ProblemKind::InvalidRequest,
        ProblemKind::UnknownPolicy,
        ProblemKind::NotFound,
        ProblemKind::MethodNotAllowed,
        ProblemKind::UnsupportedMediaType,
        ProblemKind::BodyTooLarge,
        ProblemKind::BodyTooSlow,
        ProblemKind::Unauthorized,
        ProblemKind::AdminOff,
        ProblemKind::StoreUnavailable,
        ProblemKind::RecordDamaged,
        ProblemKind::StoreUnfit,
    ];

    /// The URI that names the kind: registered with the IANA, or relative to the server.
    pub const fn uri(self) -> &'static str {
        match self {
            ProblemKind::InvalidRequest => "/docs#invalid-request",
            ProblemKind::UnknownPolicy => "/docs#unknown-policy",
            ProblemKind::NotFound => "/docs#not-found",
            ProblemKind::MethodNotAllowed => "/docs#method-not-allowed",
            ProblemKind::UnsupportedMediaType => "/docs#unsupported-media-type",
            ProblemKind::BodyTooLarge => "/docs#body-too-large",
            ProblemKind::BodyTooSlow => "/docs#body-too-slow",
            ProblemKind::Unauthorized => "/docs#unauthorized",
            ProblemKind::AdminOff => "/docs#admin-off",
            ProblemKind::StoreUnavailable => {
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
            }
            ProblemKind::RecordDamaged => "/docs#record-damaged",
            ProblemKind::StoreUnfit => "/docs#store-unfit",
        }
    }

    /// The same words whenever the kind is the same.
    pub const fn title(self) -> &'static str {
        match self {
            ProblemKind::InvalidRequest => "Invalid request",
            ProblemKind::UnknownPolicy => "Unknown policy",
            ProblemKind::NotFound => "Not found",
            ProblemKind::MethodNotAllowed => "Method not allowed",
            ProblemKind::UnsupportedMediaType => "Unsupported media type",
            ProblemKind::BodyTooLarge => "Body too large",
            ProblemKind::BodyTooSlow => "Body too slow",
            ProblemKind::Unauthorized => "Unauthorized",
            ProblemKind::AdminOff => "Admin routes are off",
            ProblemKind::StoreUnavailable => "Temporary Reduced Capacity",
            ProblemKind::RecordDamaged => "Record damaged",
            ProblemKind::StoreUnfit => "Store unfit",
        }
    }

    /// The status it is answered with.
    pub const fn status(self) -> StatusCode {
        match self {
            ProblemKind::InvalidRequest => StatusCode::BAD_REQUEST,
            ProblemKind::UnknownPolicy | ProblemKind::NotFound => StatusCode::NOT_FOUND,
            ProblemKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ProblemKind::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ProblemKind::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ProblemKind::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            ProblemKind::Unauthorized => StatusCode::UNAUTHORIZED,
            ProblemKind::AdminOff => StatusCode::FORBIDDEN,
            ProblemKind::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            // Trying again does not help, and clients try again after a 503.
            ProblemKind::RecordDamaged | ProblemKind::StoreUnfit => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why there is no decision, as `application/problem+json` (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem: one registered with the IANA, or a reference to the page at `/docs`.
    #[serde(rename = "type")]
    #[schema(example = "/docs#invalid-request")]
    uri: &'static str,
    /// The kind in words.
    #[schema(example = "Invalid request")]
    title: &'static str,
    /// The HTTP status.
    #[schema(example = 400, minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong with this request: the field, its value, the rule broken and the mend.
    #[schema(
        example = "cost: -1: a cost is a whole number from 0 to 1000000000000 (POST /v1/credit gives units back)"
    )]
    detail: String,
    /// The field that is wrong, if it is one field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "cost", nullable = false)]
    field: Option<String>,
}

impl Problem {
    /// A problem of this kind. `detail` says what is wrong with the request and how to mend it.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let (uri, title, status) = (kind.uri(), kind.title(), kind.status().as_u16());
        Problem { uri, title, status, detail: detail.into(), field: None }
    }

    /// A request with one field wrong; `detail` goes on after the field's name.
    pub fn of_field(field: impl Into<String>, detail: impl AsRef<str>) -> Self {
        let field = field.into();
        let problem = Problem::new(ProblemKind::InvalidRequest, format!("{field}: {}", detail.as_ref()));
        Problem { field: Some(field), ..problem }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What is wrong and how to mend it.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The field that is wrong, if it is one.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Strings and numbers only: nothing in it can fail to be written.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tidegate\""));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_in_words_and_apart() {
        let problem = Problem::of_field("cost", "-1: no (do not)");
        assert_eq!(problem.detail(), "cost: -1: no (do not)");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["type"], "/docs#invalid-request");
        assert_eq!(json["field"], "cost");
        assert_eq!(json["status"], 400);
    }

    #[test]
    fn no_field_no_member() {
        let json = serde_json::to_value(Problem::new(ProblemKind::NotFound, "x")).unwrap();
        assert!(json.get("field").is_none());
    }
}
