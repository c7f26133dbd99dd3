//! A subject and the oracle side by side: everything is asked of both, and must be answered alike.

use std::collections::BTreeMap;

use super::agree::agree;
use super::subject::{Offers, Subject, SubjectAnswer};
use crate::cases::{LimitSpec, policy_for_oracle};
use crate::oracle::{Oracle, OracleDecision};

/// A subject under one policy, and an oracle for each key it was asked about.
pub struct Duel<'a> {
    subject: &'a mut dyn Subject,
    offers: Offers,
    limits: Vec<LimitSpec>,
    keys: BTreeMap<Vec<u8>, Oracle>,
    newest_us: u64,
    /// When the figures in force came into force.
    since_us: u64,
}

/// One answer, as given and as it has to be.
pub struct Answered {
    /// What the subject said.
    pub answer: SubjectAnswer,
    /// What is right, exact to the microsecond.
    pub right: OracleDecision,
}

impl<'a> Duel<'a> {
    /// Starts over with `limits` and no key known.
    ///
    /// # Errors
    /// The subject's reason, if it refuses the limits.
    pub fn start(subject: &'a mut dyn Subject, limits: &[LimitSpec]) -> Result<Self, String> {
        subject.install(limits)?;
        let offers = subject.offers();
        Ok(Duel {
            subject,
            offers,
            limits: limits.to_vec(),
            keys: BTreeMap::new(),
            newest_us: 0,
            since_us: 0,
        })
    }

    /// What the subject offers.
    pub fn offers(&self) -> Offers {
        self.offers
    }

    /// The limits in force.
    pub fn limits(&self) -> &[LimitSpec] {
        &self.limits
    }

    /// The oldest stamp the subject may be asked with now about a key.
    ///
    /// A key that was never charged keeps no stamp, so it cannot remember that figures changed after `at_us`.
    pub fn oldest_us(&mut self, key: &[u8]) -> u64 {
        let oldest = self.offers.steps_back.oldest_after(self.newest_us);
        let unseen = self.oracle(key).last_us().is_none();
        if unseen { oldest.max(self.since_us) } else { oldest }
    }

    /// The newest stamp either was asked with.
    pub fn newest_us(&self) -> u64 {
        self.newest_us
    }

    /// What is known of a key.
    pub fn oracle(&mut self, key: &[u8]) -> &mut Oracle {
        let fresh = || Oracle::new(policy_for_oracle(&self.limits));
        self.keys.entry(key.to_vec()).or_insert_with(fresh)
    }

    /// A check, or with cost 0 a peek.
    ///
    /// # Errors
    /// As every method here: how the two differ.
    pub fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> Result<Answered, String> {
        self.note(at_us);
        let right = self.oracle(key).check(at_us, cost);
        let answer = self.subject.check(at_us, key, cost);
        self.agreed(answer, right)
    }

    /// A check that takes what is there; also returns the units taken.
    pub fn check_up_to(&mut self, at_us: u64, key: &[u8], max: u64) -> Result<(u64, Answered), String> {
        self.note(at_us);
        let right = self.oracle(key).check_up_to(at_us, max);
        let (taken, answer) = self.subject.check_up_to(at_us, key, max);
        if taken != right.taken {
            return Err(format!("{taken} were taken, {} must be", right.taken));
        }
        Ok((taken, self.agreed(answer, right.decision)?))
    }

    /// A credit, and a look at what came of it.
    pub fn credit(&mut self, at_us: u64, key: &[u8], n: u64) -> Result<Answered, String> {
        self.oracle(key).credit(at_us, n);
        self.subject.credit(at_us, key, n);
        self.check(at_us, key, 0)
    }

    /// A penalty, and a look at what came of it; also returns what each limit cut.
    pub fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Result<(Vec<u64>, Answered), String> {
        let right = self.oracle(key).penalize(at_us, n);
        let cut = self.subject.penalize(at_us, key, n);
        if cut != right {
            return Err(format!("{cut:?} was cut, {right:?} must be"));
        }
        Ok((cut, self.check(at_us, key, 0)?))
    }

    /// Forgets the key, and looks.
    pub fn reset(&mut self, at_us: u64, key: &[u8]) -> Result<Answered, String> {
        self.oracle(key).reset();
        self.subject.reset(at_us, key);
        self.check(at_us, key, 0)
    }

    /// Puts other limits in force for every key. Nothing is touched: what a key becomes shows at its next check.
    pub fn reload(&mut self, limits: &[LimitSpec], since_us: u64) {
        self.note(since_us);
        self.since_us = since_us;
        self.limits = limits.to_vec();
        let policy = policy_for_oracle(limits);
        self.keys.values_mut().for_each(|key| key.reload(policy.clone(), since_us));
        self.subject.reload(limits, since_us);
    }

    /// The keys seen so far.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.keys.keys().cloned().collect()
    }

    fn note(&mut self, at_us: u64) {
        self.newest_us = self.newest_us.max(at_us);
    }

    fn agreed(&self, answer: SubjectAnswer, right: OracleDecision) -> Result<Answered, String> {
        agree(&answer, &right, &self.limits, self.offers)?;
        Ok(Answered { answer, right })
    }
}
