//! What the limiter is asked about a request.

use std::pin::Pin;
use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use tidegate::clock::Clock;
use tidegate::store::{Store, StoreError};
use tidegate::{Cost, PolicyHandle};
use tidegate_fields::decided_under;

use crate::choice::{CostChoice, MissingKey, PolicyChoice, UnreadableCost};
use crate::key::KeyExtractor;
use crate::report::Checked;

/// What becomes of a request when the store does not answer. A store in memory always answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStoreError {
    /// It is denied, 503 Service Unavailable: what the limit protects stays protected.
    #[default]
    Deny,
    /// It is passed on unlimited: what the limit protects stays reachable.
    Allow,
}

/// Whether something holds of a request.
pub(crate) type Predicate = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// How requests become questions to the limiter.
pub(crate) struct Asking<S: Store> {
    pub(crate) policy: PolicyChoice<S>,
    pub(crate) key: Arc<dyn KeyExtractor>,
    pub(crate) missing: MissingKey,
    pub(crate) cost: CostChoice,
    pub(crate) skip: Vec<Predicate>,
    pub(crate) shadow: Vec<Predicate>,
}

/// What to do with a request.
pub(crate) enum Question {
    /// Pass it on: it is not for the limiter.
    Skipped,
    /// Deny it with this status, unless it passes: it has no key.
    Keyless { status: StatusCode, passes: bool },
    /// It does not say what it costs.
    Costless { error: UnreadableCost, shadow: bool },
    /// The limiter has been asked.
    Asked { answer: Answer, clock: Arc<dyn Clock>, shadow: bool },
}

/// The limiter's answer, still to come from some stores.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Checked, StoreError>> + Send>>;

impl<S: Store> Asking<S> {
    pub(crate) fn question(&self, request: &mut Parts) -> Question {
        if self.skip.iter().any(|skips| skips(request)) {
            return Question::Skipped;
        }
        let shadow = self.shadow.iter().any(|shadows| shadows(request));
        let key = match (self.key.key(request), &self.missing) {
            (Some(key), _) => key,
            (None, MissingKey::Shared(key)) => key.clone(),
            (None, MissingKey::Skip) => {
                return Question::Keyless { status: StatusCode::FORBIDDEN, passes: true };
            }
            (None, MissingKey::Deny) => {
                return Question::Keyless { status: StatusCode::FORBIDDEN, passes: shadow };
            }
            (None, MissingKey::DenyWith(status)) => {
                return Question::Keyless { status: *status, passes: shadow };
            }
        };
        match self.cost.of(request) {
            Err(error) => Question::Costless { error, shadow },
            Ok(cost) => {
                let policy = self.policy.of(request);
                let clock = Arc::clone(policy.clock());
                Question::Asked { answer: ask(policy, key, cost), clock, shadow }
            }
        }
    }
}

fn ask<S: Store>(handle: PolicyHandle<S>, key: Vec<u8>, cost: Cost) -> Answer {
    let at = handle.clock().now();
    let before = handle.policy();
    let answer = handle.check_at(&key, cost, at);
    Box::pin(async move {
        let decision = S::settled(answer).await?;
        let policy = decided_under(before, handle.policy(), &key, &decision);
        Ok(Checked { policy, key, decision, at })
    })
}

impl<S: Store> Clone for Asking<S> {
    fn clone(&self) -> Self {
        Asking {
            policy: self.policy.clone(),
            key: Arc::clone(&self.key),
            missing: self.missing.clone(),
            cost: self.cost.clone(),
            skip: self.skip.clone(),
            shadow: self.shadow.clone(),
        }
    }
}
