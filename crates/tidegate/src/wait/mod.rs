//! Waiting for a turn: first come, first served, for each key of each policy.
//!
//! From the inside out: a [`forecast::Forecast`] tells when it will be whose turn; a [`line::Line`] is the order,
//! and says what to ask the store next; a [`queue::Queue`] puts that to the store, in turns of whoever comes by;
//! this module finds the queue of a key; [`Acquire`] is the future that callers hold.
//!
//! There is no task and no thread behind it. A waiter's task is woken by its own alarm at the instant its
//! turn is forecast for, and serves the head of the line on its way, whoever that is. Whatever moves the line
//! otherwise (a waiter gone, a credit, a penalty, a reload) forecasts anew and sets the alarms of those who
//! sleep on.

mod acquire;
mod alarm;
mod forecast;
mod line;
#[cfg(test)]
mod model;
mod queue;
mod sync;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tidegate_core::{Cost, Decision, Timestamp};

use crate::active::{Place, PolicyNumber};
use crate::limiter::Shared;
use crate::store::{Ask, Store};
pub use acquire::{Acquire, AcquireError};
use alarm::Home;
use line::{Quit, Rest, Ticket, Verdict};
use queue::{Queue, Turn};
use sync::Mutex;

/// Locks over the queues: two keys seldom share one.
const SHARDS: usize = 64;

/// The queues of a limiter; a key nobody waits for has none.
pub(crate) struct Waiting {
    /// Queues there are, so that nobody looks for one while there is none.
    queues: AtomicUsize,
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    most: usize,
}

/// By key, and then by policy: few keys are waited for under several.
type Shard = HashMap<Box<[u8]>, Vec<Arc<Queue>>>;

impl Waiting {
    /// Waiters for one key of one policy unless said otherwise.
    pub(crate) const MOST: usize = 1_024;

    pub(crate) fn new(most: usize) -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Waiting { queues: AtomicUsize::new(0), shards, hasher: RandomState::new(), most: most.max(1) }
    }

    /// Whether nobody waits for anything.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // It need not order anything else: whoever knows of a waiter sees at least that it joined, for one word
        // is never seen older than it is known to be, and the rest is read under locks.
        self.queues.load(Ordering::Relaxed) == 0
    }

    fn shard(&self, key: &[u8]) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    fn find(&self, number: PolicyNumber, key: &[u8]) -> Option<Arc<Queue>> {
        if self.is_idle() {
            return None;
        }
        find_in(&self.shard(key).lock(), number, key).cloned()
    }

    /// Runs `act` on the queue of a key, there before or not, that nobody removes meanwhile.
    fn with_queue<R>(
        &self,
        number: PolicyNumber,
        place: &Place,
        key: &[u8],
        act: impl FnOnce(&mut queue::State) -> R,
    ) -> (Arc<Queue>, R) {
        let mut shard = self.shard(key).lock();
        let queue = match find_in(&shard, number, key) {
            Some(queue) => Arc::clone(queue),
            None => {
                let queue = Arc::new(Queue::new(number, Arc::clone(place), key));
                shard.entry(key.into()).or_default().push(Arc::clone(&queue));
                self.queues.fetch_add(1, Ordering::Relaxed);
                queue
            }
        };
        let done = act(&mut queue.lock());
        (queue, done)
    }

    /// Removes a queue that nobody waits in.
    fn remove_if_over(&self, queue: &Arc<Queue>) {
        if !queue.lock().is_over() {
            return;
        }
        let mut shard = self.shard(&queue.key).lock();
        let abandoned = {
            let mut state = queue.lock();
            if !state.is_over() {
                return;
            }
            state.abandon()
        };
        if let Some(queues) = shard.get_mut(&queue.key)
            && let Some(found) = queues.iter().position(|other| Arc::ptr_eq(other, queue))
        {
            queues.swap_remove(found);
            if queues.is_empty() {
                shard.remove(&queue.key);
            }
            self.queues.fetch_sub(1, Ordering::Relaxed);
        }
        drop(shard);
        drop(abandoned);
    }
}

