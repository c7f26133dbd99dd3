//! A recorded trace: JSON Lines, one check a line, read in bounded memory and put into the order of its stamps.
//!
//! ```
//! use tidegate_cli::trace::{Entry, Order, Trace};
//! let text = "{\"at_us\": 2, \"key\": \"a\"}\n{\"at_us\": 1, \"key\": \"b\", \"cost\": 3}\n";
//! let one_policy = |_: Option<&str>| Ok(0);
//! let entries: Vec<Entry> = Trace::new(text.as_bytes(), Order::default(), one_policy).collect::<Result<_, _>>()?;
//! let keys: Vec<&[u8]> = entries.iter().filter_map(Entry::check).map(|check| &*check.key).collect();
//! assert_eq!(keys, [b"b", b"a"]);
//! # Ok::<(), std::io::Error>(())
//! ```

mod line;
mod lines;
mod open;
mod reorder;

use std::collections::VecDeque;
use std::io::{self, BufRead};

use tidegate::{Cost, Timestamp};

pub use line::{BadLine, TraceLine, parse_line};
pub use lines::{Lines, MAX_LINE_BYTES};
pub use open::{Identity, OpenTrace, Pace, Progress, TracePath};
pub use reorder::{Order, Reorder};

/// One line of a trace, in the order in which it is to be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A check.
    Check(TraceCheck),
    /// A line that is no check. It stands where the line read before it stands.
    Bad {
        /// The line's number, counted from 1.
        line: u64,
        /// What is wrong with it.
        error: BadLine,
    },
}

impl Entry {
    /// The check, if it is one.
    pub fn check(&self) -> Option<&TraceCheck> {
        match self {
            Entry::Check(check) => Some(check),
            Entry::Bad { .. } => None,
        }
    }
}

/// A check as a trace asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceCheck {
    /// The line's own stamp.
    pub at: Timestamp,
    /// The key.
    pub key: Box<[u8]>,
    /// The cost.
    pub cost: Cost,
    /// The policy's place, as the resolver given to [`Trace::new`] counts.
    pub policy: usize,
}

/// What a trace was like, apart from its checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines read.
    pub lines: u64,
    /// Lines that are no check.
    pub bad: u64,
    /// Lines with a stamp older than one before them.
    pub out_of_order: u64,
    /// Of these, lines that were decided where they stood: all, if the order is kept, else those that came too
    /// late to be put in their place.
    pub left_out_of_order: u64,
}

/// A trace being read. It iterates over the entries in the order in which they are to be decided.
///
/// Memory holds one line and the entries waiting for their place, never the trace.
pub struct Trace<R, P> {
    lines: Lines<R>,
    resolve: P,
    reorder: Reorder<Entry>,
    /// Entries whose turn it is.
    ready: VecDeque<Entry>,
    counts: Counts,
    complaints: Vec<String>,
    strict: bool,
    ended: bool,
}

/// Bad lines that are told one by one; the others are only counted.
const COMPLAINTS: u64 = 10;

impl<R: BufRead, P: FnMut(Option<&str>) -> Result<usize, BadLine>> Trace<R, P> {
    /// Reads `input` in this order. `resolve` finds the place of the policy a line names, if it names one.
    pub fn new(input: R, order: Order, resolve: P) -> Self {
        Trace {
            lines: Lines::new(input),
            resolve,
            reorder: Reorder::new(order),
            ready: VecDeque::new(),
            counts: Counts::default(),
            complaints: Vec::new(),
            strict: false,
            ended: false,
        }
    }

    /// Reads nothing after the first bad line. What was read before it still comes, and it itself.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// What was read so far.
    pub fn counts(&self) -> Counts {
        Counts {
            out_of_order: self.reorder.out_of_order(),
            left_out_of_order: self.reorder.left_out_of_order(),
            ..self.counts
        }
    }

    /// What is wrong with the bad lines read since this was last asked, in the order read; of the first ten only.
    pub fn complaints(&mut self) -> impl Iterator<Item = String> + use<'_, R, P> {
        self.complaints.drain(..)
    }

    /// Reads one line.
    fn read(&mut self) -> io::Result<()> {
        let Some((number, line)) = self.lines.next()? else {
            self.ended = true;
            return Ok(());
        };
        self.counts.lines = number;
        let resolve = &mut self.resolve;
        let read = line.and_then(parse_line).and_then(|line| {
            let policy = resolve(line.policy.as_deref())?;
            Ok(TraceCheck { at: line.at, key: line.key.into(), cost: line.cost, policy })
        });
        let in_turn = match read {
            Ok(check) => self.reorder.push(check.at, Entry::Check(check)),
            Err(error) => {
                self.ended = self.strict;
                if self.counts.bad < COMPLAINTS {
                    self.complaints.push(format!("line {number}: {error}"));
                }
                self.counts.bad += 1;
                self.reorder.push_beside(Entry::Bad { line: number, error })
            }
        };
        self.ready.extend(in_turn);
        Ok(())
    }
}

impl<R: BufRead, P: FnMut(Option<&str>) -> Result<usize, BadLine>> Iterator for Trace<R, P> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.ready.pop_front().or_else(|| self.reorder.pop_due()) {
                return Some(Ok(entry));
            }
            if self.ended {
                return self.reorder.pop().map(Ok);
            }
            if let Err(error) = self.read() {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests;
