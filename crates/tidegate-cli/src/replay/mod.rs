//! `tidegate replay`: decides a recorded trace in its own time.

mod answer;
mod args;
mod decide;
mod place;
mod report;
mod run;
mod summary;

use std::io::{self, BufRead, Write};

pub use answer::{write_bad_line, write_decision};
pub use args::{Format, ReplayArgs};
pub use decide::{NoSuchPolicy, Replayer};
pub use report::report;
pub use run::run;
pub use summary::{DeniedKey, LimitSummary, MOST_DENIED, PolicySummary, Refusals, Summary, Tally};

use tidegate::Decision;
use tidegate::store::StoreError;

use crate::trace::{BadLine, Entry, Trace};

/// What stopped a replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error("cannot read the trace: {0}")]
    Trace(#[source] io::Error),
    /// The decisions cannot be written.
    #[error("cannot write decisions: {0}")]
    Decisions(#[source] io::Error),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What whoever watches a replay is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News<'a> {
    /// A complaint about a bad line, as it is read.
    BadLine(&'a str),
    /// So many lines have been decided.
    Decided {
        /// Lines decided, bad ones too.
        lines: u64,
        /// Lines read so far.
        of: u64,
    },
}

/// Decides a whole trace: writes a line to `decisions` for each line of it, in the order decided, tells `watch` of bad
/// lines and of how far it is, and returns what came of it all.
///
/// ```
/// use tidegate::{Limit, Policy, Rate};
/// use tidegate_cli::replay::{Replayer, replay};
/// use tidegate_cli::trace::{Order, Trace};
/// let api = Policy::single("api", Limit::token_bucket(1, Rate::per_second(1)))?;
/// let replayer = Replayer::new(api.into(), None)?;
/// let text = "{\"at_us\": 0, \"key\": \"a\"}\n{\"at_us\": 999999, \"key\": \"a\"}\n";
/// let mut trace = Trace::new(text.as_bytes(), Order::default(), |name| replayer.resolve(name));
/// let mut decisions = Vec::new();
/// let summary = replay(&mut trace, &replayer, Some(&mut decisions), &mut |_| ())?;
/// assert_eq!((summary.admitted, summary.denied), (1, 1));
/// assert!(String::from_utf8(decisions)?.contains("\"retry_after_us\":1,"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The trace cannot be read to its end, the store does not answer, or the decisions cannot be written.
pub fn replay<R: BufRead, P: FnMut(Option<&str>) -> Result<usize, BadLine>>(
    trace: &mut Trace<R, P>,
    replayer: &Replayer,
    decisions: Option<&mut dyn Write>,
    watch: &mut dyn FnMut(News<'_>),
) -> Result<Summary, ReplayError> {
    /// Lines between two pieces of news.
    const STRIDE: u64 = 1024;
    let mut tally = Tally::new(replayer.policies().map(|policy| &**policy));
    let mut out = decisions.map(|out| (out, Vec::new()));
    let (mut entries, mut decided, mut lines) = (Vec::new(), Vec::new(), 0);
    loop {
        let more = next(trace, replayer.at_once(), &mut entries, watch);
        // What was read before the trace broke off is decided all the same.
        let checks = entries.iter().filter_map(Entry::check).map(|check| (check.policy, check));
        replayer.decide(checks, &mut decided)?;
        let mut of_checks = decided.drain(..);
        for entry in entries.drain(..) {
            let decision = entry.check().and_then(|_| of_checks.next());
            note(&entry, decision.as_ref(), replayer, &mut tally, &mut out)?;
            lines += 1;
            if lines % STRIDE == 0 {
                watch(News::Decided { lines, of: trace.counts().lines });
            }
        }
        if !more.map_err(ReplayError::Trace)? {
            break;
        }
    }
    if let Some((out, _)) = out {
        out.flush().map_err(ReplayError::Decisions)?;
    }
    Ok(tally.summary(trace.counts(), replayer))
}

/// Reads up to `most` entries; false once there are no more.
fn next<R: BufRead, P: FnMut(Option<&str>) -> Result<usize, BadLine>>(
    trace: &mut Trace<R, P>,
    most: usize,
    entries: &mut Vec<Entry>,
    watch: &mut dyn FnMut(News<'_>),
) -> io::Result<bool> {
    while entries.len() < most {
        let Some(entry) = trace.next() else { return Ok(false) };
        trace.complaints().for_each(|complaint| watch(News::BadLine(&complaint)));
        entries.push(entry?);
    }
    Ok(true)
}

/// Counts an entry and what was decided, and writes its line.
fn note(
    entry: &Entry,
    decision: Option<&Decision>,
    replayer: &Replayer,
    tally: &mut Tally,
    out: &mut Option<(&mut dyn Write, Vec<u8>)>,
) -> Result<(), ReplayError> {
    let decided = entry.check().zip(decision);
    if let Some((check, decision)) = decided {
        tally.count(check, decision);
    }
    let Some((out, line)) = out else { return Ok(()) };
    line.clear();
    let written = match (entry, decided) {
        (_, Some((check, decision))) => write_decision(line, check, replayer.policy(check.policy), decision),
        (Entry::Bad { line: number, error }, None) => write_bad_line(line, *number, error),
        (Entry::Check(_), None) => Ok(()),
    };
    written.and_then(|()| out.write_all(line)).map_err(ReplayError::Decisions)
}
