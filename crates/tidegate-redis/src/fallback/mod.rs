//! What is answered while the store is not.

mod local;
mod outage;
mod share;

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tidegate::store::{Adjustment, Grouping, Snapshot};
use tidegate::{Decision, KeyState, Penalty, Timestamp};

use crate::question::{Question, Trouble};
use local::Local;
use outage::Outage;
pub use share::{Replica, ReplicaError};

/// What a policy answers while the store does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStoreError {
    /// Everything passes, uncounted.
    Allow,
    /// Nothing is decided: the check fails. Servers answer that they are unavailable, not that a limit was reached.
    Deny,
    /// This instance enforces its own share of each limit, in its memory; see [`Replica`].
    #[default]
    Local,
}

impl OnStoreError {
    /// The word of the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnStoreError::Allow => "allow",
            OnStoreError::Deny => "deny",
            OnStoreError::Local => "local",
        }
    }
}

/// Whether a call that failed may have charged what it was to charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charged {
    /// It was proven not to have run.
    No,
    /// It may have run; so it counts as charged.
    Perhaps,
}

/// The failure policies, and what is known without the store.
#[derive(Debug)]
pub(crate) struct Fallback {
    answers: RwLock<Answers>,
    local: Local,
    outage: Outage,
}

#[derive(Debug)]
struct Answers {
    otherwise: OnStoreError,
    of: HashMap<String, OnStoreError>,
}

impl Fallback {
    pub(crate) fn new(otherwise: OnStoreError, of: HashMap<String, OnStoreError>, replica: Replica) -> Self {
        let answers = RwLock::new(Answers { otherwise, of });
        Fallback { answers, local: Local::of(replica), outage: Outage::default() }
    }

    pub(crate) fn set(&self, otherwise: OnStoreError, of: HashMap<String, OnStoreError>) {
        *self.answers.write().unwrap_or_else(PoisonError::into_inner) = Answers { otherwise, of };
    }

    /// The store's answer; while it gives none, what is decided without it, which is `None` where that is not wanted.
    pub(crate) fn instead<T>(
        &self,
        answer: Result<T, Trouble>,
        now: Timestamp,
        decide: impl FnOnce(Charged) -> Option<T>,
    ) -> Result<T, Trouble> {
        match answer {
            Ok(answer) => {
                if self.outage.answered(now) {
                    tracing::info!("the store answers again");
                }
                Ok(answer)
            }
            Err(trouble) => {
                let Some(charged) = trouble.outage() else { return Err(trouble) };
                if self.outage.failed(now) {
                    tracing::warn!(
                        "the store gives no answer, policies do what their on_store_error says: {trouble} (told once a \
                         second at most)"
                    );
                }
                decide(charged).ok_or(trouble)
            }
        }
    }

    fn policy(&self, question: &Question) -> OnStoreError {
        let answers = self.answers.read().unwrap_or_else(PoisonError::into_inner);
        let own = question.plan.policy_name().and_then(|name| answers.of.get(name).copied());
        own.unwrap_or(answers.otherwise)
    }

    /// Takes note of how a key stands while the store answers.
    pub(crate) fn remember(&self, questions: &[Question], decisions: &[Decision], now: Timestamp) {
        for (question, decision) in questions.iter().zip(decisions) {
            if self.policy(question) == OnStoreError::Local {
                self.local.remember(question, decision, now);
            }
        }
    }

    /// Takes note that the key of a record is as new.
    pub(crate) fn forget(&self, record: &[u8]) {
        self.local.forget(record);
    }

    /// Decides a check without the store; `None` if its policy will not have that.
    pub(crate) fn decide(&self, now: Timestamp, question: &Question, charged: Charged) -> Option<Decision> {
        match self.policy(question) {
            OnStoreError::Deny => None,
            OnStoreError::Allow => Some(unmetered(question)),
            OnStoreError::Local => Some(self.local.decide(now, question, charged)),
        }
    }

    /// Changes a key's state without the store, and says how it then stands; `None` if its policy will not have that.
    pub(crate) fn adjust(
        &self,
        now: Timestamp,
        question: &Question,
        adjustment: Adjustment,
        charged: Charged,
    ) -> Option<Penalty> {
        match self.policy(question) {
            OnStoreError::Deny => None,
            OnStoreError::Allow => Some(Penalty::nothing(unmetered(question))),
            OnStoreError::Local => Some(self.local.adjust(now, question, adjustment, charged)),
        }
    }

    /// How a key stands without the store; `None` if its policy will not have that.
    pub(crate) fn snapshot(&self, question: &Question) -> Option<Snapshot> {
        match self.policy(question) {
            OnStoreError::Deny => None,
            OnStoreError::Allow => {
                let plan = question.plan.plan.clone();
                Some(Snapshot { state: KeyState::new(&plan), plan })
            }
            OnStoreError::Local => Some(self.local.snapshot(question)),
        }
    }

    /// Decides checks as one without the store; `None` if one of their policies will not have that. Those that let
    /// everything pass take no part.
    pub(crate) fn group(
        &self,
        now: Timestamp,
        questions: &[Question],
        grouping: Grouping,
        charged: Charged,
    ) -> Option<Vec<Decision>> {
        let mut decisions: Vec<Decision> = questions.iter().map(unmetered).collect();
        let mut locals = Vec::new();
        for (place, question) in questions.iter().enumerate() {
            match self.policy(question) {
                OnStoreError::Deny => return None,
                OnStoreError::Allow => {}
                OnStoreError::Local => locals.push((place, question)),
            }
        }
        for (place, decision) in self.local.group(now, &locals, grouping, charged) {
            decisions[place] = decision;
        }
        Some(decisions)
    }
}

fn unmetered(question: &Question) -> Decision {
    Decision::unmetered(question.plan.plan.limits()[0].capacity())
}
