//! Checks that follow one another, decided as one batch.

use std::ops::Range;
use std::sync::Arc;

use tidegate::store::{StoreError, StoreErrorKind};
use tidegate::{Asked, Cost, Decision, Timestamp};

use super::commands::tell;
use super::directory::{Directory, Known};
use super::door::Door;
use super::reply::Reply;
use crate::app::App;
use crate::store::{AnyStore, LaterEach};
use crate::unanswered::told;

/// Checks decided at once: enough that a store far away is asked seldom, few enough that their replies are small.
const MOST: usize = 64;
/// Bytes for keys that are kept between two batches.
const KEPT_FOR_KEYS: usize = 4 << 10;

/// Checks that are to be decided together and answered in order.
#[derive(Debug, Default)]
pub(super) struct Run {
    members: Vec<Member>,
    keys: Vec<u8>,
    /// The policies in force, from the first check on.
    directory: Option<Arc<Directory>>,
}

#[derive(Debug)]
struct Member {
    /// The place of its policy.
    policy: usize,
    key: Range<usize>,
    cost: Cost,
    is_heard: bool,
}

/// How a run ended.
pub(super) enum Decided {
    /// All are told; so many of them were decisions and not looks.
    Told(u64),
    /// The store has yet to answer.
    Later(LaterEach),
}

impl Run {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.members.len() >= MOST
    }

    /// The place of the policy of this name; `None` if there is none such.
    pub(super) fn policy(&mut self, door: &Door, name: &[u8]) -> Option<usize> {
        self.directory.get_or_insert_with(|| door.directory()).find(name)
    }

    /// The policy at a place that [`policy`](Self::policy) returned.
    pub(super) fn known(&self, policy: usize) -> &Known {
        // Whoever has a place has had it from there.
        self.directory.as_ref().expect("a policy was found in it").at(policy)
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
            let decided = self.known(one.policy).handle.check_at(&self.keys[one.key.clone()], one.cost, now);
            return match decided.now() {
                Ok(decision) => Decided::Told(self.told(app, std::iter::once(Ok(&decision)), reply)),
                Err(later) => Decided::Later(Box::pin(async { vec![later.await] })),
            };
        }
        let ask = |member: &Member| Asked {
            policy: &self.known(member.policy).handle,
            key: &self.keys[member.key.clone()],
            cost: member.cost,
        };
        let asked: Vec<Asked<'_, AnyStore>> = self.members.iter().map(ask).collect();
        match app.limiter().check_batch_at(&asked, now).now() {
            Ok(decisions) => Decided::Told(self.told(app, decisions.iter().map(Ok), reply)),
            Err(later) => Decided::Later(later),
        }
    }

    /// Tells all in order, and is empty again. Returns how many were decisions and not looks.
    pub(super) fn told<'d>(
        &mut self,
        app: &App,
        answers: impl Iterator<Item = Result<&'d Decision, &'d StoreError>>,
        reply: &mut Reply<'_>,
    ) -> u64 {
        let mut counted = 0;
        for (member, answer) in self.members.iter().zip(answers) {
            let decision = match answer {
                Ok(decision) => decision,
                Err(error) => {
                    app.store_failed(error);
                    if member.is_heard {
                        unanswered(reply, error.kind);
                    }
                    continue;
                }
            };
            let known = self.known(member.policy);
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

    fn clear(&mut self) {
        self.members.clear();
        self.keys.clear();
        self.keys.shrink_to(KEPT_FOR_KEYS);
    }

    /// Forgets which policies there were: others may be in force the next time, and a quiet client is not to keep these.
    pub(super) fn forget_policies(&mut self) {
        self.directory = None;
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.members.capacity() * size_of::<Member>() + self.keys.capacity()
    }
}

/// There is no decision, and nobody is to take that for a refusal.
fn unanswered(reply: &mut Reply<'_>, kind: StoreErrorKind) {
    let code = match kind {
        StoreErrorKind::Damaged => "DAMAGED",
        StoreErrorKind::Unfit => "UNFIT",
        _ => "UNAVAILABLE",
    };
    reply.error(format_args!("{code} {}", told(kind)));
}
