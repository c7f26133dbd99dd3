//! A check on its way to the server, and why it may have no answer.

use std::sync::Arc;
use std::time::Duration;

use tidegate::store::{Ask, StoreErrorKind};
use tidegate::{Decision, Timestamp};

use crate::decide::{self, state_of};
use crate::engine::MOST_TRIES;
use crate::fallback::Charged;
use crate::link::Failure;
use crate::prepared::Prepared;
use crate::record::{Damaged, KeptLog};
use crate::script::{self, Item, Unheard};

/// A check on its way.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) plan: Arc<Prepared>,
    /// The record's name.
    pub(crate) record: Vec<u8>,
    pub(crate) ask: Ask,
    /// The instant it is asked at.
    pub(crate) now: Timestamp,
    /// How long an answer is waited for.
    pub(crate) within: Duration,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Link(#[from] Failure),
    #[error(transparent)]
    Unheard(#[from] Unheard),
    #[error(
        "the record {record} is damaged or not tidegate's: {damage} (delete it, or set on_damaged: start_anew)"
    )]
    Damaged { record: String, damage: Damaged },
    #[error("the record {record} was changed by others {MOST_TRIES} times while it was being changed")]
    Contended { record: String },
    #[error(
        "the script and the arithmetic disagree about the record {record}: it was changed by hand, or this is a \
         fault of tidegate's"
    )]
    Disagreement { record: String },
    #[error(
        "the checks of a group are of keys in several slots of the cluster, which no script can charge as one: give the \
         store a partition"
    )]
    Apart,
    #[error("policy {policy:?}: layout classic keeps one token_bucket that refills, and nothing else")]
    NotClassic { policy: String },
    #[error("policy {policy:?} has layout classic, which cannot be charged with others as one")]
    ClassicInGroup { policy: String },
    #[error("two checks of a group ask the record {record} for as much as there is (ask for an exact cost)")]
    UpToTwice { record: String },
}

impl Trouble {
    /// What kind of trouble it is to callers.
    pub(crate) fn kind(&self) -> StoreErrorKind {
        match self {
            Trouble::Damaged { .. } | Trouble::Disagreement { .. } | Trouble::Link(Failure::Foreign(_)) => {
                StoreErrorKind::Damaged
            }
            Trouble::Apart
            | Trouble::NotClassic { .. }
            | Trouble::ClassicInGroup { .. }
            | Trouble::UpToTwice { .. } => StoreErrorKind::Unfit,
            Trouble::Link(_) | Trouble::Unheard(_) | Trouble::Contended { .. } => StoreErrorKind::Outage,
        }
    }

    /// Whether the store gave no answer, and whether it may have charged all the same; `None` if it is not the
    /// store that is out.
    pub(crate) fn outage(&self) -> Option<Charged> {
        match self {
            Trouble::Link(
                Failure::NotRun(_) | Failure::NoRoom(_) | Failure::NotAllowed { begun: false, .. },
            )
            | Trouble::Contended { .. } => Some(Charged::No),
            // How far it came is not known.
            _ if self.kind() == StoreErrorKind::Outage => Some(Charged::Perhaps),
            _ => None,
        }
    }

    /// Whether the server has no memory left, and would do it if it had.
    pub(crate) fn is_of_no_room(&self) -> bool {
        matches!(self, Trouble::Link(Failure::NoRoom(_)))
    }

    /// Whether it may be the user that may not do it, where the server did not say so.
    pub(crate) fn may_be_of_rights(&self) -> bool {
        matches!(self, Trouble::Link(Failure::Refused(_)))
    }

    /// Whether a record is none: what others asked in the same call is right.
    pub(crate) fn is_of_one_record(&self) -> bool {
        matches!(self, Trouble::Link(Failure::Foreign(_)))
    }
}

impl Question {
    pub(crate) fn item(&self) -> Item {
        let ask = match self.ask {
            Ask::Exactly(cost) => script::Ask::Exactly(cost.get()),
            Ask::UpTo(most) => script::Ask::UpTo(most.get()),
        };
        Item {
            plan: Arc::clone(&self.plan),
            record: self.record.clone(),
            ask,
            now: self.now,
            whole_logs: false,
        }
    }

    pub(crate) fn charges(&self) -> bool {
        let (Ask::Exactly(cost) | Ask::UpTo(cost)) = self.ask;
        !cost.is_peek()
    }

    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.record).into_owned()
    }

    pub(crate) fn damaged(&self, damage: Damaged) -> Trouble {
        Trouble::Damaged { record: self.name(), damage }
    }

    /// The decision, given what the script said of the check.
    pub(crate) fn decision(
        &self,
        admitted: bool,
        kept: &[u8],
        logs: Vec<KeptLog>,
    ) -> Result<Decision, Trouble> {
        let mut state = state_of(&self.plan, kept, logs).map_err(|damage| self.damaged(damage))?;
        let decision = decide::decide(&self.plan.plan, &mut state, self.now, self.ask);
        if decision.is_allowed() != admitted {
            return Err(Trouble::Disagreement { record: self.name() });
        }
        Ok(decision)
    }
}
