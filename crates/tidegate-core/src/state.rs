//! What is kept of one key under one plan, and how a store hands it to the arithmetic.

use alloc::boxed::Box;

use crate::bucket::Level;
use crate::limit::{Limit, Shape};
use crate::log::Log;
use crate::plan::Plan;
use crate::quantity::Timestamp;
use crate::window::Pair;

/// What is kept for one limit, as of the key's `last` stamp.
///
/// This is the form that every store can turn its own encoding into and back, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State<'a> {
    /// A bucket's level in units of `1/P'`, P' being the period of the rate in lowest terms.
    Bucket(i128),
    /// The count of a fixed window.
    Count(u64),
    /// The counts of a sliding counter.
    Pair {
        /// Admitted in the window before the one that holds `last`.
        previous: u64,
        /// Admitted in the window that holds `last`.
        current: u64,
    },
    /// The log of a sliding window log.
    Log(&'a Log),
}

/// A key's kept state, wherever it is kept: the one place the arithmetic reads from and writes to.
///
/// A store implements this over its own encoding; [`KeyState`] is the plain one.
pub trait Cells {
    /// The newest stamp at which the key was charged.
    fn last(&self) -> Timestamp;
    /// Sets the stamp.
    fn set_last(&mut self, last: Timestamp);
    /// What is kept for the limit at `index`, which is `limit`.
    fn load(&self, index: usize, limit: &Limit) -> State<'_>;
    /// Keeps `state`, which is never a log, for the limit at `index`.
    fn save(&mut self, index: usize, limit: &Limit, state: State<'_>);
    /// The log kept for the limit at `index`, made if there is none yet.
    fn log_mut(&mut self, index: usize) -> &mut Log;
}

/// One key's state under one plan, kept plainly.
///
/// ```
/// use tidegate_core::{Cost, KeyState, Limit, Period, Plan, Timestamp};
/// let plan = Plan::single(Limit::fixed_window(2, Period::MINUTE));
/// let mut key = KeyState::new(&plan);
/// plan.check(&mut key, Timestamp::EPOCH, Cost::ONE);
/// assert_eq!(plan.peek(&key, Timestamp::EPOCH).remaining(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    last: Timestamp,
    cells: Box<[Cell]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Cell {
    Bucket(Level),
    Count(u64),
    Pair(Pair),
    Log(Log),
}

impl KeyState {
    /// A key never seen: full buckets, empty windows.
    pub fn new(plan: &Plan) -> Self {
        let cells = plan.limits().iter().map(|limit| match &limit.shape {
            Shape::Bucket(bucket) => Cell::Bucket(bucket.full()),
            Shape::Fixed(_) => Cell::Count(0),
            Shape::Counter(_) => Cell::Pair(Pair { previous: 0, current: 0 }),
            Shape::Log(_) => Cell::Log(Log::new()),
        });
        KeyState { last: Timestamp::EPOCH, cells: cells.collect() }
    }

    /// Copies a key's state out of wherever it is kept.
    pub fn copy_of(plan: &Plan, cells: &impl Cells) -> Self {
        let copy = |(index, limit)| match cells.load(index, limit) {
            State::Bucket(level) => Cell::Bucket(level),
            State::Count(count) => Cell::Count(count),
            State::Pair { previous, current } => Cell::Pair(Pair { previous, current }),
            State::Log(log) => Cell::Log(log.clone()),
        };
        KeyState { last: cells.last(), cells: plan.limits().iter().enumerate().map(copy).collect() }
    }
}

impl Cells for KeyState {
    fn last(&self) -> Timestamp {
        self.last
    }

    fn set_last(&mut self, last: Timestamp) {
        self.last = last;
    }

    fn load(&self, index: usize, _: &Limit) -> State<'_> {
        match &self.cells[index] {
            Cell::Bucket(level) => State::Bucket(*level),
            Cell::Count(count) => State::Count(*count),
            Cell::Pair(Pair { previous, current }) => State::Pair { previous: *previous, current: *current },
            Cell::Log(log) => State::Log(log),
        }
    }

    fn save(&mut self, index: usize, _: &Limit, state: State<'_>) {
        self.cells[index] = match state {
            State::Bucket(level) => Cell::Bucket(level),
            State::Count(count) => Cell::Count(count),
            State::Pair { previous, current } => Cell::Pair(Pair { previous, current }),
            State::Log(log) => Cell::Log(log.clone()),
        };
    }

    fn log_mut(&mut self, index: usize) -> &mut Log {
        let cell = &mut self.cells[index];
        if !matches!(cell, Cell::Log(_)) {
            *cell = Cell::Log(Log::new());
        }
        match cell {
            Cell::Log(log) => log,
            _ => unreachable!("the cell was made a log just above"),
        }
    }
}
