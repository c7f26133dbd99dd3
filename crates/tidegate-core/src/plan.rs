//! A plan: one to eight limits checked together, all or nothing.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::decision::{Decision, MAX_LIMITS};
use crate::figures::{LimitDecision, Taken, Verdict};
use crate::hold::{AllHeld, Held};
use crate::limit::{Limit, Shape};
use crate::quantity::{Cost, Timestamp, Units, Wait};
use crate::state::Cells;

/// One to eight limits, checked together: admitted if every limit admits, and then all are charged; otherwise
/// none is.
///
/// ```
/// use tidegate_core::{Cost, KeyState, Limit, Period, Plan, Rate, Timestamp};
/// let plan = Plan::new([
///     Limit::token_bucket(5, Rate::new(5, Period::from_secs(10)?)),
///     Limit::fixed_window(3, Period::DAY),
/// ])?;
/// let mut key = KeyState::new(&plan);
/// for _ in 0..3 {
///     assert!(plan.check(&mut key, Timestamp::EPOCH, Cost::ONE).is_allowed());
/// }
/// let refused = plan.check(&mut key, Timestamp::EPOCH, Cost::ONE);
/// assert_eq!(refused.bound_by(), 1);
/// assert_eq!(refused.limits()[0].remaining(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    limits: Box<[Limit]>,
    packed_words: usize,
}

/// A plan has to have one to eight limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanError {
    limits: usize,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} limits: a policy has one to {MAX_LIMITS} limits", self.limits)
    }
}

impl core::error::Error for PlanError {}

/// What a forced charge did.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Penalty {
    /// The key as a peek finds it afterwards.
    pub after: Decision,
    /// For each limit, what of the charge was cut because it would have exceeded the debt allowed.
    cuts: [u64; MAX_LIMITS],
}

impl Penalty {
    /// Nothing was charged and nothing cut; the key stands as `after` says.
    pub fn nothing(after: Decision) -> Self {
        Penalty { after, cuts: [0; MAX_LIMITS] }
    }

    /// For each limit, what of the charge was cut because it would have exceeded the debt allowed.
    pub fn cuts(&self) -> &[u64] {
        &self.cuts[..self.after.limits().len()]
    }
}

impl Plan {
    /// A plan of `limits`, in this order.
    ///
    /// # Errors
    /// None, or more than eight.
    pub fn new(limits: impl IntoIterator<Item = Limit>) -> Result<Self, PlanError> {
        let limits: Vec<Limit> = limits.into_iter().collect();
        match limits.len() {
            1..=MAX_LIMITS => Ok(Self::of(limits.into_boxed_slice())),
            other => Err(PlanError { limits: other }),
        }
    }

    /// A plan of one limit.
    pub fn single(limit: Limit) -> Self {
        Self::of(Box::new([limit]))
    }

    fn of(limits: Box<[Limit]>) -> Self {
        let packed_words = 1 + limits.iter().map(Limit::packed_words).sum::<usize>();
        Plan { limits, packed_words }
    }

    /// The limits, in order.
    #[inline]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Words the compact encoding of a key's state takes: the stamp's and each limit's.
    #[inline]
    pub fn packed_words(&self) -> usize {
        self.packed_words
    }

    /// Decides one check at `now`, or at the key's last charge if that is later, and charges it if admitted.
    #[inline(always)]
    pub fn check(&self, cells: &mut impl Cells, now: Timestamp, cost: Cost) -> Decision {
        self.check_then(cells, now, cost, |decision| decision)
    }

    /// As [`check`](Self::check), with the decision put where it is wanted by `put`: it has room for eight limits,
    /// and is better written once than moved about.
    #[inline(always)]
    pub fn check_then<R>(
        &self,
        cells: &mut impl Cells,
        now: Timestamp,
        cost: Cost,
        put: impl FnOnce(Decision) -> R,
    ) -> R {
        let at = now.max(cells.last());
        match &*self.limits {
            // A lone bucket is the usual case.
            [limit] if matches!(limit.shape, Shape::Bucket(_)) => {
                put(Decision::from(check_one(limit, cells, at, cost.get())))
            }
            _ => put(self.check_any(cells, at, cost.get())),
        }
    }

    #[inline(never)]
    fn check_any(&self, cells: &mut impl Cells, at: Timestamp, cost: u64) -> Decision {
        match &*self.limits {
            [limit] => Decision::from(check_one(limit, cells, at, cost)),
            _ => self.check_many(cells, at, cost),
        }
    }

    /// What a check of cost 0 finds: it changes nothing.
    pub fn peek(&self, cells: &impl Cells, now: Timestamp) -> Decision {
        self.foresee(cells, now, Cost::PEEK)
    }

    /// What a check of `cost` at `now` would decide, without charging it: the figures are those before a charge.
    pub fn foresee(&self, cells: &impl Cells, now: Timestamp, cost: Cost) -> Decision {
        let at = now.max(cells.last());
        let held = self.hold(cells, at);
        let verdicts = self.verdicts(&held, at, cost.get());
        let taken = if self.all_fit(&verdicts) { Taken::Foreseen } else { Taken::Nothing };
        self.decision(cells, at, &held, &verdicts, cost.get(), taken)
    }

    /// Takes as much as there is, at most `max`: as a check of that cost, or a refused one of cost 1.
    pub fn check_up_to(&self, cells: &mut impl Cells, now: Timestamp, max: Cost) -> Decision {
        let at = now.max(cells.last());
        let held = self.hold(cells, at);
        let rooms = self.limits.iter().zip(&held).map(|(limit, held)| limit.room(*held, at));
        let room = rooms.min().unwrap_or(0);
        let least = u64::from(!max.is_peek());
        // At most `max`, so in range.
        let cost = Cost::new(room.min(max.get()).max(least)).unwrap_or(max);
        self.check(cells, now, cost)
    }

