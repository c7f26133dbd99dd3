//! The future of one who waits.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tidegate_core::{Algorithm, Cost, Decision, Limit, Outcome, Timestamp, Wait};

use super::forecast::between;
use super::line::{Grant, Ticket};
use super::queue::Queue;
use crate::active::Place;
use crate::clock::Sleep;
use crate::limiter::Shared;
use crate::memory::MemoryStore;
use crate::store::{Ask, Check, Store, StoreError};

/// Why waiting came to nothing. Nothing was charged, but by a store that could not answer, which may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// No wait is long enough: the cost is above what a limit can ever hold, or what is missing never comes
    /// back.
    #[error(
        "waiting cannot help: the cost is above what a limit can hold, or the limit never refills (ask for \
         less, or raise the limit)"
    )]
    Never,
    /// It cannot be done by the deadline, those ahead in line counted.
    #[error("it would take {} us, which is past the deadline (wait longer, or ask for less)", needs.as_micros())]
    TooLate {
        /// How long it would take, from now until the work may leave, a leaky bucket's delay included.
        needs: Wait,
    },
    /// As many wait for this key already as may.
    #[error("as many wait for this key as may (raise max_waiters_per_key, or come back later)")]
    QueueFull,
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store holds as many keys as it may, and this one is new.
    #[error("the store holds as many keys as it may, and this one is new (raise max_keys)")]
    Overloaded,
}

/// Waits until a cost is admitted, and charges it once; see [`PolicyHandle::acquire`](crate::PolicyHandle::acquire).
///
/// It takes its place in line when first polled. Dropped, it gives the place up, and gives back what it was
/// granted if it was not told yet. It runs on any executor that the limiter's clock can sleep on, and its
/// place is kept while nobody polls it.
#[must_use = "nothing is waited for until this is awaited"]
pub struct Acquire<S: Store = MemoryStore> {
    shared: Arc<Shared<S>>,
    place: Place,
    key: Box<[u8]>,
    cost: Cost,
    deadline: Timestamp,
    stage: Stage,
}

enum Stage {
    New,
    /// Nobody stood in line, so it went right up to the store.
    Asking {
        at: Timestamp,
        answer: Pin<Box<dyn Future<Output = Result<Decision, StoreError>> + Send>>,
    },
    Queued {
        queue: Arc<Queue>,
        ticket: Ticket,
    },
    /// Admitted; a leaky bucket lets its work leave later.
    Leaving {
        decision: Box<Decision>,
        sleep: Sleep,
    },
    Over,
}

/// Another stage, or the end.
type Next = ControlFlow<Result<Decision, AcquireError>, Stage>;

impl<S: Store> Acquire<S> {
    /// Whether it waits for its turn, or for a leaky bucket to let its work leave, and not for a store's first answer.
    ///
    /// Somebody who holds something else meanwhile may want to put that down.
    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Queued { .. } | Stage::Leaving { .. })
    }

    pub(crate) fn new(
        shared: Arc<Shared<S>>,
        place: Place,
        key: &[u8],
        cost: Cost,
        deadline: Timestamp,
    ) -> Self {
        Acquire { shared, place, key: key.into(), cost, deadline, stage: Stage::New }
    }

    fn begin(&self, context: &Context<'_>) -> Next {
        let now = self.shared.clock.now();
        let policy = self.place.load();
        // Past the deadline, behind others, or where it may be admitted only to leave too late: it is for the
        // line to say, which can tell without charging. A cost of nothing is charged nothing and holds nobody up.
        let has_delay = |limit: &Limit| limit.algorithm() == Algorithm::LeakyBucket;
        let may_leave_too_late =
            || self.deadline < Timestamp::MAX && policy.plan_for(&self.key).1.limits().iter().any(has_delay);
        let is_line = || self.shared.waiting.find(policy.number(), &self.key).is_some();
        if now > self.deadline || !self.cost.is_peek() && (may_leave_too_late() || is_line()) {
            return self.join(context);
        }
        let check = Check { policy: &policy, key: &self.key, ask: Ask::Exactly(self.cost) };
        let answer = self.shared.store.check_one(now, check);
        Continue(Stage::Asking { at: now, answer: Box::pin(S::settled(answer)) })
    }

    fn join(&self, context: &Context<'_>) -> Next {
        match self.shared.join(&self.place, &self.key, (self.cost, self.deadline), context) {
            Ok((queue, ticket)) => Continue(Stage::Queued { queue, ticket }),
            Err(error) => Break(Err(error)),
        }
    }

    /// Goes on with the answer to what was asked at `at`, past no line.
    fn answered(&self, at: Timestamp, decision: Decision, context: &Context<'_>) -> Next {
        let is_too_late = |needs: Wait| needs > between(at, self.deadline);
        match (decision.outcome(), decision.retry_after()) {
            (Outcome::Allowed, _) if is_too_late(decision.delay()) => {
                // It costs nothing, or the policy has got its delay this very moment.
                self.shared.give_back(&self.place, &self.key, self.cost);
                Break(Err(AcquireError::TooLate { needs: decision.delay() }))
            }
            (Outcome::Allowed, _) => self.leave(Grant::at(at, decision)),
            (Outcome::Overloaded, _) => Break(Err(AcquireError::Overloaded)),
            (_, None) => Break(Err(AcquireError::Never)),
            // There is no delay to be added: what has a deadline and a delay stands in line.
            (_, Some(needs)) if is_too_late(needs) && !self.cost.is_peek() => {
                Break(Err(AcquireError::TooLate { needs }))
            }
            _ => self.join(context),
        }
    }

    fn leave(&self, Grant { decision, leaves }: Grant) -> Next {
        if decision.delay().is_zero() {
            return Break(Ok(decision));
        }
        let sleep = self.shared.clock.sleep_until(leaves);
        Continue(Stage::Leaving { decision: Box::new(decision), sleep })
    }
}

impl<S: Store> Future for Acquire<S> {
    type Output = Result<Decision, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let next = match &mut this.stage {
                Stage::New => this.begin(context),
                Stage::Asking { at, answer } => match (*at, ready!(answer.as_mut().poll(context))) {
                    (at, Ok(decision)) => this.answered(at, decision, context),
                    (_, Err(error)) => Break(Err(error.into())),
                },
                Stage::Queued { queue, ticket } => {
                    match ready!(this.shared.poll_ticket(queue, *ticket, context)) {
                        Ok(grant) => this.leave(grant),
                        Err(error) => Break(Err(error)),
                    }
                }
                Stage::Leaving { decision, sleep } => {
                    ready!(sleep.as_mut().poll(context));
                    Break(Ok(**decision))
                }
                Stage::Over => panic!("an Acquire was polled after it had ended"),
            };
            match next {
                Continue(stage) => this.stage = stage,
                Break(result) => {
                    this.stage = Stage::Over;
                    return Poll::Ready(result);
                }
            }
        }
    }
}

impl<S: Store> Drop for Acquire<S> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Queued { queue, ticket } => self.shared.quit(&queue, ticket),
            Stage::Leaving { .. } => self.shared.give_back(&self.place, &self.key, self.cost),
            Stage::New | Stage::Asking { .. } | Stage::Over => {}
        }
    }
}

impl<S: Store> fmt::Debug for Acquire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("cost", &self.cost)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
