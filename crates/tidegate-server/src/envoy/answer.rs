//! What is answered, on whichever wire.

use http::{HeaderMap, header};
use tidegate::{Decision, Limit, Policy, Timestamp, Wait};
use tidegate_fields::{Problem, Standing};

use super::request::Unit;
use crate::app::App;
use crate::http::limit_fields;

/// The answer to one question.
#[derive(Debug)]
pub(crate) struct Answer {
    pub over: bool,
    /// In the order of the descriptors.
    pub statuses: Vec<Status>,
    /// For the client.
    pub headers: HeaderMap,
    /// For the client, if it is refused.
    pub body: String,
    /// Whether some of it was decided without the store that all instances share.
    pub degraded: bool,
}

/// How one descriptor stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub over: bool,
    pub limit: Option<CurrentLimit>,
    pub remaining: u32,
    /// `None` if never, or if nothing is counted.
    pub reset: Option<Wait>,
}

/// The limit that a descriptor met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentLimit {
    pub name: String,
    pub requests: u32,
    /// `None` if its span is none of these.
    pub unit: Option<Unit>,
}

impl Status {
    /// No limit was met.
    pub const UNMET: Status = Status { over: false, limit: None, remaining: 0, reset: None };
    /// There is no limit, by a rule.
    pub const UNLIMITED: Status = Status { remaining: u32::MAX, ..Status::UNMET };

    /// Of a decision; `over` as it counts for the request.
    pub fn of(policy: &Policy, key: &[u8], decision: &Decision, over: bool) -> Self {
        if !decision.is_metered() {
            return Status::UNMET;
        }
        let index = decision.bound_by();
        let limit = &policy.plan_for(key).limits()[index];
        Status {
            over,
            limit: Some(CurrentLimit::of(policy.limit_name(index), limit)),
            remaining: clamped(decision.remaining()),
            reset: decision.reset_after(),
        }
    }
}

impl CurrentLimit {
    fn of(name: &str, limit: &Limit) -> Self {
        CurrentLimit {
            name: name.to_owned(),
            requests: clamped(limit.capacity().get()),
            // A bucket's is the time in which all of it comes back: that much per that unit is what it admits.
            unit: limit.time_to_full().and_then(|span| Unit::lasting(span.as_micros())),
        }
    }
}

/// What a client is told: of the descriptor that binds, and why it is refused if it is.
pub(super) fn told(app: &App, policy: &Policy, key: &[u8], decision: &Decision, at: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::new();
    limit_fields(app.headers()).write(&mut headers, &Standing { policy, key, decision, now: at });
    headers
}

/// The body of a refusal, and its type among the headers.
pub(super) fn refusal(policy: &Policy, decision: &Decision, headers: &mut HeaderMap) -> String {
    let Some(problem) = Problem::of_refusal(policy, decision) else { return String::new() };
    headers.insert(header::CONTENT_TYPE, Problem::MEDIA_TYPE);
    problem.to_json()
}

fn clamped(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}
