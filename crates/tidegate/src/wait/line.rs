//! The line of those who wait for one key: who is next, what to ask the store, and what its answers mean.
//!
//! There is no I/O and no lock in here. Whoever holds the line's lock asks [`Line::next`], puts the question to
//! the store without the lock, and comes back with the [`Answer`].

use std::collections::{HashMap, VecDeque};
use std::task::{Context, Waker};

use tidegate_core::{Cost, Decision, Outcome, Timestamp, Units};

use super::AcquireError;
use super::alarm::{Alarm, Home};
use super::forecast::{Forecast, between};
use crate::clock::Clock;
use crate::store::{Snapshot, StoreError};

/// A place in a line, never given to anybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// What a waiter was given, and the instant its work may leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) decision: Decision,
    pub(crate) leaves: Timestamp,
}

impl Grant {
    /// Of what was admitted at `at`.
    pub(crate) fn at(at: Timestamp, decision: Decision) -> Self {
        Grant { decision, leaves: at.saturating_add(decision.delay()) }
    }
}

pub(crate) type Verdict = Result<Grant, AcquireError>;

/// A question to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether the head of the line may have what it waits for, and to charge it if so.
    Serve { ticket: Ticket, cost: Cost },
    /// How the key stands.
    Look,
    /// To take units back that were charged for somebody who is gone.
    GiveBack(Units),
}

/// The store's answer, to a question asked at `at`.
#[expect(clippy::large_enum_variant, reason = "made in one place and taken apart in the next")]
pub(crate) enum Answer {
    Served { ticket: Ticket, cost: Cost, at: Timestamp, result: Result<Decision, StoreError> },
    Seen { at: Timestamp, result: Result<Snapshot, StoreError> },
    GivenBack,
}

/// What became of a waiter that is gone.
pub(crate) enum Quit {
    /// It gave its place up.
    Place,
    /// It had been given this and never knew.
    Granted(Cost),
    /// It had been told that it will not get anything.
    Nothing,
}

/// How a waiter's own poll of its place ends.
#[expect(clippy::large_enum_variant, reason = "made in one place and taken apart in the next")]
pub(crate) enum Rest {
    Settled(Verdict),
    /// It will be woken.
    Asleep,
    /// It is its turn already.
    Due,
}

#[derive(Default)]
pub(crate) struct Line {
    waiting: VecDeque<Waiter>,
    /// Those who have been decided about and do not know yet.
    settled: HashMap<Ticket, Settled>,
    /// The key after the last of the line; `None` until the store has been looked at.
    end: Option<Forecast>,
    /// Why the forecasts are not to be relied on.
    outdated: Moved,
    /// Why alarms may be set to another instant than the forecasts'.
    unset: Moved,
    /// The last instant at which the store refused what had been forecast.
    refused_at: Option<Timestamp>,
    /// Units to be given back.
    owed: u64,
    next: u64,
}

/// Whether the line has moved against its forecasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Moved {
    #[default]
    No,
    /// Somebody was served a little late, so that all others may be: their alarms are good enough until they
    /// are the head, or setting all of them for each who is served would cost more than the waiting.
    Late,
    /// Something else happened to the key.
    Anyhow,
}

struct Waiter {
    ticket: Ticket,
    cost: Cost,
    deadline: Timestamp,
    /// Its turn by the forecast, never earlier than that of those before.
    due: Option<Timestamp>,
    /// `None` once it has gone off.
    alarm: Option<Alarm>,
    /// Whether its task is looking after it just now, and will see for itself what happened.
    attended: bool,
    home: Home,
}

/// A waiter that was decided about, with what has yet to wake it.
struct Settled {
    verdict: Verdict,
    cost: Cost,
    _woken_by: Option<Waiter>,
}

impl Line {
    /// Joins the end of the line, attended to.
    pub(crate) fn join(
        &mut self,
        now: Timestamp,
        cost: Cost,
        deadline: Timestamp,
        home: Home,
        most: usize,
    ) -> Result<Ticket, AcquireError> {
        if self.waiting.is_empty() {
            self.end = None;
        }
        if self.waiting.len() >= most {
            return Err(AcquireError::QueueFull);
        }
        let due = self.end.as_mut().map(|end| end.serve(now, cost, deadline)).transpose()?;
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back(Waiter { ticket, cost, deadline, due, alarm: None, attended: true, home });
        Ok(ticket)
    }

