//! Lines back into the order of their stamps, as far as a bounded window reaches.
//!
//! Logs are written when a request ends and stamped when it began, so their stamps go back and forth. Decided as
//! they stand, an old stamp counts as the newest one before it and earns its key nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tidegate::Timestamp;

/// In which order a trace is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As it stands.
    Kept,
    /// By stamp, equal ones as they stand.
    ByStamp {
        /// How far a stamp may lie behind the newest one read and still be put in its place.
        window: Duration,
        /// Lines held at most while waiting for older ones.
        lines: usize,
    },
}

impl Default for Order {
    /// By stamp, within ten minutes and a million lines.
    fn default() -> Self {
        Order::ByStamp { window: Duration::from_secs(600), lines: 1_000_000 }
    }
}

/// Things with stamps, waiting until no older one can come.
#[derive(Debug)]
pub struct Reorder<T> {
    order: Order,
    /// Those that came in order. Most do, and this costs them no comparison of trees.
    run: VecDeque<Held<T>>,
    /// Those older than the end of the run when they came.
    late: BinaryHeap<Reverse<Held<T>>>,
    pushed: u64,
    /// The newest stamp that came.
    newest: Timestamp,
    /// The newest stamp that was released.
    released: Timestamp,
    /// The stamp that came last.
    last: Timestamp,
    out_of_order: u64,
    left_out_of_order: u64,
}

#[derive(Debug)]
struct Held<T> {
    at: Timestamp,
    /// Its place among all that came, so that equal stamps stay as they were.
    number: u64,
    item: T,
}

impl<T> Held<T> {
    fn rank(&self) -> (Timestamp, u64) {
        (self.at, self.number)
    }
}

impl<T> Reorder<T> {
    /// Nothing yet.
    pub fn new(order: Order) -> Self {
        Reorder {
            order,
            run: VecDeque::new(),
            late: BinaryHeap::new(),
            pushed: 0,
            newest: Timestamp::EPOCH,
            released: Timestamp::EPOCH,
            last: Timestamp::EPOCH,
            out_of_order: 0,
            left_out_of_order: 0,
        }
    }

    /// Takes `item` in, or gives it back at once if it has not to wait: the order is kept, or newer ones have
    /// been released already.
    pub fn push(&mut self, at: Timestamp, item: T) -> Option<T> {
        self.last = at;
        self.out_of_order += u64::from(at < self.newest);
        self.newest = self.newest.max(at);
        if self.order == Order::Kept || at < self.released {
            self.left_out_of_order += u64::from(at < self.newest);
            return Some(item);
        }
        self.hold(at, item);
        None
    }

    /// As [`push`](Self::push), for what has no stamp: it goes behind what came last.
    pub fn push_beside(&mut self, item: T) -> Option<T> {
        if self.order == Order::Kept || self.last < self.released {
            return Some(item);
        }
        self.hold(self.last, item);
        None
    }

    fn hold(&mut self, at: Timestamp, item: T) {
        let held = Held { at, number: self.pushed, item };
        self.pushed += 1;
        match self.run.back() {
            Some(back) if at < back.at => self.late.push(Reverse(held)),
            _ => self.run.push_back(held),
        }
    }

    /// The oldest item, if it has waited long enough or too many wait.
    pub fn pop_due(&mut self) -> Option<T> {
        let Order::ByStamp { window, lines } = self.order else { return None };
        let behind = u128::from(self.newest.micros_since(self.oldest()?));
        let due = behind > window.as_micros() || self.run.len() + self.late.len() > lines;
        if due { self.pop() } else { None }
    }

    /// The oldest item.
    pub fn pop(&mut self) -> Option<T> {
        let held = if self.late_first() { self.late.pop()?.0 } else { self.run.pop_front()? };
        self.released = held.at;
        Some(held.item)
    }

    /// How many came with a stamp older than one before them.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// How many of these were not put in their place.
    pub fn left_out_of_order(&self) -> u64 {
        self.left_out_of_order
    }

