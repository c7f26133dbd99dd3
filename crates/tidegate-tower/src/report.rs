//! What the layer decided about a request, told to whoever asked for it.

use std::sync::Arc;

use tidegate::{Decision, Policy, Timestamp};
use tidegate_fields::Standing;

use crate::denial::Reason;

/// A decision, and what it was about.
#[derive(Debug, Clone)]
pub struct Checked {
    pub(crate) policy: Arc<Policy>,
    pub(crate) key: Vec<u8>,
    pub(crate) decision: Decision,
    pub(crate) at: Timestamp,
}

impl Checked {
    /// The policy that decided, in the version it decided under.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The key that was asked about.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The decision.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// When it was made, by the limiter's clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    pub(crate) fn standing(&self) -> Standing<'_> {
        Standing { policy: &self.policy, key: &self.key, decision: &self.decision, now: self.at }
    }
}

/// What became of a request, for metrics and logs; see
/// [`RateLimitLayer::on_report`](crate::RateLimitLayer::on_report). Skipped requests are not reported.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Report<'a> {
    /// The limiter admitted it.
    Admitted(&'a Checked),
    /// It was denied.
    Denied(Reason<'a>),
    /// There was a reason to deny it, and it was passed on all the same: it was only shadowed, or the choice for
    /// a missing key or a failing store is to pass on.
    Passed(Reason<'a>),
}
