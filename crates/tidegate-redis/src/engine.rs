//! The conversation with the server that makes a decision or a change.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate::store::{Ask, Grouping};
use tidegate::{Decision, KeyState, Penalty, Plan, Timestamp, Units};
use tokio::runtime::Handle;

use crate::change::{Life, Seen, foreign_logs};
use crate::decide::{self, Shared, state_of};
use crate::fallback::Charged;
use crate::gather::Gather;
use crate::link::{Failure, Link};
use crate::names::Names;
use crate::prepared::Prepared;
use crate::record::Damaged;
use crate::script::{self, Call, Deed, Item, Mode, Read, Swap, Told, Unheard};

/// Times a change is tried again because somebody else was faster.
const MOST_TRIES: u32 = 100;

/// What happens to a record that is damaged or not tidegate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamaged {
    /// The check fails, and the error names the record.
    #[default]
    Refuse,
    /// The record is deleted: the key is as one never seen.
    StartAnew,
}

/// A call decides at most so many checks: the server does nothing else meanwhile.
const MOST_A_CALL: usize = 128;

/// What the store knows beside the link.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) link: Link,
    pub(crate) names: Names,
    /// Milliseconds a record outlives its being as new.
    pub(crate) spare: u64,
    pub(crate) timeout: Duration,
    pub(crate) on_damaged: OnDamaged,
    /// The policies kept in the classic layout, and what the names of their buckets begin with.
    pub(crate) classic: HashMap<String, String>,
    pub(crate) gather: Gather,
    /// Where calls go on that nobody may be waiting for.
    pub(crate) runtime: Handle,
}

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
    /// Whether the store could not be asked, and whether it may have charged all the same; `None` if it could, and
    /// something else is wrong.
    pub(crate) fn outage(&self) -> Option<Charged> {
        match self {
            Trouble::Link(Failure::NotRun(_)) => Some(Charged::No),
            Trouble::Link(Failure::MayHaveRun(_)) => Some(Charged::Perhaps),
            // It has no room, and had none before it wrote anything.
            Trouble::Link(Failure::Refused(said)) if said.contains("OOM ") => Some(Charged::No),
            _ => None,
        }
    }
}

impl Question {
    fn keys(&self) -> Vec<Vec<u8>> {
        let logs = self.plan.logs.iter().map(|name| Names::log(&self.record, *name));
        std::iter::once(self.record.clone()).chain(logs).collect()
    }

    fn item(&self) -> Item {
        let ask = match self.ask {
            Ask::Exactly(cost) => script::Ask::Exactly(cost.get()),
            Ask::UpTo(most) => script::Ask::UpTo(most.get()),
        };
        Item { plan: Arc::clone(&self.plan), keys: self.keys(), ask, now: self.now, whole_logs: false }
    }

    fn charges(&self) -> bool {
        let (Ask::Exactly(cost) | Ask::UpTo(cost)) = self.ask;
        !cost.is_peek()
    }

    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.record).into_owned()
    }

    fn damaged(&self, damage: Damaged) -> Trouble {
        Trouble::Damaged { record: self.name(), damage }
    }
}

