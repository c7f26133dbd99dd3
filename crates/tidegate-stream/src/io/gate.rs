//! One policy that has to admit bytes under one key.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tidegate::store::Store;
use tidegate::{Acquire, AcquireError, PolicyHandle, Units};

pub(super) struct Gate<S: Store> {
    handle: PolicyHandle<S>,
    key: Box<[u8]>,
    stage: Stage<S>,
    /// Whether it was let go once for the present payment.
    was_let_go: bool,
}

enum Stage<S: Store> {
    NotAsked,
    /// In a box, so that a connection on which nothing happens is small.
    Asking(Box<Acquire<S>>),
    /// Admitted and charged, with so much left.
    Open(u64),
}

/// Something on its way back to a store.
pub(super) type Refund = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<S: Store> Gate<S> {
    pub(super) fn new(handle: PolicyHandle<S>, key: &[u8]) -> Self {
        Gate { handle, key: key.into(), stage: Stage::NotAsked, was_let_go: false }
    }

    /// The most it could ever admit at once, under the figures now in force.
    pub(super) fn capacity(&self) -> u64 {
        let policy = self.handle.policy();
        let limits = policy.plan_for(&self.key).limits().iter();
        limits.map(|limit| limit.capacity().get()).min().unwrap_or(u64::MAX)
    }

    /// Waits until it has admitted `amount`, and charged it.
    pub(super) fn poll_open(
        &mut self,
        amount: u32,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), AcquireError>> {
        let asked = match &mut self.stage {
            Stage::Open(_) => return Poll::Ready(Ok(())),
            Stage::Asking(turn) => ready!(Pin::new(turn).poll(context)),
            Stage::NotAsked => {
                let mut turn = self.handle.acquire(&self.key, amount);
                let asked = Pin::new(&mut turn).poll(context);
                if asked.is_pending() {
                    self.stage = Stage::Asking(Box::new(turn));
                }
                ready!(asked)
            }
        };
        self.stage = Stage::NotAsked;
        self.stage = Stage::Open(asked?.remaining());
        Poll::Ready(Ok(()))
    }

    /// Whether it keeps its caller waiting, and not only until its store has answered.
    pub(super) fn is_waited_for(&self) -> bool {
        matches!(&self.stage, Stage::Asking(turn) if turn.is_waiting())
    }

    /// Begins a new payment. Returns what is left, if it had admitted the last one.
    pub(super) fn pass(&mut self) -> Option<u64> {
        self.was_let_go = false;
        match std::mem::replace(&mut self.stage, Stage::NotAsked) {
            Stage::Open(remaining) => Some(remaining),
            Stage::NotAsked | Stage::Asking(_) => None,
        }
    }

    /// Gives `amount` back if it was charged; it is to be asked for again. Only once in a payment: two
    /// connections that share two keys could let each other go first for ever.
    pub(super) fn let_go_once(&mut self, amount: u32) -> Option<Refund> {
        if self.was_let_go || !matches!(self.stage, Stage::Open(_)) {
            return None;
        }
        self.stage = Stage::NotAsked;
        self.was_let_go = true;
        Some(self.refund(amount))
    }

    /// Gives the present payment up, with the place in line if there is one.
    pub(super) fn give_up(&mut self, amount: u32) -> Option<Refund> {
        self.pass().map(|_| self.refund(amount))
    }

    /// Gives `amount` back.
    pub(super) fn refund(&self, amount: u32) -> Refund {
        let settled = S::settled(self.handle.credit(&self.key, Units::from(amount)));
        Box::pin(async move {
            // A store that cannot take it back has it charged: the stated failure of a store.
            let _ = settled.await;
        })
    }
}
