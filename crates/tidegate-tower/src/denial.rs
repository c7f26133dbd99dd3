//! How a request is told that it is denied.

use http::request::Parts;
use http::{Response, StatusCode, header};
use tidegate::Decision;
use tidegate::store::{StoreError, StoreErrorKind};
use tidegate_fields::{Problem, status_of};

use crate::body::DenialBody;
use crate::choice::UnreadableCost;
use crate::report::Checked;

/// Why a request is denied.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Reason<'a> {
    /// The limiter refused it.
    Refused(&'a Checked),
    /// It has no key, and the choice for that is to deny with this status.
    MissingKey(StatusCode),
    /// It does not say what it costs in the header that should.
    UnreadableCost(&'a UnreadableCost),
    /// The store did not answer, and the choice for that is to deny.
    StoreUnavailable(&'a StoreError),
}

/// A request that is denied, and why.
#[derive(Debug, Clone, Copy)]
pub struct Denial<'a> {
    pub(crate) request: &'a Parts,
    pub(crate) reason: Reason<'a>,
}

impl<'a> Denial<'a> {
    /// The request, less its body.
    pub fn request(&self) -> &'a Parts {
        self.request
    }

    /// Why it is denied.
    pub fn reason(&self) -> Reason<'a> {
        self.reason
    }

    /// The limiter's decision, if it is that which denies.
    pub fn decision(&self) -> Option<&'a Decision> {
        match self.reason {
            Reason::Refused(checked) => Some(checked.decision()),
            _ => None,
        }
    }

    /// The status that says so in HTTP: 429 for a refusal, whatever the cost; 503 if the store may hold no more
    /// keys or does not answer, 500 if it never will until somebody acts; 400 for an unreadable cost; for a missing key
    /// the one chosen.
    pub fn status(&self) -> StatusCode {
        match self.reason {
            Reason::Refused(checked) => {
                status_of(checked.decision.outcome()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
            }
            Reason::MissingKey(status) => status,
            Reason::UnreadableCost(_) => StatusCode::BAD_REQUEST,
            Reason::StoreUnavailable(error) if error.kind == StoreErrorKind::Outage => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Reason::StoreUnavailable(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The same in words. What is wrong with a store is no business of a client's, and not in it.
    pub fn problem(&self) -> Problem {
        let detail = match self.reason {
            Reason::Refused(checked) => match Problem::of_refusal(&checked.policy, &checked.decision) {
                Some(problem) => return problem,
                None => "The request was refused.".to_owned(),
            },
            Reason::MissingKey(_) => "The request does not say for whom it is counted.".to_owned(),
            Reason::UnreadableCost(error) => error.to_string(),
            Reason::StoreUnavailable(error) => match error.kind {
                StoreErrorKind::Outage => "The rate limit cannot be asked; try again later.",
                StoreErrorKind::Damaged => {
                    "What is kept of the rate limit is damaged; trying again does not help, an operator has to mend it."
                }
                _ => "The rate limit cannot be asked as it is set up; trying again does not help.",
            }
            .to_owned(),
        };
        Problem::of_status(self.status(), detail)
    }
}

/// Answers requests that are denied. The limit fields and `Retry-After` are added to whatever it answers.
///
/// A closure does it too; its body may be a string, bytes, or, with the feature `axum`, one of axum's.
///
/// ```
/// use http::Response;
/// use tidegate_tower::{Denial, DenialHandler};
/// # fn takes(_: impl DenialHandler) {}
/// # takes(
/// |denial: &Denial<'_>| {
///     let mut response = Response::new("slow down\n");
///     *response.status_mut() = denial.status();
///     response
/// }
/// # );
/// ```
pub trait DenialHandler: Send + Sync + 'static {
    /// The answer.
    fn respond(&self, denial: &Denial<'_>) -> Response<DenialBody>;
}

impl<F, B> DenialHandler for F
where
    F: Fn(&Denial<'_>) -> Response<B> + Send + Sync + 'static,
    B: Into<DenialBody>,
{
    fn respond(&self, denial: &Denial<'_>) -> Response<DenialBody> {
        self(denial).map(Into::into)
    }
}

/// Answers with problem details (RFC 9457) of the types that the IETF's draft on rate limits registers:
/// `quota-exceeded` for a refusal, `temporary-reduced-capacity` for a store that may hold no more keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProblemDenial;

impl DenialHandler for ProblemDenial {
    fn respond(&self, denial: &Denial<'_>) -> Response<DenialBody> {
        let problem = denial.problem();
        let mut response = Response::new(problem.to_json().into());
        *response.status_mut() = problem.status;
        response.headers_mut().insert(header::CONTENT_TYPE, Problem::MEDIA_TYPE);
        response
    }
}
