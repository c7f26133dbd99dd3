//! What is paid before bytes may pass: all of one or several policies have to admit them.

use std::task::{Context, Poll, Waker, ready};

use tidegate::AcquireError;
use tidegate::store::Store;

use super::gate::{Gate, Refund};

/// The toll on one direction of one connection.
///
/// Bytes are charged under each policy at the instant they pass, or a policy's bound on any span of time would
/// not be one on the bytes. So while one of the gates has to be waited for, the others are let go, and asked
/// again after it. The one that was waited for last is asked first, so that this is the exception: whoever is
/// slowest stays so.
pub(super) struct Toll<S: Store> {
    gates: Vec<Gate<S>>,
    /// Which gate is asked first.
    first: usize,
    /// The most to be paid for at once.
    chunk: u32,
    bill: Option<Bill>,
    /// What was left of a burst after the last payment, if that did not have to wait.
    left: Option<u64>,
    refunds: Vec<Refund>,
}

#[derive(Clone, Copy)]
struct Bill {
    amount: u32,
    has_waited: bool,
}

impl<S: Store> Toll<S> {
    /// Of the size of the buffers most programs copy with, or twice that.
    const CHUNK: u32 = 16 * 1_024;

    pub(super) fn new(gate: Gate<S>) -> Self {
        let (gates, refunds) = (vec![gate], Vec::new());
        Toll { gates, first: 0, chunk: Self::CHUNK, bill: None, left: None, refunds }
    }

    pub(super) fn push(&mut self, gate: Gate<S>) {
        self.gates.push(gate);
    }

    pub(super) fn set_chunk(&mut self, bytes: usize) {
        self.chunk = u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
    }

    /// The most to be paid for at once under the figures now in force: half a bucket, so that one that is full
    /// of a chunk can go on filling while whoever pays is late.
    fn most(&self) -> u32 {
        let capacity = self.gates.iter().map(Gate::capacity).min().unwrap_or(u64::MAX);
        let half = u32::try_from(capacity / 2).unwrap_or(u32::MAX);
        self.chunk.min(half).max(1)
    }

    /// How many bytes, of `wanted`, had best be paid for next: a chunk; in a burst, no more than what is left
    /// of it.
    pub(super) fn portion(&self, wanted: usize) -> usize {
        let most = match self.left {
            Some(left @ 1..) => u64::from(self.most()).min(left),
            _ => self.most().into(),
        };
        usize::try_from(most).unwrap_or(usize::MAX).min(wanted)
    }

    /// Waits until `wanted` bytes may pass, or a part of them, or what a call before this one has begun to pay
    /// for. Returns how many, which are charged.
    pub(super) fn poll_pay(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, AcquireError>> {
        let mut bill = match self.bill {
            Some(bill) => {
                self.go_on_refunding(context);
                bill
            }
            None => {
                // What is owed to the store comes first, so that it does not pile up.
                ready!(self.poll_refunds(context));
                self.new_bill(wanted)
            }
        };
        loop {
            match ready!(self.poll_gates(bill.amount, context)) {
                Ok(()) => return Poll::Ready(Ok(self.settle())),
                // The figures were changed meanwhile: less may still do.
                Err(AcquireError::Never) if bill.amount > self.most() => {
                    self.give_up(context);
                    bill = self.new_bill(bill.amount as usize);
                }
                Err(error) => {
                    self.give_up(context);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn new_bill(&mut self, wanted: usize) -> Bill {
        let amount = self.most().min(u32::try_from(wanted).unwrap_or(u32::MAX));
        *self.bill.insert(Bill { amount, has_waited: false })
    }

    fn poll_gates(&mut self, amount: u32, context: &mut Context<'_>) -> Poll<Result<(), AcquireError>> {
        let (first, many) = (self.first, self.gates.len());
        for index in (first..many).chain(0..first) {
            let opened = self.gates[index].poll_open(amount, context);
            if opened.is_pending() && self.gates[index].is_waited_for() {
                self.wait_for(index, amount, context);
            }
            ready!(opened)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Holds nothing of the other gates' while waiting for this one.
    fn wait_for(&mut self, index: usize, amount: u32, context: &mut Context<'_>) {
        self.first = index;
        if let Some(bill) = &mut self.bill {
            bill.has_waited = true;
        }
        self.refunds.extend(self.gates.iter_mut().filter_map(|gate| gate.let_go_once(amount)));
        self.go_on_refunding(context);
    }

    /// All gates are open: whatever was billed may pass.
    fn settle(&mut self) -> usize {
        let left = self.gates.iter_mut().filter_map(Gate::pass).min();
        let bill = self.bill.take();
        self.left = left.filter(|_| bill.is_some_and(|bill| !bill.has_waited));
        bill.map_or(0, |bill| bill.amount as usize)
    }

    /// Gives back what was paid for `bytes` that did not pass after all.
    pub(super) fn give_back(&mut self, bytes: usize, context: &mut Context<'_>) {
        let amount = u32::try_from(bytes).unwrap_or(u32::MAX);
        if amount > 0 {
            self.left = self.left.map(|left| left.saturating_add(amount.into()));
            self.refunds.extend(self.gates.iter().map(|gate| gate.refund(amount)));
            self.go_on_refunding(context);
        }
    }

    /// Gives up what is being paid for, if anything.
    pub(super) fn give_up(&mut self, context: &mut Context<'_>) {
        if let Some(Bill { amount, .. }) = self.bill.take() {
            self.refunds.extend(self.gates.iter_mut().filter_map(|gate| gate.give_up(amount)));
            self.go_on_refunding(context);
        }
    }

    /// Goes on with what is on its way back to a store that takes its time.
    pub(super) fn go_on_refunding(&mut self, context: &mut Context<'_>) {
        self.refunds.retain_mut(|refund| refund.as_mut().poll(context).is_pending());
    }

    fn poll_refunds(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.go_on_refunding(context);
        if self.refunds.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<S: Store> Drop for Toll<S> {
    /// With a store that does I/O, giving back is only begun.
    fn drop(&mut self) {
        self.give_up(&mut Context::from_waker(Waker::noop()));
    }
}
