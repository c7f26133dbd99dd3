//! What a refusal says in its body: problem details (RFC 9457) of the types that the IETF's draft registers.

use std::fmt::Write as _;

use http::{HeaderValue, StatusCode};
use tidegate::{Decision, Outcome, Policy};

/// The body of an answer that is not what was asked for.
///
/// ```
/// use tidegate::{Limit, Limiter, Policy, Rate};
/// use tidegate_fields::Problem;
///
/// let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(1, Rate::per_second(1)))?);
/// let api = limiter.policy("api")?;
/// assert!(Problem::of_refusal(&api.policy(), &api.check("user:42", 1)).is_none());
/// let problem = Problem::of_refusal(&api.policy(), &api.check("user:42", 1)).expect("refused");
/// assert_eq!(problem.status, 429);
/// assert_eq!(problem.violated_policies, ["api"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its `type`, a URI.
    pub kind: &'static str,
    /// What all problems of this type have in common.
    pub title: &'static str,
    /// The response's status.
    pub status: StatusCode,
    /// What happened this time, and what to do.
    pub detail: String,
    /// The names of the limits that refused; left out if there are none.
    pub violated_policies: Vec<String>,
}

/// The status of a refusal: 429, or 503 for a store that may hold no more keys. `None` if it was admitted.
///
/// A cost above what the limit can ever hold is 429 too, without a `Retry-After`: the quota is what it
/// exceeds, and waiting does not help.
pub fn status_of(outcome: Outcome) -> Option<StatusCode> {
    match outcome {
        Outcome::Allowed => None,
        Outcome::Overloaded => Some(StatusCode::SERVICE_UNAVAILABLE),
        _ => Some(StatusCode::TOO_MANY_REQUESTS),
    }
}

impl Problem {
    /// The media type of [`to_json`](Self::to_json).
    pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

    const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    const REDUCED_CAPACITY: &str =
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

    /// The problem of a refusal; `None` if it was admitted.
    pub fn of_refusal(policy: &Policy, decision: &Decision) -> Option<Self> {
        let status = status_of(decision.outcome())?;
        let (kind, title) = match status {
            StatusCode::SERVICE_UNAVAILABLE => (Self::REDUCED_CAPACITY, "Temporary Reduced Capacity"),
            _ => (Self::QUOTA_EXCEEDED, "Quota Exceeded"),
        };
        let limits = policy.limit_names().zip(decision.limits());
        let refusing = limits.filter(|(_, limit)| !limit.admits());
        let violated_policies = refusing.map(|(name, _)| name.to_owned()).collect();
        let detail = detail(policy.limit_name(decision.bound_by()), decision);
        Some(Problem { kind, title, status, detail, violated_policies })
    }

    /// A problem of no type of its own, that says no more than its status (RFC 9457, 4.2.1).
    pub fn of_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            detail: detail.into(),
            violated_policies: Vec::new(),
        }
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let mut json = String::with_capacity(256);
        json.push_str("{\"type\":");
        string(&mut json, self.kind);
        json.push_str(",\"title\":");
        string(&mut json, self.title);
        write!(json, ",\"status\":{}", self.status.as_u16()).expect("a String takes whatever is written");
        json.push_str(",\"detail\":");
        string(&mut json, &self.detail);
        if !self.violated_policies.is_empty() {
            json.push_str(",\"violated-policies\":[");
            for (index, name) in self.violated_policies.iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                string(&mut json, name);
            }
            json.push(']');
        }
        json.push('}');
        json
    }
}

fn detail(name: &str, decision: &Decision) -> String {
    let limit = decision.limit();
    match (decision.outcome(), decision.retry_after()) {
        (Outcome::Overloaded, _) => {
            "The server keeps as many clients' limits as it may; try again later.".into()
        }
        (Outcome::CostExceedsCapacity, _) => {
            format!(
                "The request costs more than limit {name:?} can ever hold, {limit}; waiting does not help."
            )
        }
        (_, Some(wait)) => {
            let seconds = wait.as_secs_ceil().max(1);
            format!("Limit {name:?} of {limit} is used up; try again in {seconds} s.")
        }
        (_, None) => format!("Limit {name:?} of {limit} is used up and does not refill."),
    }
}

/// Writes a JSON string (RFC 8259).
fn string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\0'..='\x1f' => {
                write!(json, "\\u{:04x}", u32::from(character)).expect("a String takes whatever is written");
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}
