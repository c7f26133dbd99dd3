//! Checks that are each for themselves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::join_all;
use tidegate::{Decision, Timestamp};

use crate::decide;
use crate::engine::{Engine, MOST_TRIES};
use crate::prepared::Prepared;
use crate::question::{Question, Trouble};
use crate::script::{self, Call, Item, Mode, Told};

/// A call decides at most so many checks: the server does nothing else meanwhile.
const MOST_A_CALL: usize = 128;

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
            // Records that were carried over: what else was asked of them in this call comes after that.
            let mut carried: HashSet<&[u8]> = HashSet::new();
            for (place, told) in batches.into_iter().flatten().flatten().zip(told.into_iter().flatten()) {
                let question = &questions[place];
                let answer = match told {
                    Ok(Told::Foreign) if carried.contains(&question.record[..]) => None,
                    Ok(Told::Answered(decision)) => Some(Ok(*decision)),
                    Ok(Told::Decided { admitted, kept, logs }) => {
                        Some(question.decision(admitted, &kept, logs))
                    }
                    Ok(Told::Foreign) => self.meet_foreign(question).await.transpose(),
                    Err(trouble) => Some(Err(trouble)),
                };
                match answer {
                    Some(answer) => answers[place] = Some(answer),
                    None => {
                        carried.insert(&question.record);
                        open.push(place);
                    }
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

    /// Checks that go out at the same time: those of one slot and of one plan that has a script of its own, and all
    /// others of a slot. Each in its order, call by call; those of one record are in the same.
    fn batches(&self, questions: &[Question], open: &[usize]) -> Vec<Vec<Vec<usize>>> {
        type Of = (*const Prepared, u16);
        let mut batches: Vec<(Of, Vec<usize>)> = Vec::new();
        for place in open {
            let Question { plan, record, .. } = &questions[*place];
            let alone = plan.swift.is_some() || plan.is_classic;
            let script = if alone { Arc::as_ptr(plan) } else { std::ptr::null() };
            let of = (script, self.link.slot_for(record));
            match batches.iter_mut().find(|(other, _)| *other == of) {
                Some((_, batch)) => batch.push(*place),
                None => batches.push((of, vec![*place])),
            }
        }
        let split = |(_, batch): (Of, Vec<usize>)| match questions[batch[0]].plan.swift {
            Some(_) => batch.chunks(MOST_A_CALL).map(<[usize]>::to_vec).collect(),
            None => calls(questions, &batch),
        };
        batches.into_iter().map(split).collect()
    }

    /// What the server says of the checks at the places of `calls`, which go out one call after the other.
    async fn batch(&self, questions: &[Question], calls: &[Vec<usize>]) -> Vec<Result<Told, Trouble>> {
        let mut told = Vec::new();
        if calls.iter().flatten().all(|place| questions[*place].plan.is_classic) {
            for place in calls.iter().flatten() {
                told.push(
                    self.check_classic(&questions[*place]).await.map(|it| Told::Answered(Box::new(it))),
                );
            }
            return told;
        }
        for places in calls {
            let items: Vec<Item> = places.iter().map(|place| questions[*place].item()).collect();
            let within = places.iter().map(|place| questions[*place].within).max().unwrap_or(self.timeout);
            match self.ask(&self.call_for(&items), &items, within).await {
                Ok(said) => told.extend(said.into_iter().map(Ok)),
                // The script ended where it met it, before it wrote any record: nobody is charged twice.
                Err(trouble) if trouble.is_of_one_record() => {
                    for (place, item) in places.iter().zip(items) {
                        told.push(self.alone(&questions[*place], item).await);
                    }
                }
                Err(trouble) => told.extend(places.iter().map(|_| Err(trouble.clone()))),
            }
        }
        told
    }

    /// What the server says of one check, which may be the one whose record is no record.
    async fn alone(&self, question: &Question, item: Item) -> Result<Told, Trouble> {
        let items = std::slice::from_ref(&item);
        let told = match self.ask(&self.call_for(items), items, question.within).await {
            Err(trouble) if trouble.is_of_one_record() => {
                self.clear(question).await?;
                self.ask(&self.call_for(items), items, question.within).await?
            }
            told => told?,
        };
        // As many as there were checks.
        told.into_iter().next().ok_or_else(|| Trouble::Contended { record: question.name() })
    }

    /// The call that decides checks each for itself: by the script made for their plan, if there is one.
    fn call_for(&self, items: &[Item]) -> Call {
        match items.first().map(|item| &*item.plan) {
            Some(Prepared { swift: Some(swift), tag, .. }) => swift.call(tag, items, self.lives),
            _ => script::check(items, self.lives, Mode::Each),
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
        self.carry_over(question, seen, now).await?;
        Ok(None)
    }

    /// The call that decides checks of one plan.
    pub(crate) fn wire(&self, questions: &[Question]) -> Call {
        let items: Vec<Item> = questions.iter().map(Question::item).collect();
        self.call_for(&items)
    }
}

/// Checks without a script of their plan's own, in calls: such a call takes of one record checks of one instant only.
fn calls(questions: &[Question], places: &[usize]) -> Vec<Vec<usize>> {
    let mut calls: Vec<Vec<usize>> = Vec::new();
    let mut latest: HashMap<&[u8], (usize, Timestamp)> = HashMap::new();
    for place in places {
        let Question { record, now, .. } = &questions[*place];
        let least = match latest.get(&record[..]) {
            Some((call, instant)) => call + usize::from(instant != now),
            None => 0,
        };
        let room = calls.iter().skip(least).position(|call| call.len() < MOST_A_CALL);
        let call = room.map_or(calls.len(), |after| least + after);
        if call == calls.len() {
            calls.push(Vec::new());
        }
        calls[call].push(*place);
        latest.insert(record, (call, *now));
    }
    calls
}
