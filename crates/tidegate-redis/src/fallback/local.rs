//! One instance's share of each limit, enforced in its memory while the store does not answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::store::{Adjustment, Ask, Grouping, Snapshot};
use tidegate::{Algorithm, Decision, KeyState, Penalty, Plan, Timestamp, Units};
use tidegate_core::{Cells, Since, State};

use super::{Charged, Replica};
use crate::decide::{self, Shared};
use crate::prepared::Prepared;
use crate::question::Question;
use crate::recent::Recent;

/// Keys that are known at once; of others, those touched longest ago are forgotten first.
const MOST_KEYS: usize = 200_000;

/// What is left of each limit of a key, as the store said last.
#[derive(Debug, Clone)]
struct Known {
    at: Timestamp,
    remaining: Box<[u64]>,
    /// Under which plan.
    plan: Arc<Prepared>,
}

/// How a key stands in this instance's share.
#[derive(Debug, Clone)]
struct Standing {
    state: KeyState,
    plan: Arc<Prepared>,
    share: Arc<Plan>,
}

/// A key that a group touches, how it stands, and which of the group's checks are of it.
struct Touched<'a> {
    question: &'a Question,
    stand: Standing,
    members: Vec<(usize, Ask)>,
}

#[derive(Debug)]
pub(super) struct Local {
    replica: Replica,
    known: Mutex<Recent<Known>>,
    standing: Mutex<Recent<Standing>>,
}

impl Local {
    pub(super) fn of(replica: Replica) -> Self {
        Local {
            replica,
            known: Mutex::new(Recent::of(MOST_KEYS)),
            standing: Mutex::new(Recent::of(MOST_KEYS)),
        }
    }

    pub(super) fn remember(&self, question: &Question, decision: &Decision, now: Timestamp) {
        let remaining = decision.limits().iter().map(|limit| limit.remaining()).collect();
        let known = Known { at: now, remaining, plan: Arc::clone(&question.plan) };
        lock(&self.known).insert(&question.record, known);
    }

    pub(super) fn forget(&self, record: &[u8]) {
        lock(&self.standing).remove(record);
        lock(&self.known).remove(record);
    }

    pub(super) fn decide(&self, now: Timestamp, question: &Question, charged: Charged) -> Decision {
        let mut standing = lock(&self.standing);
        let mut stands = self.stand(&mut standing, question);
        let decision = decide_one(&mut stands, now, question.ask, charged);
        standing.insert(&question.record, stands);
        told(decision, question)
    }

    /// Changes how a key stands outright. What may have been done where nobody answered counts as done if it charges,
    /// and as not done if it gives back.
    pub(super) fn adjust(
        &self,
        now: Timestamp,
        question: &Question,
        adjustment: Adjustment,
        charged: Charged,
    ) -> Penalty {
        let mut standing = lock(&self.standing);
        let mut stands = self.stand(&mut standing, question);
        let Standing { share, state, .. } = &mut stands;
        let mut done = match (adjustment, charged) {
            (Adjustment::Penalize(units), _) => share.penalize(state, now, units),
            (Adjustment::Credit(units), Charged::No) => share.credit(state, now, units),
            (Adjustment::Reset, Charged::No) => {
                lock(&self.known).remove(&question.record);
                *state = KeyState::new(share);
                Penalty::nothing(share.peek(state, now))
            }
            (Adjustment::Credit(_) | Adjustment::Reset, Charged::Perhaps) => {
                Penalty::nothing(share.peek(state, now))
            }
        };
        done.after = told(done.after, question);
        standing.insert(&question.record, stands);
        done
    }

    /// How a key stands.
    pub(super) fn snapshot(&self, question: &Question) -> Snapshot {
        let Standing { share, state, .. } = self.stand(&mut lock(&self.standing), question);
        Snapshot { plan: (*share).clone(), state }
    }

    /// The decisions of checks, with their places.
    pub(super) fn group(
        &self,
        now: Timestamp,
        questions: &[(usize, &Question)],
        grouping: Grouping,
        charged: Charged,
    ) -> Vec<(usize, Decision)> {
        let mut standing = lock(&self.standing);
        let touched = self.touched(&mut standing, questions);
        let records = touched.iter().map(|it| Shared {
            plan: &it.stand.share,
            state: it.stand.state.clone(),
            members: it.members.clone(),
        });
        let mut records: Vec<Shared<'_>> = records.collect();
        let fits = records.iter().all(|Shared { plan, state, members }| {
            let mut copy = state.clone();
            members.iter().all(|(_, ask)| decide::decide(plan, &mut copy, now, *ask).is_allowed())
        });
        let decisions = decide::group(&mut records, now, grouping, fits);
        if grouping == Grouping::AllOrNothing && !fits && charged == Charged::Perhaps {
            // It may have been charged where nobody answered: what did not fit here counts as well.
            for Shared { plan, state, members } in &mut records {
                members.iter().for_each(|(_, ask)| force(plan, state, now, *ask));
            }
        }
        let states: Vec<KeyState> = records.into_iter().map(|record| record.state).collect();
        if grouping == Grouping::AllOrNothing && (fits || charged == Charged::Perhaps) {
            for (state, Touched { question, stand, .. }) in states.into_iter().zip(touched) {
                standing.insert(&question.record, Standing { state, ..stand });
            }
        }
        let places = questions.iter().zip(decisions);
        places.map(|((place, question), decision)| (*place, told(decision, question))).collect()
    }

