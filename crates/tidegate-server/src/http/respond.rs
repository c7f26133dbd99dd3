//! From a subject to the policy it is under, and from a decision to a response.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};
use tidegate::Timestamp;
use tidegate::store::{StoreError, StoreErrorKind};
use tidegate_fields::{Draft, Families, LimitFields, ResetStyle, Standing};

use super::answer::Answer;
use super::decode::{Subject, shown};
use super::problem::{Problem, ProblemKind};
use super::view::View;
use crate::app::{App, NoPolicy};
use crate::config::{self, HeaderFamily, HeaderSettings};
use crate::store::Handle;
use crate::unanswered::told;

/// The policy a request is under.
pub(super) fn policy(app: &App, subject: &Subject<'_>) -> Result<Handle, Problem> {
    of_this_name(app, subject.policy.as_deref())
}

/// The policy of this name.
pub(crate) fn policy_named(app: &App, name: &str) -> Result<Handle, Problem> {
    of_this_name(app, Some(name))
}

fn of_this_name(app: &App, asked: Option<&str>) -> Result<Handle, Problem> {
    app.policy(asked).map_err(|none| {
        let known = app.known_policies();
        match none {
            NoPolicy::Unknown => Problem::new(
                ProblemKind::UnknownPolicy,
                format!(
                    "policy: {:?}: no policy has this name (there are {known})",
                    shown(asked.unwrap_or(""))
                ),
            ),
            NoPolicy::Unnamed => {
                Problem::of_field("policy", format!("missing, and there are several (name one of {known})"))
            }
        }
    })
}

/// There is no decision, and nobody is to take that for a refusal. What exactly is wrong with the store is for the log,
/// not for clients.
pub(crate) fn unavailable(app: &App, error: &StoreError) -> Problem {
    app.store_failed(error);
    let kind = match error.kind {
        StoreErrorKind::Damaged => ProblemKind::RecordDamaged,
        StoreErrorKind::Unfit => ProblemKind::StoreUnfit,
        _ => ProblemKind::StoreUnavailable,
    };
    Problem::new(kind, told(error.kind))
}

/// A decision as a response: the same facts in its body and in its header fields.
pub(super) fn decided(app: &App, view: &View<'_>, at: Timestamp) -> Response {
    let mut response = plain(view);
    let standing = Standing { policy: view.policy(), key: view.key(), decision: view.decision(), now: at };
    limit_fields(app.headers()).write(response.headers_mut(), &standing);
    response
}

/// A decision as a body alone.
pub(super) fn plain(view: &View<'_>) -> Response {
    // Strings and integers only: nothing in it can fail to be written.
    json(serde_json::to_vec(&Answer::from(view)).unwrap_or_default())
}

/// A response of JSON that is true only now.
pub(super) fn json(body: Vec<u8>) -> Response {
    /// Those of the limits among them, and what the connection adds.
    const FIELDS: usize = 12;
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.reserve(FIELDS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The fields that tell how a client stands, as the configuration has them.
pub(crate) fn limit_fields(settings: HeaderSettings) -> LimitFields {
    LimitFields {
        families: match settings.family {
            HeaderFamily::Both => Families::Both,
            HeaderFamily::XRateLimit => Families::XRateLimit,
            HeaderFamily::Ietf => Families::Ietf,
            HeaderFamily::None => Families::None,
        },
        reset: match settings.reset {
            config::ResetStyle::Delta => ResetStyle::Delta,
            config::ResetStyle::Epoch => ResetStyle::Epoch,
        },
        draft: Draft::Draft11,
    }
}
