//! A line behind a lock, and the turns in which somebody moves it on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tidegate_core::Timestamp;

use super::line::{Answer, Line, Question};
use super::sync::{Mutex, MutexGuard};
use crate::active::{Place, PolicyNumber};
use crate::limiter::Shared;
use crate::store::{Adjustment, Ask, Check, Store};

/// Those who wait for one key of one policy.
///
/// Nobody in particular moves a line on: whoever comes by at the right moment does, on everybody's behalf. So
/// a question to a store that does I/O is kept here, where any of them can go on with it.
pub(crate) struct Queue {
    pub(super) number: PolicyNumber,
    pub(super) place: Place,
    pub(super) key: Box<[u8]>,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) line: Line,
    drive: Drive,
}

/// Who moves the line on.
#[derive(Default)]
pub(super) enum Drive {
    #[default]
    Nobody,
    /// Somebody is at it; `again` says that somebody else came by meanwhile.
    Somebody { again: bool },
    /// Nobody, until the store's answer to this is there.
    Parked(Asking),
}

/// A question on its way.
type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Queue {
    pub(super) fn new(number: PolicyNumber, place: Place, key: &[u8]) -> Self {
        Queue { number, place, key: key.into(), state: Mutex::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Puts a question to the store.
    fn ask<S: Store>(&self, shared: &Shared<S>, question: Question, at: Timestamp) -> Asking {
        let (policy, store) = (self.place.load_full(), &shared.store);
        match question {
            Question::Serve { ticket, cost } => {
                let check = Check { policy: &policy, key: &self.key, ask: Ask::Exactly(cost) };
                let settled = S::settled(store.check_one(at, check));
                Box::pin(async move { Answer::Served { ticket, cost, at, result: settled.await } })
            }
            Question::Look => {
                let settled = S::settled(store.snapshot(at, &policy, &self.key));
                Box::pin(async move { Answer::Seen { at, result: settled.await } })
            }
            Question::GiveBack(units) => {
                let settled = S::settled(store.adjust(at, &policy, &self.key, Adjustment::Credit(units)));
                Box::pin(async move {
                    // A store that cannot take it back has it charged: the stated failure of a store.
                    let _ = settled.await;
                    Answer::GivenBack
                })
            }
        }
    }
}

impl State {
    /// Whether a question is being asked or is on its way.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.drive, Drive::Nobody)
    }

    /// Whether nobody waits and nobody is at work. A question still on its way is on behalf of nobody.
    pub(super) fn is_over(&self) -> bool {
        self.line.is_over() && !matches!(self.drive, Drive::Somebody { .. })
    }

    /// Gives up a question on its way: to be dropped without the lock.
    pub(super) fn abandon(&mut self) -> Drive {
        std::mem::take(&mut self.drive)
    }
}

/// A turn at moving a line on; nobody else has one meanwhile. A panic in it lets the next one in.
pub(super) struct Turn<'a> {
    queue: &'a Arc<Queue>,
    parked: Option<Asking>,
    is_over: bool,
}

impl<'a> Turn<'a> {
    /// Takes the turn, or tells whoever has it that there may be more to do.
    pub(super) fn take(queue: &'a Arc<Queue>) -> Option<Self> {
        let mut state = queue.lock();
        match std::mem::replace(&mut state.drive, Drive::Somebody { again: false }) {
            Drive::Nobody => Some(Turn { queue, parked: None, is_over: false }),
            Drive::Parked(asking) => Some(Turn { queue, parked: Some(asking), is_over: false }),
            Drive::Somebody { .. } => {
                state.drive = Drive::Somebody { again: true };
                None
            }
        }
    }

    /// Moves the line as far as it goes: until it is nobody's turn, or the store has yet to answer.
    pub(super) fn run<S: Store>(mut self, shared: &Shared<S>) {
        let waker = Waker::from(Arc::clone(self.queue));
        let mut context = Context::from_waker(&waker);
        while let Some(mut asking) = self.next(shared) {
            match asking.as_mut().poll(&mut context) {
                Poll::Ready(answer) => {
                    let woken = self.queue.lock().line.take_in(answer);
                    woken.into_iter().for_each(Waker::wake);
                }
                Poll::Pending => self.park(asking),
            }
        }
    }

    fn next<S: Store>(&mut self, shared: &Shared<S>) -> Option<Asking> {
        if self.is_over {
            return None;
        }
        if let Some(parked) = self.parked.take() {
            return Some(parked);
        }
        let mut state = self.queue.lock();
        // Read under the lock: not earlier than what anybody read who has seen this turn taken.
        let now = shared.clock.now();
        if let Some(question) = state.line.next(now) {
            drop(state);
            return Some(self.queue.ask(shared, question, now));
        }
        let woken = state.line.set_alarms(&*shared.clock);
        state.drive = Drive::Nobody;
        self.is_over = true;
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        None
    }

    /// Leaves a question to be gone on with by whoever is woken by its answer or comes by before.
    fn park(&mut self, asking: Asking) {
        let mut state = self.queue.lock();
        match state.drive {
            // It may have been the answer that brought them.
            Drive::Somebody { again: true } => {
                state.drive = Drive::Somebody { again: false };
                self.parked = Some(asking);
            }
            _ => {
                state.drive = Drive::Parked(asking);
                self.is_over = true;
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.lock().drive = Drive::Nobody;
        }
    }
}

/// Woken by a store: its answer is there.
impl Wake for Queue {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = self.lock().line.awaiting();
        woken.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("number", &self.number).finish_non_exhaustive()
    }
}