impl Engine {
    /// Decides checks that are independent of one another, in order, those of one record one after the other.
    pub(crate) async fn each(&self, questions: &[Question]) -> Vec<Result<Decision, Trouble>> {
        let mut answers: Vec<Option<Result<Decision, Trouble>>> = questions.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..questions.len()).collect();
        for _ in 0..MOST_TRIES {
            let batches = self.batches(questions, &open);
            let asked = batches.iter().map(|batch| self.batch(questions, batch));
            let told = join_all(asked).await;
            open.clear();
            for (place, told) in batches.into_iter().flatten().zip(told.into_iter().flatten()) {
                let question = &questions[place];
                let answer = match told {
                    Ok(Told::Answered(decision)) => Some(Ok(*decision)),
                    Ok(Told::Decided { admitted, kept, logs }) => {
                        Some(question.decision(admitted, &kept, logs))
                    }
                    Ok(Told::Foreign) => self.meet_foreign(question).await.transpose(),
                    Err(trouble) => Some(Err(trouble)),
                };
                match answer {
                    Some(answer) => answers[place] = Some(answer),
                    None => open.push(place),
                }
            }
            if open.is_empty() {
                break;
            }
        }
        let unanswered = |question: &Question| Err(Trouble::Contended { record: question.name() });
        answers
            .into_iter()
            .zip(questions)
            .map(|(answer, it)| answer.unwrap_or_else(|| unanswered(it)))
            .collect()
    }

    /// Checks that go out together: those of one slot and of one plan that has a script of its own, and all others of
    /// a slot and an instant; each in its order.
    fn batches(&self, questions: &[Question], open: &[usize]) -> Vec<Vec<usize>> {
        type Of = (*const Prepared, Option<Timestamp>, u16);
        let mut batches: Vec<(Of, Vec<usize>)> = Vec::new();
        for place in open {
            let Question { plan, record, now, .. } = &questions[*place];
            let alone = plan.swift.is_some() || plan.is_classic;
            let script = if alone { Arc::as_ptr(plan) } else { std::ptr::null() };
            // A script of a plan's own takes the instant of each check.
            let of = (script, (!alone).then_some(*now), self.link.slot_for(record));
            match batches.iter_mut().find(|(other, _)| *other == of) {
                Some((_, batch)) => batch.push(*place),
                None => batches.push((of, vec![*place])),
            }
        }
        batches.into_iter().map(|(_, batch)| batch).collect()
    }

    /// What the server says of the checks at `places`, which go out together.
    async fn batch(&self, questions: &[Question], places: &[usize]) -> Vec<Result<Told, Trouble>> {
        let mut told = Vec::with_capacity(places.len());
        if places.iter().all(|place| questions[*place].plan.is_classic) {
            for place in places {
                told.push(
                    self.check_classic(&questions[*place]).await.map(|it| Told::Answered(Box::new(it))),
                );
            }
            return told;
        }
        for places in places.chunks(MOST_A_CALL) {
            let items: Vec<Item> = places.iter().map(|place| questions[*place].item()).collect();
            let within = places.iter().map(|place| questions[*place].within).max().unwrap_or(self.timeout);
            match self.ask(&self.call_for(&items), &items, within).await {
                Ok(said) => told.extend(said.into_iter().map(Ok)),
                Err(trouble) => told.extend(places.iter().map(|_| Err(trouble.clone()))),
            }
        }
        told
    }

    /// The call that decides checks each for itself: by the script made for their plan, if there is one.
    fn call_for(&self, items: &[Item]) -> Call {
        let now = items.first().map_or(Timestamp::EPOCH, |item| item.now);
        match items.first().map(|item| &*item.plan) {
            Some(Prepared { swift: Some(swift), tag, .. }) => swift.call(tag, items, self.spare),
            _ => script::check(items, now, self.spare, Mode::Each),
        }
    }

    /// What a check is answered whose record stands under other figures; `None` if it is to be asked again, the
    /// record having been put under those in force.
    async fn meet_foreign(&self, question: &Question) -> Result<Option<Decision>, Trouble> {
        let now = question.now;
        let seen = self.look(question, now).await?;
        if !question.charges() {
            return Ok(Some(decide::foresee(&question.plan.plan, &seen.state, now, question.ask)));
        }
        self.carry_over(question, &seen, now).await?;
        Ok(None)
    }

    /// Decides checks as one.
    pub(crate) async fn group(
        &self,
        now: Timestamp,
        questions: &[Question],
        grouping: Grouping,
    ) -> Result<Vec<Decision>, Trouble> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(question) = questions.iter().find(|question| question.plan.is_classic) {
            return Err(Trouble::ClassicInGroup { policy: question.plan.policy().name().to_owned() });
        }
        let slots = questions.iter().map(|question| self.link.slot_for(&question.record));
        if slots.collect::<BTreeSet<_>>().len() > 1 {
            return Err(Trouble::Apart);
        }
        let merged = Merged::of(questions)?;
        let mode = if grouping == Grouping::AllOrNothing { Mode::All } else { Mode::Foresee };
        'tries: for _ in 0..MOST_TRIES {
            let call = script::check(&merged.items, now, self.spare, mode);
            let within = questions.iter().map(|question| question.within).min().unwrap_or(self.timeout);
            let told = self.ask(&call, &merged.items, within).await?;
            let mut records = Vec::with_capacity(told.len());
            let mut all = true;
            let charging = mode == Mode::All && questions.iter().any(Question::charges);
            for (told, members) in told.into_iter().zip(&merged.members) {
                let question = &questions[members[0]];
                let state = match told {
                    Told::Decided { admitted, kept, logs } => {
                        all &= admitted;
                        state_of(&question.plan, &kept, logs).map_err(|damage| question.damaged(damage))?
                    }
                    // A group has no classic buckets.
                    Told::Answered(_) => continue,
                    Told::Foreign => {
                        let seen = self.look(question, now).await?;
                        if charging {
                            // By the first check that would charge, admitted or not.
                            self.carry_over(question, &seen, now).await?;
                            continue 'tries;
                        }
                        seen.state
                    }
                };
                let members = members.iter().map(|place| (*place, questions[*place].ask)).collect();
                records.push(Shared { plan: &question.plan.plan, state, members });
            }
            let decisions = decide::group(&mut records, now, grouping, all);
            if grouping == Grouping::AllOrNothing && all != decisions.iter().all(Decision::is_allowed) {
                return Err(Trouble::Disagreement { record: questions[0].name() });
            }
            return Ok(decisions);
        }
        Err(Trouble::Contended { record: questions[0].name() })
    }

    /// Changes a record outright.
    pub(crate) async fn change(
        &self,
        now: Timestamp,
        question: &Question,
        deed: Deed,
    ) -> Result<Penalty, Trouble> {
        if question.plan.is_classic {
            return self.change_classic(question, now, deed).await;
        }
        let apply = |plan: &Plan, state: &mut KeyState| match deed {
            Deed::Credit(units) => plan.credit(state, now, in_range(units)),
            Deed::Charge(units) => plan.penalize(state, now, in_range(units)),
            Deed::Check(_) | Deed::UpTo(_) => Penalty::nothing(plan.peek(state, now)),
        };
        for _ in 0..MOST_TRIES {
            let seen = self.look(question, now).await?;
            let mut state = seen.state.clone();
            let penalty = apply(&question.plan.plan, &mut state);
            if state == seen.state && !seen.carried {
                return Ok(penalty);
            }
            let swap = seen.swap(&question.plan, &question.record, &state, &self.life(now));
            if self.swap(swap).await? {
                return Ok(penalty);
            }
        }
        Err(Trouble::Contended { record: question.name() })
    }

    /// Forgets a record.
    pub(crate) async fn forget(&self, now: Timestamp, question: &Question) -> Result<Penalty, Trouble> {
        if question.plan.is_classic {
            self.forget_classic(question).await?;
            let plan = &question.plan.plan;
            return Ok(Penalty::nothing(plan.peek(&KeyState::new(plan), now)));
        }
        for _ in 0..MOST_TRIES {
            let seen = self.look(question, now).await?;
            if seen.is_absent() || self.swap(seen.forget(&question.plan, &question.record)).await? {
                let plan = &question.plan.plan;
                return Ok(Penalty::nothing(plan.peek(&KeyState::new(plan), now)));
            }
        }
        Err(Trouble::Contended { record: question.name() })
    }

    /// How a key stands, under the figures in force.
    pub(crate) async fn state(&self, question: &Question, now: Timestamp) -> Result<KeyState, Trouble> {
        match question.plan.is_classic {
            true => self.look_classic(question, now).await,
            false => Ok(self.look(question, now).await?.state),
        }
    }

    /// Reads a record, under the figures in force.
    async fn look(&self, question: &Question, now: Timestamp) -> Result<Seen, Trouble> {
        let mut keys = question.keys();
        for _ in 0..MOST_TRIES {
            let read = Read::of(self.link.call(&script::read(keys.clone()), self.timeout).await?)?;
            let damage = match foreign_logs(&question.plan, &read.kept) {
                Ok(logs) => {
                    let names = logs.as_deref().unwrap_or(&question.plan.logs);
                    let named = names.iter().map(|name| Names::log(&question.record, *name));
                    let wanted: Vec<Vec<u8>> =
                        std::iter::once(question.record.clone()).chain(named).collect();
                    if wanted != keys {
                        keys = wanted;
                        continue;
                    }
                    match Seen::of(&question.plan, read.clone(), now) {
                        Ok(seen) => return Ok(seen),
                        Err(damage) => damage,
                    }
                }
                Err(damage) => damage,
            };
            if self.on_damaged == OnDamaged::Refuse {
                return Err(question.damaged(damage));
            }
            let logs = question.keys().len() - 1;
            let gone = Swap {
                keys: question.keys(),
                before: read.kept,
                after: Vec::new(),
                life: None,
                logs: vec![script::LogChange::Forget; logs],
            };
            self.swap(gone).await?;
            keys = question.keys();
        }
        Err(Trouble::Contended { record: question.name() })
    }

    /// Puts a record that stands under other figures under those in force; if somebody else was faster, it is as
    /// well.
    async fn carry_over(&self, question: &Question, seen: &Seen, now: Timestamp) -> Result<(), Trouble> {
        let swap = seen.swap(&question.plan, &question.record, &seen.state, &self.life(now));
        self.swap(swap).await?;
        Ok(())
    }

    /// The call that decides checks of one plan.
    pub(crate) fn wire(&self, questions: &[Question]) -> Call {
        let items: Vec<Item> = questions.iter().map(Question::item).collect();
        self.call_for(&items)
    }

    async fn ask(&self, call: &Call, items: &[Item], within: Duration) -> Result<Vec<Told>, Trouble> {
        Ok(Told::of(self.link.call(call, within).await?, items)?)
    }

    async fn swap(&self, swap: Swap) -> Result<bool, Trouble> {
        let reply = self.link.call(&script::swap(swap), self.timeout).await?;
        Ok(Swap::done(&reply)?)
    }

    fn life(&self, now: Timestamp) -> Life {
        Life { now, spare: self.spare }
    }
}