    fn oldest(&self) -> Option<Timestamp> {
        let late = self.late.peek().map(|Reverse(held)| held.at);
        late.into_iter().chain(self.run.front().map(|held| held.at)).min()
    }

    fn late_first(&self) -> bool {
        match (self.late.peek(), self.run.front()) {
            (Some(Reverse(late)), Some(front)) => late.rank() < front.rank(),
            (late, _) => late.is_some(),
        }
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds stamps, and returns (stamp, place read) as released, with the counts.
    fn released(order: Order, stamps: &[u64]) -> (Vec<(u64, usize)>, u64, u64) {
        let mut reorder = Reorder::new(order);
        let mut out = Vec::new();
        for (place, us) in stamps.iter().enumerate() {
            let at = Timestamp::from_micros(*us).unwrap();
            out.extend(reorder.push(at, (*us, place)));
            out.extend(std::iter::from_fn(|| reorder.pop_due()));
        }
        out.extend(std::iter::from_fn(|| reorder.pop()));
        (out, reorder.out_of_order(), reorder.left_out_of_order())
    }

    fn within(us: u64, lines: usize) -> Order {
        Order::ByStamp { window: Duration::from_micros(us), lines }
    }

    #[test]
    fn sorts_stably_within_the_window() {
        let (out, out_of_order, left) = released(within(100, 10), &[30, 10, 30, 20, 10]);
        assert_eq!(out, [(10, 1), (10, 4), (20, 3), (30, 0), (30, 2)]);
        assert_eq!((out_of_order, left), (3, 0));
    }

    #[test]
    fn kept_order_is_kept_and_counted() {
        let (out, out_of_order, left) = released(Order::Kept, &[30, 10, 30]);
        assert_eq!(out, [(30, 0), (10, 1), (30, 2)]);
        assert_eq!((out_of_order, left), (1, 1));
    }

    #[test]
    fn the_window_ends_where_it_says() {
        // 100 behind is within the window of 100, 101 is not: then 0 is gone when 1 comes.
        let (out, out_of_order, left) = released(within(100, 10), &[50, 0, 150, 50]);
        assert_eq!(out, [(0, 1), (50, 0), (50, 3), (150, 2)]);
        assert_eq!((out_of_order, left), (2, 0));
        let (out, _, left) = released(within(100, 10), &[50, 151, 49]);
        assert_eq!(out, [(50, 0), (49, 2), (151, 1)]);
        assert_eq!(left, 1);
        // As old as what was released last is not too late.
        let (out, _, left) = released(within(100, 10), &[50, 151, 50]);
        assert_eq!(out, [(50, 0), (50, 2), (151, 1)]);
        assert_eq!(left, 0);
    }

    #[test]
    fn holds_no_more_lines_than_it_may() {
        let (out, out_of_order, left) = released(within(1_000, 2), &[40, 30, 20, 10, 50]);
        // 20 makes three held, so it goes; 10 then comes too late.
        assert_eq!(out, [(20, 2), (10, 3), (30, 1), (40, 0), (50, 4)]);
        assert_eq!((out_of_order, left), (3, 1));
        let (out, ..) = released(within(1_000, 0), &[3, 1, 2]);
        assert_eq!(out, [(3, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn what_has_no_stamp_stays_behind_its_neighbour() {
        let mut reorder = Reorder::new(within(100, 10));
        let at = |us| Timestamp::from_micros(us).unwrap();
        assert_eq!(reorder.push_beside("before all"), None);
        reorder.push(at(20), "second");
        reorder.push_beside("beside the second");
        reorder.push(at(10), "first");
        reorder.push_beside("beside the first");
        let out: Vec<&str> = std::iter::from_fn(|| reorder.pop()).collect();
        assert_eq!(out, ["before all", "first", "beside the first", "second", "beside the second"]);
        reorder.push(at(5), "too late");
        assert_eq!(reorder.push_beside("beside it"), Some("beside it"));
    }
}