fn find_in<'a>(shard: &'a Shard, number: PolicyNumber, key: &[u8]) -> Option<&'a Arc<Queue>> {
    shard.get(key)?.iter().find(|queue| queue.number == number)
}

impl<S: Store> Shared<S> {
    /// Joins the end of a key's line.
    fn join(
        &self,
        place: &Place,
        key: &[u8],
        (cost, deadline): (Cost, Timestamp),
        context: &Context<'_>,
    ) -> Result<(Arc<Queue>, Ticket), AcquireError> {
        let number = place.load().number();
        let (now, home, most) = (self.clock.now(), Home::of(context), self.waiting.most);
        let join = |state: &mut queue::State| state.line.join(now, cost, deadline, home, most);
        let (queue, ticket) = self.waiting.with_queue(number, place, key, join);
        Ok((queue, ticket?))
    }

    /// Polls somebody's place in a line.
    fn poll_ticket(&self, queue: &Arc<Queue>, ticket: Ticket, context: &mut Context<'_>) -> Poll<Verdict> {
        loop {
            let mut home = Home::of(context);
            if let Some(verdict) = queue.lock().line.attend(ticket, &mut home, context) {
                return Poll::Ready(verdict);
            }
            self.move_on(queue);
            let mut state = queue.lock();
            let is_busy = state.is_busy();
            match state.line.rest(ticket, &*self.clock, is_busy) {
                Rest::Settled(verdict) => return Poll::Ready(verdict),
                Rest::Asleep => return Poll::Pending,
                Rest::Due => {}
            }
        }
    }

    /// Gives a place in a line up, and what was granted there.
    fn quit(&self, queue: &Arc<Queue>, ticket: Ticket) {
        let quit = queue.lock().line.quit(ticket);
        match quit {
            Quit::Place => self.move_on(queue),
            Quit::Granted(cost) => self.give_back(&queue.place, &queue.key, cost),
            Quit::Nothing => {}
        }
    }

    /// Gives back what was charged for somebody who is gone. With a store that does I/O this is begun, and
    /// finished only if somebody waits for the key.
    fn give_back(&self, place: &Place, key: &[u8], cost: Cost) {
        if cost.is_peek() {
            return;
        }
        let number = place.load().number();
        let (queue, ()) = self.waiting.with_queue(number, place, key, |state| state.line.owe(cost));
        self.move_on(&queue);
    }

    /// Serves those in a line whose turn it is, and sees to it that the others are woken at theirs.
    fn move_on(&self, queue: &Arc<Queue>) {
        if let Some(turn) = Turn::take(queue) {
            turn.run(self);
            self.waiting.remove_if_over(queue);
        }
    }

    /// The answer to a check that finds others waiting in line; `None` if it does not.
    #[cold]
    pub(crate) fn behind_waiters(
        &self,
        number: PolicyNumber,
        key: &[u8],
        ask: Ask,
        now: Timestamp,
    ) -> Option<Decision> {
        let cost = match ask {
            Ask::Exactly(cost) => cost,
            Ask::UpTo(max) => max.min(Cost::ONE),
        };
        if cost.is_peek() {
            return None;
        }
        let queue = self.waiting.find(number, key)?;
        self.move_on(&queue);
        queue.lock().line.behind(now, cost)
    }

    /// Something was done to a key other than checks: whoever waits for it may be served earlier or later.
    pub(crate) fn disturb(&self, number: PolicyNumber, key: &[u8]) {
        if let Some(queue) = self.waiting.find(number, key) {
            queue.lock().line.disturb();
            self.move_on(&queue);
        }
    }

    /// Other policies are in force.
    pub(crate) fn disturb_all(&self) {
        // Not asked whether it is idle: whoever joins after a shard was seen here sees the policies now in force.
        for shard in &self.waiting.shards {
            let queues: Vec<Arc<Queue>> = shard.lock().values().flatten().cloned().collect();
            for queue in queues {
                queue.lock().line.disturb();
                self.move_on(&queue);
            }
        }
    }
}

/// The example of the page about waiting.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/waiting.md")]
pub struct Page;

#[cfg(test)]
mod tests;