    fn touched<'a>(
        &self,
        standing: &mut Recent<Standing>,
        questions: &[(usize, &'a Question)],
    ) -> Vec<Touched<'a>> {
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        let mut touched: Vec<Touched<'a>> = Vec::new();
        for (index, (_, question)) in questions.iter().enumerate() {
            let place = *places.entry(&question.record).or_insert_with(|| {
                let stand = self.stand(standing, question);
                touched.push(Touched { question, stand, members: Vec::new() });
                touched.len() - 1
            });
            touched[place].members.push((index, question.ask));
        }
        touched
    }

    /// How a key stands: as it was left here, and no better than the store said last. What was kept under other
    /// figures is carried over, and what was used stays used.
    fn stand(&self, standing: &mut Recent<Standing>, question: &Question) -> Standing {
        let here = standing.get(&question.record).cloned();
        let known = lock(&self.known).get(&question.record).cloned();
        let stand = match (here, known) {
            (Some(here), Some(known)) if known.at > here.state.last() => {
                let here = self.under(here, &known.plan, known.at);
                self.lowered(here, &known)
            }
            (Some(here), _) => here,
            (None, Some(known)) => self.lowered(self.untouched(&known.plan), &known),
            (None, None) => self.untouched(&question.plan),
        };
        self.under(stand, &question.plan, question.now)
    }

    fn untouched(&self, plan: &Arc<Prepared>) -> Standing {
        let share = Arc::new(self.replica.share_of(&plan.plan));
        Standing { state: KeyState::new(&share), plan: Arc::clone(plan), share }
    }

    /// `stand` under the figures of `plan`.
    fn under(&self, stand: Standing, plan: &Arc<Prepared>, now: Timestamp) -> Standing {
        if Arc::ptr_eq(&stand.plan, plan) {
            return stand;
        }
        let place = |name: &u32| stand.plan.names.iter().position(|other| other == name);
        let origins: Vec<Option<usize>> = plan.names.iter().map(place).collect();
        let Standing { share, .. } = self.untouched(plan);
        let state = share.carry_over(&stand.share, &stand.state, &origins, Since::Unknown(now));
        Standing { state, plan: Arc::clone(plan), share }
    }

    /// `stand`, of each limit no more left than this instance's part of what the store said.
    fn lowered(&self, stand: Standing, known: &Known) -> Standing {
        let Standing { state, plan, share } = stand;
        let left = share.peek(&state, known.at);
        let mut lower = KeyState::new(&share);
        lower.set_last(known.at);
        for (index, limit) in share.limits().iter().enumerate() {
            let part = self.replica.part_of(known.remaining.get(index).copied().unwrap_or(0));
            let left = left.limits()[index].remaining().min(part).min(limit.capacity().get());
            let used = limit.capacity().get() - left;
            match limit.algorithm() {
                Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
                    let period = limit.rate().map_or(1, |rate| rate.lowest_terms().1);
                    lower.save(index, limit, State::Bucket(i128::from(left) * i128::from(period)));
                }
                Algorithm::FixedWindow => lower.save(index, limit, State::Count(used)),
                Algorithm::SlidingWindowCounter => {
                    lower.save(index, limit, State::Pair { previous: 0, current: used });
                }
                Algorithm::SlidingWindowLog => {
                    *lower.log_mut(index) = tidegate_core::Log::from_entries([(known.at, used)]);
                }
            }
        }
        Standing { state: lower, plan, share }
    }
}

fn decide_one(stand: &mut Standing, now: Timestamp, ask: Ask, charged: Charged) -> Decision {
    let decision = decide::decide(&stand.share, &mut stand.state, now, ask);
    if !decision.is_allowed() && charged == Charged::Perhaps {
        force(&stand.share, &mut stand.state, now, ask);
    }
    decision
}

/// Counts what may have been charged elsewhere.
fn force(share: &Plan, state: &mut KeyState, now: Timestamp, ask: Ask) {
    let (Ask::Exactly(cost) | Ask::UpTo(cost)) = ask;
    // A cost is in the range of units.
    let units = Units::new(cost.get()).unwrap_or(Units::MAX);
    share.penalize(state, now, units);
}

/// A decision on a share, as it is told: what is above the share but not above the limit may fit another time.
fn told(decision: Decision, question: &Question) -> Decision {
    let (Ask::Exactly(cost) | Ask::UpTo(cost)) = question.ask;
    let exceeds = question.plan.plan.limits().iter().any(|limit| cost.get() > limit.capacity().get());
    let decision = decision.degraded();
    if exceeds { decision } else { decision.for_now() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each entry is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
