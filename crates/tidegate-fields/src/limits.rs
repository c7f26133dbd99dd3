//! How a client stands, as response header fields.

use std::fmt::Write as _;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate::{Decision, Limit, LimitDecision, Timestamp, Wait};

use crate::standing::Standing;

const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The greatest integer of a structured field (RFC 9651, 3.3.1).
const GREATEST: u128 = 999_999_999_999_999;

/// Which families of limit fields are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Families {
    /// None at all; `Retry-After` is written all the same.
    None,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, of the binding limit.
    XRateLimit,
    /// `RateLimit-Policy` and `RateLimit`, of every limit.
    Ietf,
    /// Both families.
    #[default]
    Both,
}

impl Families {
    fn has_x_ratelimit(self) -> bool {
        matches!(self, Families::XRateLimit | Families::Both)
    }

    fn has_ietf(self) -> bool {
        matches!(self, Families::Ietf | Families::Both)
    }
}

/// How `X-RateLimit-Reset` tells the instant at which the limit is as new. `RateLimit` always tells seconds
/// from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResetStyle {
    /// Whole seconds from now, rounded up.
    #[default]
    Delta,
    /// Whole seconds since the Unix epoch, rounded up.
    Epoch,
}

/// Which draft of the IETF's fields is written: the next is about to rename their parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Draft {
    /// draft-ietf-httpapi-ratelimit-headers-11: `r` is what is left, `t` the seconds it has to last.
    #[default]
    Draft11,
}

/// How limits are written into a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitFields {
    /// Which families.
    pub families: Families,
    /// How `X-RateLimit-Reset` counts.
    pub reset: ResetStyle,
    /// Which words the IETF's family uses.
    pub draft: Draft,
}

impl LimitFields {
    /// Writes the fields of the families chosen, and `Retry-After` on a refusal that waiting mends. Each is
    /// written once, in place of any of its name that is there.
    ///
    /// Of what was let pass uncounted nothing is known, and nothing is written.
    pub fn write(&self, headers: &mut HeaderMap, standing: &Standing<'_>) {
        if !standing.decision.is_metered() {
            return;
        }
        if self.families.has_ietf() {
            headers.insert(RATELIMIT_POLICY, quota_policies(standing));
            headers.insert(RATELIMIT, service_limits(standing, self.draft));
        }
        if self.families.has_x_ratelimit() {
            let decision = standing.decision;
            headers.insert(X_LIMIT, decision.limit().get().into());
            headers.insert(X_REMAINING, decision.remaining().into());
            match decision.reset_after() {
                Some(wait) => headers.insert(X_RESET, number(self.reset.seconds(standing.now, wait))),
                None => headers.remove(X_RESET),
            };
        }
        match retry_after(standing.decision) {
            Some(wait) => headers.insert(RETRY_AFTER, wait),
            None => None,
        };
    }

    /// Whether a response says already how its client stands: somebody nearer to the work limited it too.
    pub fn are_in(&self, headers: &HeaderMap) -> bool {
        [X_LIMIT, X_REMAINING, X_RESET, RATELIMIT_POLICY, RATELIMIT].iter().any(|it| headers.contains_key(it))
    }
}

impl ResetStyle {
    fn seconds(self, now: Timestamp, wait: Wait) -> u128 {
        match self {
            ResetStyle::Delta => wait.as_secs_ceil(),
            ResetStyle::Epoch => wait.plus(Wait::from_micros(now.as_micros().into())).as_secs_ceil(),
        }
    }
}

/// The `Retry-After` of a decision: whole seconds, rounded up, at least 1. `None` if it was admitted, or if
/// waiting does not help.
pub fn retry_after(decision: &Decision) -> Option<HeaderValue> {
    let wait = decision.retry_after().filter(|_| !decision.is_allowed())?;
    Some(number(wait.as_secs_ceil().max(1)))
}

/// The `RateLimit-Policy` of a key: each limit's name, its quota, and the seconds from nothing to all of it,
/// unless it never refills.
fn quota_policies(standing: &Standing<'_>) -> HeaderValue {
    let limits = standing.policy.plan_for(standing.key).limits();
    list(standing.policy.limit_names().zip(limits), |item, limit: &Limit| {
        parameter(item, "q", limit.capacity().get().into());
        if let Some(window) = limit.time_to_full() {
            // Zero is not a window: a capacity of none refills in no time.
            parameter(item, "w", window.as_secs_ceil().max(1));
        }
    })
}

/// The `RateLimit` of a decision: for each limit what is left and the seconds until there is more. On a refusal
/// only the limits that refuse, so that none of them tells a longer wait than `Retry-After`.
fn service_limits(standing: &Standing<'_>, draft: Draft) -> HeaderValue {
    let (left, lasts) = match draft {
        Draft::Draft11 => ("r", "t"),
    };
    let limits = standing.policy.limit_names().zip(standing.decision.limits());
    let shown = limits.filter(|(_, limit)| standing.decision.is_allowed() || !limit.admits());
    list(shown, |item, limit: &LimitDecision| {
        parameter(item, left, limit.remaining().into());
        if let Some(wait) = limit.grows_after() {
            parameter(item, lasts, wait.as_secs_ceil());
        }
    })
}

/// A list of strings with parameters (RFC 9651).
fn list<'a, T: 'a>(
    items: impl Iterator<Item = (&'a str, T)>,
    parameters: impl Fn(&mut String, T),
) -> HeaderValue {
    let mut text = String::with_capacity(64);
    for (name, item) in items {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push('"');
        for character in name.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
        parameters(&mut text, item);
    }
    HeaderValue::try_from(text).expect("names of limits are printable ASCII: `Policy` takes no other")
}

fn parameter(text: &mut String, name: &str, value: u128) {
    write!(text, ";{name}={}", value.min(GREATEST)).expect("a String takes whatever is written");
}

fn number(number: u128) -> HeaderValue {
    match u64::try_from(number) {
        Ok(number) => number.into(),
        Err(_) => HeaderValue::try_from(number.to_string()).expect("digits are legal in a field"),
    }
}
