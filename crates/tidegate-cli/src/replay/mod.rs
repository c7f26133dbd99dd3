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

/// Decides a whole trace: writes a line to `decisions` for each line of it, in the order decided, gives complaints
/// about bad lines to `tell` as they are read, and returns what came of it all.
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
/// The trace cannot be read to its end, or the decisions not be written.
pub fn replay<R: BufRead, P: FnMut(Option<&str>) -> Result<usize, BadLine>>(
    trace: &mut Trace<R, P>,
    replayer: &Replayer,
    decisions: Option<&mut dyn Write>,
    tell: &mut dyn FnMut(&str),
) -> Result<Summary, ReplayError> {
    let mut tally = Tally::new(replayer.policies().map(|policy| &**policy));
    let mut out = decisions.map(|out| (out, Vec::new()));
    while let Some(entry) = trace.next() {
        trace.complaints().for_each(|complaint| tell(&complaint));
        let entry = entry.map_err(ReplayError::Trace)?;
        let decided = match entry.check() {
            Some(check) => Some((check, replayer.decide(check)?)),
            None => None,
        };
        if let Some((check, decision)) = &decided {
            tally.count(check, decision);
        }
        if let Some((out, line)) = &mut out {
            line.clear();
            let written = match (&entry, &decided) {
                (_, Some((check, decision))) => {
                    write_decision(line, check, replayer.policy(check.policy), decision)
                }
                (Entry::Bad { line: number, error }, _) => write_bad_line(line, *number, error),
                (Entry::Check(_), None) => Ok(()),
            };
            written.and_then(|()| out.write_all(line)).map_err(ReplayError::Decisions)?;
        }
    }
    if let Some((out, _)) = out {
        out.flush().map_err(ReplayError::Decisions)?;
    }
    Ok(tally.summary(trace.counts(), replayer))
}
