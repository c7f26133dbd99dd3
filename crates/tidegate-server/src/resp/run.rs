//! Checks that follow one another, decided as one batch.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use tidegate::store::StoreError;
use tidegate::{Asked, Cost, Decision, Policy, Timestamp};
use tidegate_fields::decided_under;

use super::commands::tell;
use super::reply::Reply;
use crate::app::App;
use crate::metrics::PolicyCounters;
use crate::store::{AnyStore, Handle, Later};

/// Checks decided at once: enough that a store far away is asked seldom, few enough that their replies are small.
const MOST: usize = 64;
/// Bytes for keys that are kept between two batches.
const KEPT_FOR_KEYS: usize = 4 << 10;

/// Checks that are to be decided together and answered in order.
#[derive(Debug, Default)]
pub(super) struct Run {
    members: Vec<Member>,
    keys: Vec<u8>,
    policies: Vec<Known>,
}

#[derive(Debug)]
struct Member {
    /// The place of its policy.
    policy: usize,
    key: Range<usize>,
    cost: Cost,
    is_heard: bool,
}

/// A policy that commands of a batch decide under, looked up once.
#[derive(Debug)]
struct Known {
    handle: Handle,
    /// As it was before anything was decided, and afterwards.
    before: Arc<Policy>,
    after: Arc<Policy>,
    counters: PolicyCounters,
}

/// How a run ended.
pub(super) enum Decided {
    /// All are told; so many of them were decisions and not looks.
    Told(u64),
    /// The store has yet to answer.
    Later(Later<Vec<Decision>>),
}

impl Run {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.members.len() >= MOST
    }

    /// The place of the policy of this name; `None` if there is none such.
    pub(super) fn policy(&mut self, app: &App, name: &[u8]) -> Option<usize> {
        let known = self.policies.iter().rposition(|known| known.before.name().as_bytes() == name);
        known.or_else(|| {
            let name = std::str::from_utf8(name).ok()?;
            let handle = app.limiter().policy(name).ok()?;
            let (before, counters) = (handle.policy(), app.metrics().of_policy(name));
            self.policies.push(Known { handle, after: Arc::clone(&before), before, counters });
            Some(self.policies.len() - 1)
        })
    }

    /// The handle on the policy at a place that [`policy`](Self::policy) returned.
    pub(super) fn handle(&self, policy: usize) -> &Handle {
        &self.policies[policy].handle
    }

    /// Adds a check.
    pub(super) fn join(&mut self, policy: usize, key: &[u8], cost: Cost, is_heard: bool) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.members.push(Member { policy, key: start..self.keys.len(), cost, is_heard });
    }

    /// Decides all at `now` and tells it.
    pub(super) fn decide(&mut self, app: &App, now: Timestamp, reply: &mut Reply<'_>) -> Decided {
        if let [one] = &self.members[..] {
            let decided = self.handle(one.policy).check_at(&self.keys[one.key.clone()], one.cost, now);
            return match decided.now() {
                Ok(decision) => Decided::Told(self.told(&[decision], reply)),
                Err(later) => Decided::Later(Box::pin(async { Ok(vec![later.await?]) })),
            };
        }
        let ask = |member: &Member| Asked {
            policy: self.handle(member.policy),
            key: &self.keys[member.key.clone()],
            cost: member.cost,
        };
        let asked: Vec<Asked<'_, AnyStore>> = self.members.iter().map(ask).collect();
        match app.limiter().check_batch_at(&asked, now).now() {
            Ok(decisions) => Decided::Told(self.told(&decisions, reply)),
            Err(later) => Decided::Later(later),
        }
    }

    /// Tells all in order, and is empty again. Returns how many were decisions and not looks.
    pub(super) fn told(&mut self, decisions: &[Decision], reply: &mut Reply<'_>) -> u64 {
        self.policies.iter_mut().for_each(|known| known.after = known.handle.policy());
        let mut counted = 0;
        for (member, decision) in self.members.iter().zip(decisions) {
            let known = &self.policies[member.policy];
            if !member.cost.is_peek() {
                known.counters.count(decision.outcome());
                counted += 1;
            }
            if member.is_heard {
                let policy = known.version(&self.keys[member.key.clone()], decision);
                tell(reply, &policy, decision);
            }
        }
        self.clear();
        counted
    }

    /// Tells all that the store could not answer, and is empty again.
    pub(super) fn failed(&mut self, app: &App, error: &StoreError, reply: &mut Reply<'_>) {
        for member in &self.members {
            app.store_failed(error);
            if member.is_heard {
                reply.error(format_args!(
                    "UNAVAILABLE the store of the limits did not answer; the check may have been charged once"
                ));
            }
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.members.clear();
        self.keys.clear();
        self.keys.shrink_to(KEPT_FOR_KEYS);
    }

    /// Forgets which policies there were: others may be in force the next time.
    pub(super) fn forget_policies(&mut self) {
        self.policies.clear();
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.members.capacity() * size_of::<Member>()
            + self.keys.capacity()
            + self.policies.capacity() * size_of::<Known>()
    }
}

impl Known {
    /// The version of the policy that a decision made meanwhile was made under.
    fn version(&self, key: &[u8], decision: &Decision) -> Cow<'_, Arc<Policy>> {
        if Arc::ptr_eq(&self.before, &self.after) {
            return Cow::Borrowed(&self.before);
        }
        Cow::Owned(decided_under(Arc::clone(&self.before), Arc::clone(&self.after), key, decision))
    }
}
