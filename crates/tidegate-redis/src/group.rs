//! Checks that are decided as one.

use std::collections::BTreeSet;

use tidegate::store::{Ask, Grouping};
use tidegate::{Decision, Timestamp};

use crate::decide::{self, Shared, state_of};
use crate::engine::{Engine, MOST_TRIES};
use crate::question::{Question, Trouble};
use crate::script::{self, Item, Mode, Told};

impl Engine {
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
            let policy = question.plan.policy_name().unwrap_or_default().to_owned();
            return Err(Trouble::ClassicInGroup { policy });
        }
        let slots = questions.iter().map(|question| self.link.slot_for(&question.record));
        if slots.collect::<BTreeSet<_>>().len() > 1 {
            return Err(Trouble::Apart);
        }
        let merged = Merged::of(questions)?;
        let mode = if grouping == Grouping::AllOrNothing { Mode::All } else { Mode::Foresee };
        'tries: for _ in 0..MOST_TRIES {
            let call = script::check(&merged.items, self.lives, mode);
            let within = questions.iter().map(|question| question.within).min().unwrap_or(self.timeout);
            let told = match self.ask(&call, &merged.items, within).await {
                Err(trouble) if trouble.is_of_one_record() => {
                    // Whichever it is: it is named, or deleted, when it is looked at.
                    for members in &merged.members {
                        self.look(&questions[members[0]], now).await?;
                    }
                    continue 'tries;
                }
                told => told?,
            };
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
                            self.carry_over(question, seen, now).await?;
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