    /// A waiter's task begins to look after it: from now on it is not woken. What it has been told, if anything.
    /// Leaves in `home` the home it had before.
    pub(crate) fn attend(
        &mut self,
        ticket: Ticket,
        home: &mut Home,
        context: &mut Context<'_>,
    ) -> Option<Verdict> {
        if let Some(waiter) = self.find(ticket) {
            waiter.attended = true;
            std::mem::swap(&mut waiter.home, home);
            if waiter.alarm.as_mut().is_some_and(|alarm| alarm.poll(context).is_ready()) {
                waiter.alarm = None;
            }
        }
        self.settled.remove(&ticket).map(|settled| settled.verdict)
    }

    /// A waiter's task has done what it could. `busy` says that a question is on its way, by whose answer
    /// somebody will see to it that everybody is woken.
    pub(crate) fn rest(&mut self, ticket: Ticket, clock: &dyn Clock, busy: bool) -> Rest {
        if let Some(settled) = self.settled.remove(&ticket) {
            return Rest::Settled(settled.verdict);
        }
        let Some(waiter) = self.find(ticket) else {
            unreachable!("a ticket is either waited on or decided about until its holder is told or quits")
        };
        if busy {
            waiter.attended = false;
            self.unset = self.unset.max(Moved::Late);
            return Rest::Asleep;
        }
        if let Some(due) = waiter.due
            && waiter.alarm.as_ref().is_none_or(|alarm| alarm.at() != due)
        {
            waiter.alarm = Alarm::set(clock, due, &waiter.home);
            if waiter.alarm.is_none() {
                if clock.now() >= due {
                    return Rest::Due;
                }
                // The clock cannot agree with itself, so it has to be asked until it does.
                waiter.home.waker().wake_by_ref();
            }
        }
        waiter.attended = false;
        Rest::Asleep
    }

