//! Checks that follow one another, decided as one batch.

use std::ops::Range;
use std::sync::Arc;

use tidegate::store::{AdHoc, StoreError, StoreErrorKind};
use tidegate::{AdHocCheck, AdHocLimit, Asked, Cost, Decision, Timestamp};

use super::commands::{tell, tell_throttle};
use super::directory::{Directory, Known};
use super::door::{Door, THROTTLE};
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
    under: Under,
    key: Range<usize>,
    cost: Cost,
    is_heard: bool,
}

/// What a check is under.
#[derive(Debug)]
enum Under {
    /// The policy at this place.
    Policy(usize),
    /// Figures that came with it.
    Throttle(AdHocLimit),
}

/// The checks that a run is of: a question to a store is of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `TG.CHECK` and `TG.PEEK`.
    Policies,
    /// `CL.THROTTLE`, where its keys are in a store elsewhere.
    Throttle,
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

    /// Whether there is room for one more check of this kind.
    #[inline]
    pub(super) fn takes(&self, kind: Kind) -> bool {
        self.members.len() < MOST && self.kind().is_none_or(|own| own == kind)
    }

    #[inline]
    fn kind(&self) -> Option<Kind> {
        self.members.first().map(|member| match member.under {
            Under::Policy(_) => Kind::Policies,
            Under::Throttle(_) => Kind::Throttle,
        })
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

    /// Adds a check under a policy.
    pub(super) fn join(&mut self, policy: usize, key: &[u8], cost: Cost, is_heard: bool) {
        self.add(Under::Policy(policy), key, cost, is_heard);
    }

    /// Adds a check under figures that came with it.
    pub(super) fn join_throttle(&mut self, limit: AdHocLimit, key: &[u8], cost: Cost, is_heard: bool) {
        self.add(Under::Throttle(limit), key, cost, is_heard);
    }

    fn add(&mut self, under: Under, key: &[u8], cost: Cost, is_heard: bool) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.members.push(Member { under, key: start..self.keys.len(), cost, is_heard });
    }

    /// Decides all at `now` and tells it.
    pub(super) fn decide(&mut self, app: &App, now: Timestamp, reply: &mut Reply<'_>) -> Decided {
        if let [Member { under: Under::Policy(policy), key, cost, .. }] = &self.members[..] {
            let decided = self.known(*policy).handle.check_at(&self.keys[key.clone()], *cost, now);
            return match decided.now() {
                Ok(decision) => Decided::Told(self.told(app, std::iter::once(Ok(&decision)), reply)),
                Err(later) => Decided::Later(Box::pin(async { vec![later.await] })),
            };
        }
        let answers = match self.kind() {
            Some(Kind::Throttle) => app.limiter().store().check_ad_hoc(now, &self.brought()),
            _ => app.limiter().check_batch_at(&self.asked(), now),
        };
        match answers.now() {
            Ok(decisions) => Decided::Told(self.told(app, decisions.iter().map(Ok), reply)),
            Err(later) => Decided::Later(later),
        }
    }

    /// The checks under policies.
    fn asked(&self) -> Vec<Asked<'_, AnyStore>> {
        let asked = self.members.iter().filter_map(|Member { under, key, cost, .. }| match under {
            Under::Policy(policy) => {
                let policy = &self.known(*policy).handle;
                Some(Asked { policy, key: &self.keys[key.clone()], cost: *cost })
            }
            Under::Throttle(_) => None,
        });
        asked.collect()
    }

    /// The checks under figures that came with them.
    fn brought(&self) -> Vec<AdHocCheck<'_>> {
        let brought = self.members.iter().filter_map(|Member { under, key, cost, .. }| match under {
            Under::Throttle(limit) => {
                Some(AdHocCheck { space: THROTTLE, key: &self.keys[key.clone()], limit, cost: *cost })
            }
            Under::Policy(_) => None,
        });
        brought.collect()
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
                    failed(app, error, member.is_heard.then_some(&mut *reply));
                    continue;
                }
            };
            let is_counted = !member.cost.is_peek();
            counted += u64::from(is_counted);
            match member.under {
                Under::Policy(policy) => {
                    let known = self.known(policy);
                    if is_counted {
                        known.counters.count(decision.outcome());
                    }
                    if member.is_heard {
                        let policy = known.version(&self.keys[member.key.clone()], decision);
                        tell(reply, &policy, decision);
                    }
                }
                Under::Throttle(_) => {
                    if is_counted {
                        app.metrics().throttled(decision.outcome());
                    }
                    if member.is_heard {
                        tell_throttle(reply, decision);
                    }
                }
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

/// There is no answer: this is counted, and told whoever hears it. Nobody is to take it for a refusal.
pub(super) fn failed(app: &App, error: &StoreError, reply: Option<&mut Reply<'_>>) {
    app.store_failed(error);
    let Some(reply) = reply else { return };
    let code = match error.kind {
        StoreErrorKind::Damaged => "DAMAGED",
        StoreErrorKind::Unfit => "UNFIT",
        _ => "UNAVAILABLE",
    };
    reply.error(format_args!("{code} {}", told(error.kind)));
}
