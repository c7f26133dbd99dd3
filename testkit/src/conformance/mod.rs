//! The suite every store and every front door is mounted in.
//!
//! Implement [`Subject`], then a test is a line for each theme:
//!
//! ```
//! use tidegate_testkit::conformance::{self, OracleSubject};
//!
//! let mut subject = OracleSubject::default();
//! conformance::worked_examples(&mut subject);
//! conformance::cases(&mut subject);
//! conformance::keys_apart(&mut subject);
//! conformance::random_traces(&mut subject, 16);
//! conformance::edges(&mut subject, 16);
//! conformance::bound(&mut subject, 16);
//! ```

mod agree;
mod duel;
mod edges;
mod headers;
mod keys;
mod oracle_subject;
mod random;
mod resolve;
mod runner;
mod subject;
#[cfg(test)]
mod tests;

pub use agree::agree;
pub use duel::{Answered, Duel};
pub use edges::{bound, edges};
pub(crate) use headers::expect as header_is;
pub use keys::{keys_apart, odd_keys};
pub use oracle_subject::OracleSubject;
pub use random::random_traces;
pub use subject::{Offers, Resolution, StepsBack, Subject, SubjectAnswer};

use crate::cases::{self as all_cases, Case, Ran};

/// The ten worked examples of the meaning.
///
/// # Panics
/// At the first that does not hold, as all themes do.
pub fn worked_examples(subject: &mut dyn Subject) {
    put(&all_cases::worked_examples(), subject);
}

/// Every case: the worked examples and the faults reported against others.
pub fn cases(subject: &mut dyn Subject) {
    put(&all_cases::load(), subject);
}

/// Puts the cases, says which were skipped and why, and counts on most of them having been asked.
fn put(cases: &[Case], subject: &mut dyn Subject) {
    let mut done = 0;
    for case in cases {
        match all_cases::run(case, subject) {
            Ran::Done => done += 1,
            Ran::Skipped(lacking) => println!("skipped {}: needs {lacking}", case.id),
        }
    }
    assert!(done * 2 > cases.len(), "only {done} of {} cases could be asked", cases.len());
}