    /// A waiter is gone.
    pub(crate) fn quit(&mut self, ticket: Ticket) -> Quit {
        if let Ok(index) = self.waiting.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
            self.waiting.remove(index);
            self.disturb();
            return Quit::Place;
        }
        match self.settled.remove(&ticket) {
            Some(Settled { verdict: Ok(_), cost, .. }) => Quit::Granted(cost),
            _ => Quit::Nothing,
        }
    }

    /// Something has happened to the key: the forecasts are wrong.
    pub(crate) fn disturb(&mut self) {
        self.outdated = Moved::Anyhow;
    }

    /// `cost` is to be given back.
    pub(crate) fn owe(&mut self, cost: Cost) {
        self.owed += cost.get();
    }

    /// Whether nobody waits and nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.owed == 0
    }

    /// What to tell somebody who asks without standing in line; `None` if there is no line.
    pub(crate) fn behind(&self, now: Timestamp, cost: Cost) -> Option<Decision> {
        let end = self.end.as_ref().filter(|_| !self.waiting.is_empty())?;
        Some(end.behind(now, cost))
    }

    /// What to ask the store now; `None` if it is nobody's turn yet.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<Question> {
        if let Ok(units) = Units::new(self.owed.min(Units::MAX.get()))
            && units > Units::ZERO
        {
            self.owed -= units.get();
            return Some(Question::GiveBack(units));
        }
        let head = self.waiting.front()?;
        match head.due {
            Some(due) if due <= now => Some(Question::Serve { ticket: head.ticket, cost: head.cost }),
            Some(_) if self.outdated == Moved::No => None,
            _ => {
                self.unset = self.unset.max(self.outdated);
                self.outdated = Moved::No;
                Some(Question::Look)
            }
        }
    }

    /// Takes the store's answer in. Returns whom to wake.
    pub(crate) fn take_in(&mut self, answer: Answer) -> Vec<Waker> {
        let mut woken = Vec::new();
        match answer {
            Answer::Served { ticket, cost, at, result } => {
                if self.waiting.front().is_some_and(|head| head.ticket == ticket) {
                    self.served(at, result, &mut woken);
                } else if result.is_ok_and(|decision| decision.is_allowed()) {
                    // Nobody overtakes the head, so it gave its place up meanwhile.
                    self.owe(cost);
                }
            }
            Answer::Seen { at, result: Ok(snapshot) } => self.forecast(at, snapshot, &mut woken),
            Answer::Seen { at, result: Err(error) } => {
                self.settle_where(at, &mut woken, |waiter| match waiter.due {
                    Some(_) => Ok(()),
                    None => Err(AcquireError::Store(error.clone())),
                });
            }
            Answer::GivenBack => self.disturb(),
        }
        woken
    }

    fn served(&mut self, at: Timestamp, result: Result<Decision, StoreError>, woken: &mut Vec<Waker>) {
        let Some(mut head) = self.waiting.pop_front() else { return };
        let verdict = match result {
            Ok(decision) if decision.is_allowed() => {
                let delay = decision.delay();
                // Late only because it was asked late is not too late; a turn that has moved is.
                if !delay.is_zero() && delay > between(at, head.deadline) {
                    self.owe(head.cost);
                    Err(AcquireError::TooLate { needs: delay })
                } else {
                    if head.due.is_some_and(|due| due < at) {
                        self.outdated = self.outdated.max(Moved::Late);
                    }
                    Ok(Grant::at(at, decision))
                }
            }
            Ok(decision) if decision.outcome() == Outcome::Overloaded => Err(AcquireError::Overloaded),
            Ok(_) => {
                head.due = None;
                self.refused_at = Some(at);
                self.waiting.push_front(head);
                return self.disturb();
            }
            Err(error) => Err(AcquireError::Store(error)),
        };
        if verdict.is_err() {
            // What it does not take is there for those behind.
            self.disturb();
        }
        self.settle(at, head, verdict, woken);
    }

    /// Forecasts every turn anew.
    fn forecast(&mut self, at: Timestamp, snapshot: Snapshot, woken: &mut Vec<Waker>) {
        // A store that just refused is not asked again in the same microsecond, whatever its state looks like.
        let refused = self.refused_at.take().filter(|refused| *refused >= at);
        let from = refused.map_or(at, |refused| refused.saturating_add(tidegate_core::Wait::from_micros(1)));
        let mut end = Forecast::new(snapshot, from);
        self.settle_where(at, woken, |waiter| {
            waiter.due = Some(end.serve(at, waiter.cost, waiter.deadline)?);
            Ok(())
        });
        self.end = Some(end);
    }

    /// Goes along the line and tells those who fail `test` why.
    fn settle_where(
        &mut self,
        at: Timestamp,
        woken: &mut Vec<Waker>,
        mut test: impl FnMut(&mut Waiter) -> Result<(), AcquireError>,
    ) {
        for mut waiter in std::mem::take(&mut self.waiting) {
            match test(&mut waiter) {
                Ok(()) => self.waiting.push_back(waiter),
                Err(error) => self.settle(at, waiter, Err(error), woken),
            }
        }
    }

    /// Decides about a waiter. It is woken unless it is awake, or its own alarm is about to wake it.
    fn settle(&mut self, at: Timestamp, waiter: Waiter, verdict: Verdict, woken: &mut Vec<Waker>) {
        let Waiter { ticket, cost, .. } = waiter;
        let is_woken = waiter.attended || waiter.alarm.as_ref().is_some_and(|alarm| alarm.at() <= at);
        let _woken_by = if is_woken {
            Some(waiter)
        } else {
            woken.push(waiter.home.into_waker());
            None
        };
        self.settled.insert(ticket, Settled { verdict, cost, _woken_by });
    }

    /// Sets alarms to the forecasts, when there is nothing more to ask. Returns whom to wake instead.
    pub(crate) fn set_alarms(&mut self, clock: &dyn Clock) -> Vec<Waker> {
        let mut woken = Vec::new();
        let unset = std::mem::take(&mut self.unset);
        // The head's is looked at each time: it may have been good enough only while it was not the head.
        let looked_at = if unset == Moved::No { 1 } else { self.waiting.len() };
        for (index, waiter) in self.waiting.iter_mut().take(looked_at).enumerate() {
            let Some(due) = waiter.due.filter(|_| !waiter.attended) else { continue };
            let good_enough = |alarm: &Alarm| match unset {
                Moved::No | Moved::Late if index > 0 => alarm.at() <= due,
                _ => alarm.at() == due,
            };
            if !waiter.alarm.as_ref().is_some_and(good_enough) {
                waiter.alarm = Alarm::set_for(clock, due, &waiter.home);
                if waiter.alarm.is_none() {
                    woken.push(waiter.home.waker().clone());
                }
            }
        }
        woken
    }

    /// Who can go on with a question that is on its way: the head, and all who have no alarm that would wake
    /// them to do so.
    pub(crate) fn awaiting(&self) -> Vec<Waker> {
        let waiting = self.waiting.iter().enumerate();
        let needed = waiting.filter(|(index, waiter)| *index == 0 || waiter.alarm.is_none());
        needed.map(|(_, waiter)| waiter.home.waker().clone()).collect()
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Waiter> {
        let index = self.waiting.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()?;
        self.waiting.get_mut(index)
    }
}
