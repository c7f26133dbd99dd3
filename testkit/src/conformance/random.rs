//! Random traces, each answer compared with the oracle's.

use std::cell::RefCell;

use super::duel::Duel;
use super::resolve::{KEYS, Standing};
use super::runner::for_all;
use super::subject::Subject;
use crate::strategies::{Act, Reload, TraceStep, policy, start_us, trace};

const LONGEST_TRACE: usize = 40;

/// Puts `cases` random traces under random policies to the subject: checks, peeks, credits, penalties, resets and
/// reloads on two keys, with clocks that step back, at the instants at which something changes. Every figure of every
/// answer has to be the oracle's.
///
/// # Panics
/// With the smallest trace found on which they differ.
pub fn random_traces(subject: &mut dyn Subject, cases: u32) {
    let subject = RefCell::new(subject);
    for_all(cases, &(policy(), start_us(), trace(LONGEST_TRACE)), |(limits, start, steps)| {
        let mut subject = subject.borrow_mut();
        let duel = Duel::start(&mut **subject, &limits).map_err(|reason| format!("refused: {reason}"))?;
        let mut play = Play { duel, standing: Standing::at(start), unsettled: false, done: Vec::new() };
        steps.iter().try_for_each(|step| {
            play.take(step).map_err(|fault| format!("{fault}\nafter\n  {}", play.done.join("\n  ")))
        })
    });
}

struct Play<'a> {
    duel: Duel<'a>,
    standing: Standing,
    /// Whether figures changed and some key may not have been written under the new ones yet.
    unsettled: bool,
    /// What was asked so far, for the report.
    done: Vec<String>,
}

impl Play<'_> {
    fn take(&mut self, step: &TraceStep) -> Result<(), String> {
        let key = KEYS[usize::from(step.key)];
        let offers = self.duel.offers();
        let oldest = self.duel.oldest_us(key);
        let limits = self.duel.limits().to_vec();
        let at = self.standing.advance(step.gap, step.key, &limits, oldest);
        let units = |cost| self.standing.units(cost, step.key, &limits);
        let answered = match &step.act {
            Act::Peek => {
                self.done.push(format!("peek at {at} of {key:?}"));
                self.duel.check(at, key, 0)?
            }
            Act::CheckUpTo(max) if offers.check_up_to => {
                let max = units(*max);
                self.done.push(format!("check of up to {max} at {at} of {key:?}"));
                self.duel.check_up_to(at, key, max)?.1
            }
            Act::Check(cost) | Act::CheckUpTo(cost) => {
                let cost = units(*cost);
                self.done.push(format!("check of {cost} at {at} of {key:?}"));
                self.duel.check(at, key, cost)?
            }
            Act::Credit(n) if offers.forced => {
                let n = units(*n);
                self.done.push(format!("credit of {n} at {at} to {key:?}"));
                self.duel.credit(at, key, n)?
            }
            Act::Penalize(n) if offers.forced => {
                let n = units(*n);
                self.done.push(format!("penalty of {n} at {at} on {key:?}"));
                self.duel.penalize(at, key, n)?.1
            }
            Act::Reset if offers.reset => {
                self.done.push(format!("reset at {at} of {key:?}"));
                self.duel.reset(at, key)?
            }
            Act::Reload(change) if offers.reload => return self.reload(change),
            _ => return Ok(()),
        };
        let decided_at = self.duel.oracle(key).decided_at(at);
        self.standing.tell(step.key, decided_at, answered.answer);
        Ok(())
    }

    /// Changes the figures at the newest stamp: a store's own clock does not go back.
    ///
    /// A store that carries a key over at its first touch may never see figures that came and went between two
    /// touches. Then every key is written once between two changes.
    fn reload(&mut self, change: &Reload) -> Result<(), String> {
        let since = self.duel.newest_us().max(self.standing.now_us);
        let limits = change.applied_to(self.duel.limits());
        if limits == self.duel.limits() {
            self.duel.reload(&limits, since);
            return Ok(());
        }
        if self.unsettled && !self.duel.offers().every_change {
            if !self.duel.offers().forced {
                return Ok(());
            }
            for key in self.duel.keys() {
                self.done.push(format!("credit of 1 at {since} to {key:?}"));
                self.duel.credit(since, &key, 1)?;
            }
        }
        self.done.push(format!("reload at {since} to {limits:?}"));
        self.duel.reload(&limits, since);
        self.unsettled = true;
        Ok(())
    }
}