    /// Gives `units` back to every limit, none past its capacity or below an empty window.
    pub fn credit(&self, cells: &mut impl Cells, now: Timestamp, units: Units) -> Penalty {
        self.change(cells, now, units, |limit, held, _| (limit.credit(held, units.get()), 0))
    }

    /// Charges `units` to every limit whether they fit or not, down to the debt each allows.
    pub fn penalize(&self, cells: &mut impl Cells, now: Timestamp, units: Units) -> Penalty {
        self.change(cells, now, units, |limit, held, at| limit.force(held, at, units.get()))
    }

    /// Time from `now` until every limit is as new; `None` if one never will be.
    pub fn as_new_after(&self, cells: &impl Cells, now: Timestamp) -> Option<Wait> {
        let at = now.max(cells.last());
        self.limits.iter().enumerate().try_fold(Wait::ZERO, |most, (index, limit)| {
            let held = limit.hold(cells.load(index, limit), cells.last(), at);
            Some(most.max(limit.as_new_after(held, limit.log_in(cells, index), at)?))
        })
    }

    /// No key takes longer than this to be as new after its last charge, whatever it was charged; `None` if one may
    /// never be.
    ///
    /// ```
    /// use tidegate_core::{Limit, Plan, Rate};
    /// let plan = Plan::single(Limit::token_bucket(10, Rate::per_second(1)));
    /// // From ten in debt to ten at hand.
    /// assert_eq!(plan.as_new_within().unwrap().as_secs_ceil(), 20);
    /// ```
    pub fn as_new_within(&self) -> Option<Wait> {
        self.limits.iter().try_fold(Wait::ZERO, |most, limit| Some(most.max(limit.as_new_within()?)))
    }

    fn change(
        &self,
        cells: &mut impl Cells,
        now: Timestamp,
        units: Units,
        change: impl Fn(&Limit, Held, Timestamp) -> (Held, u64),
    ) -> Penalty {
        let at = now.max(cells.last());
        let mut cuts = [0; MAX_LIMITS];
        if units > Units::ZERO {
            let held = self.hold(cells, at);
            for (index, limit) in self.limits.iter().enumerate() {
                let (changed, cut) = change(limit, held[index], at);
                limit.keep(index, held[index], changed, at, cells);
                cuts[index] = cut;
            }
            cells.set_last(at);
        }
        Penalty { after: self.peek(cells, at), cuts }
    }

    fn check_many(&self, cells: &mut impl Cells, at: Timestamp, cost: u64) -> Decision {
        let mut held = self.hold(cells, at);
        let verdicts = self.verdicts(&held, at, cost);
        let admitted = self.all_fit(&verdicts);
        if admitted && cost > 0 {
            for (index, limit) in self.limits.iter().enumerate() {
                let after = limit.charge(held[index], cost);
                limit.keep(index, held[index], after, at, cells);
                held[index] = after;
            }
            cells.set_last(at);
        }
        let taken = if admitted { Taken::Charged } else { Taken::Nothing };
        self.decision(cells, at, &held, &verdicts, cost, taken)
    }

    fn hold(&self, cells: &impl Cells, at: Timestamp) -> AllHeld {
        let mut held = [Held::Fixed(0); MAX_LIMITS];
        for (index, (limit, slot)) in self.limits.iter().zip(&mut held).enumerate() {
            *slot = limit.hold(cells.load(index, limit), cells.last(), at);
        }
        held
    }

    fn verdicts(&self, held: &AllHeld, at: Timestamp, cost: u64) -> [Verdict; MAX_LIMITS] {
        let mut verdicts = [Verdict::Short; MAX_LIMITS];
        for (index, limit) in self.limits.iter().enumerate() {
            verdicts[index] = limit.verdict(held[index], at, cost);
        }
        verdicts
    }

    fn all_fit(&self, verdicts: &[Verdict; MAX_LIMITS]) -> bool {
        verdicts[..self.limits.len()].iter().all(|verdict| *verdict == Verdict::Fits)
    }

    fn decision(
        &self,
        cells: &impl Cells,
        at: Timestamp,
        held: &AllHeld,
        verdicts: &[Verdict; MAX_LIMITS],
        asked: u64,
        taken: Taken,
    ) -> Decision {
        let decide = |index: usize| {
            let limit = &self.limits[index];
            limit.decided(held[index], limit.log_in(cells, index), at, verdicts[index], asked, taken)
        };
        if self.limits.len() == 1 {
            return Decision::from(decide(0));
        }
        let mut limits = [decide(0); MAX_LIMITS];
        for (index, slot) in limits.iter_mut().enumerate().take(self.limits.len()).skip(1) {
            *slot = decide(index);
        }
        Decision::of_many(self.limits.len(), limits)
    }
}

/// [`Plan::check`] of a single limit, with nothing in arrays.
#[inline(always)]
fn check_one(limit: &Limit, cells: &mut impl Cells, at: Timestamp, cost: u64) -> LimitDecision {
    let held = limit.hold(cells.load(0, limit), cells.last(), at);
    let verdict = limit.verdict(held, at, cost);
    if verdict != Verdict::Fits {
        return limit.decided(held, limit.log_in(cells, 0), at, verdict, cost, Taken::Nothing);
    }
    let after = limit.charge(held, cost);
    if cost > 0 {
        limit.keep(0, held, after, at, cells);
        cells.set_last(at);
    }
    limit.decided(after, limit.log_in(cells, 0), at, verdict, cost, Taken::Charged)
}