impl Question {
    fn decision(
        &self,
        admitted: bool,
        kept: &[u8],
        logs: Vec<crate::record::KeptLog>,
    ) -> Result<Decision, Trouble> {
        let mut state = state_of(&self.plan, kept, logs).map_err(|damage| self.damaged(damage))?;
        let decision = decide::decide(&self.plan.plan, &mut state, self.now, self.ask);
        if decision.is_allowed() != admitted {
            return Err(Trouble::Disagreement { record: self.name() });
        }
        Ok(decision)
    }
}

/// The checks of a group, those of one record as one.
struct Merged {
    items: Vec<Item>,
    /// For each item the places of its checks.
    members: Vec<Vec<usize>>,
}

impl Merged {
    fn of(questions: &[Question]) -> Result<Merged, Trouble> {
        let mut merged = Merged { items: Vec::new(), members: Vec::new() };
        for (place, question) in questions.iter().enumerate() {
            let known = merged.members.iter().position(|of| questions[of[0]].record == question.record);
            let Some(index) = known else {
                merged.items.push(question.item());
                merged.members.push(vec![place]);
                continue;
            };
            let item = &mut merged.items[index];
            match (&mut item.ask, question.ask) {
                (script::Ask::Exactly(sum), Ask::Exactly(cost)) => *sum += cost.get(),
                _ => return Err(Trouble::UpToTwice { record: question.name() }),
            }
            item.whole_logs = true;
            merged.members[index].push(place);
        }
        Ok(merged)
    }
}

/// What came as units.
fn in_range(units: u64) -> Units {
    Units::new(units).unwrap_or(Units::MAX)
}
