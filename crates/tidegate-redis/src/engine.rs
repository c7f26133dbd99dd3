//! What the store knows, and how a record is read and changed.

use std::collections::HashMap;
use std::time::Duration;

use tidegate::{KeyState, Penalty, Plan, Timestamp, Units};
use tokio::runtime::Handle;

use crate::change::{Life, Seen};
use crate::gather::Gather;
use crate::link::{Failure, Link};
use crate::names::Names;
use crate::question::{Question, Trouble};
use crate::record::Damaged;
use crate::script::{self, Call, Deed, Item, Lives, Swap, Told};

/// Times a change is tried again because somebody else was faster.
pub(crate) const MOST_TRIES: u32 = 100;

/// What happens to a record that is damaged or not tidegate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamaged {
    /// The check fails, and the error names the record.
    #[default]
    Refuse,
    /// The record is deleted: the key is as one never seen.
    StartAnew,
}

/// What the store knows beside the link.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) link: Link,
    pub(crate) names: Names,
    pub(crate) lives: Lives,
    pub(crate) timeout: Duration,
    pub(crate) on_damaged: OnDamaged,
    /// The policies kept in the classic layout, and what the names of their buckets begin with.
    pub(crate) classic: HashMap<String, String>,
    pub(crate) gather: Gather,
    /// Where calls go on that nobody may be waiting for.
    pub(crate) runtime: Handle,
}

impl Engine {
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
            if state == seen.state && !seen.carried || self.is_left_absent(question, &seen, &state, now) {
                return Ok(penalty);
            }
            let swap = seen.swap(&question.plan, &question.record, &state, &self.life(now));
            if self.swap(swap).await? {
                return Ok(penalty);
            }
        }
        Err(Trouble::Contended { record: question.name() })
    }

    /// Whether a key whose figures come along, and of which nothing is kept, is still as new: as in memory nothing
    /// is kept of it then, so that giving back to keys that nobody knows fills no store.
    fn is_left_absent(&self, question: &Question, seen: &Seen, state: &KeyState, now: Timestamp) -> bool {
        let Question { plan, .. } = question;
        let is_new = || plan.plan.as_new_after(state, now).is_some_and(|wait| wait.is_zero());
        plan.policy_name().is_none() && seen.is_absent() && is_new()
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
            if seen.is_absent() || self.swap(seen.forget(&question.record)).await? {
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
    pub(crate) async fn look(&self, question: &Question, now: Timestamp) -> Result<Seen, Trouble> {
        for _ in 0..MOST_TRIES {
            let read = self.link.call(&script::read(question.record.clone()), self.timeout).await;
            let kept = match read {
                Err(Failure::Foreign(_)) => {
                    self.clear(question).await?;
                    continue;
                }
                read => script::was_read(read.map_err(Failure::of_a_look)?)?,
            };
            let damage = match Seen::of(&question.plan, kept.clone(), now) {
                Ok(seen) => return Ok(seen),
                Err(damage) => damage,
            };
            if self.on_damaged == OnDamaged::Refuse {
                return Err(question.damaged(damage));
            }
            let record = question.record.clone();
            self.swap(Swap { record, before: kept, after: Vec::new(), life: None }).await?;
        }
        Err(Trouble::Contended { record: question.name() })
    }

    /// Deletes what lies where a record should, and is none, if that is what was chosen.
    pub(crate) async fn clear(&self, question: &Question) -> Result<(), Trouble> {
        if self.on_damaged == OnDamaged::Refuse {
            return Err(question.damaged(Damaged("a value of another type")));
        }
        self.link.delete(std::slice::from_ref(&question.record), self.timeout).await?;
        Ok(())
    }

    /// Puts a record that stands under other figures under those in force; if somebody else was faster, it is as
    /// well.
    pub(crate) async fn carry_over(
        &self,
        question: &Question,
        seen: Seen,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        let state = seen.state.clone();
        let swap = seen.swap(&question.plan, &question.record, &state, &self.life(now));
        self.swap(swap).await?;
        Ok(())
    }

    pub(crate) async fn ask(
        &self,
        call: &Call,
        items: &[Item],
        within: Duration,
    ) -> Result<Vec<Told>, Trouble> {
        Ok(Told::of(self.link.call_in_haste(call, within, self.timeout).await?, items)?)
    }

    pub(crate) async fn swap(&self, swap: Swap) -> Result<bool, Trouble> {
        let reply = self.link.call(&script::swap(swap), self.timeout).await?;
        Ok(Swap::done(&reply)?)
    }

    pub(crate) fn life(&self, now: Timestamp) -> Life {
        Life { now, lives: self.lives }
    }
}

/// What came as units.
fn in_range(units: u64) -> Units {
    Units::new(units).unwrap_or(Units::MAX)
}
