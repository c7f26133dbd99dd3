//! One descriptor on its way to its status.

use std::sync::Arc;

use tidegate::{AdHocLimit, Decision, Policy, Units};
use tidegate_fields::decided_under;

use super::answer::Status;
use super::tree::{Charge, Effect, Rule};
use crate::store::Handle;

/// A descriptor, what it met, and what came of it.
pub(super) struct Part<'r> {
    pub rule: Option<&'r Rule>,
    pub under: Under<'r>,
    pub key: Vec<u8>,
    /// 0 looks and charges nothing.
    pub units: Units,
    /// More was asked than any limit can hold; `units` is the most there is.
    pub exceeds: bool,
    /// The units are given back.
    pub gives_back: bool,
    pub decided: Option<Decided>,
}

/// What a descriptor is counted under.
pub(super) enum Under<'r> {
    /// No limit.
    Nothing(Status),
    /// A policy, and the version of it in force when the request came.
    Policy(&'r Handle, Arc<Policy>),
    /// The figures that came with it.
    Brought(AdHocLimit),
}

/// What came of a descriptor.
pub(super) struct Decided {
    pub decision: Decision,
    /// Whether what was asked was there; of a forced charge not the same as how the key then stands.
    pub fits: bool,
}

impl Decided {
    pub fn plainly(decision: Decision) -> Self {
        Decided { fits: decision.is_allowed(), decision }
    }
}

impl Part<'_> {
    /// Whether it is charged whatever becomes of it and of the others.
    pub fn is_forced(&self) -> bool {
        let always = matches!(
            self.rule.map(|rule| &rule.effect),
            Some(Effect::Limited { charge: Charge::Always, .. })
        );
        always && self.units != Units::ZERO
    }

    /// Whether what comes of it depends on no other.
    pub fn is_settled_alone(&self) -> bool {
        match self.under {
            Under::Nothing(_) => false,
            Under::Policy(..) => self.gives_back || self.exceeds || self.is_forced(),
            // More than any limit can hold fits none that Envoy can write.
            Under::Brought(_) => self.gives_back,
        }
    }

    /// Whether it is under a limit and nothing has come of it yet.
    pub fn waits(&self) -> bool {
        self.decided.is_none() && !matches!(self.under, Under::Nothing(_))
    }

    pub fn is_shadow(&self) -> bool {
        self.rule.is_some_and(|rule| rule.shadow)
    }

    pub fn is_quota(&self) -> bool {
        self.rule.is_some_and(|rule| rule.quota)
    }

    /// Whether its own refusal does not refuse the request.
    pub fn is_aside(&self) -> bool {
        self.is_shadow() || self.is_quota()
    }

    /// Whether it is refused, as far as the client is to know.
    pub fn is_over(&self) -> bool {
        !self.is_shadow() && self.decided.as_ref().is_some_and(|decided| !decided.fits)
    }

    /// What is answered; `version` is the policy that decided.
    pub fn status(&self, version: Option<&Policy>) -> Status {
        let (decided, version) = match (&self.decided, version, &self.under) {
            (Some(decided), Some(version), _) => (decided, version),
            (_, _, Under::Nothing(status)) => return status.clone(),
            _ => return Status::UNMET,
        };
        if !decided.decision.is_metered() {
            return Status::UNMET;
        }
        let status = Status::of(version, &self.key, &decided.decision, self.is_over());
        // So the reference has it: a shadow that would refuse has nothing left.
        let spent = self.is_shadow() && !decided.fits;
        Status { remaining: if spent { 0 } else { status.remaining }, ..status }
    }

    /// The policy in the version that decided.
    pub fn version(&self) -> Option<Arc<Policy>> {
        match (&self.under, &self.decided) {
            (Under::Policy(handle, before), Some(Decided { decision, .. })) => {
                Some(decided_under(Arc::clone(before), handle.policy(), &self.key, decision))
            }
            (Under::Brought(limit), _) => Policy::single("override", *limit.limit()).ok().map(Arc::new),
            _ => None,
        }
    }
}

/// Whether one refuses whose word counts alone, or all those do whose word counts together.
pub(super) fn is_over(parts: &[Part<'_>]) -> bool {
    let mut quotas = parts.iter().filter(|part| part.is_quota() && part.decided.is_some()).peekable();
    let exhausted = quotas.peek().is_some() && quotas.all(Part::is_over);
    exhausted || parts.iter().any(|part| !part.is_quota() && part.is_over())
}
