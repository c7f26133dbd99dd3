//! How a command ends: its exit code, and what it says.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// It was asked wrongly, or the configuration is wrong: exit code 2.
    Usage(String),
    /// It could not be done: exit code 1.
    Run(String),
    /// Whoever read its output has read enough: it ends without a word, exit code 0.
    Unread,
}

impl Failure {
    /// Asked wrongly, for this reason.
    pub fn usage(reason: impl fmt::Display) -> Self {
        Failure::Usage(reason.to_string())
    }

    /// Could not be done, for this reason.
    pub fn run(reason: impl fmt::Display) -> Self {
        Failure::Run(reason.to_string())
    }

    /// Standard output failed.
    pub fn of_stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::run(format_args!("cannot write to standard output: {error}")),
        }
    }

    /// Says what there is to say on standard error, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (code, reason) = match self {
            Failure::Usage(reason) => (2, reason),
            Failure::Run(reason) => (1, reason),
            Failure::Unread => return ExitCode::SUCCESS,
        };
        // If nobody can be told, the code still tells.
        let _ = writeln!(io::stderr(), "tidegate: {reason}");
        ExitCode::from(code)
    }
}

/// Writes `text` to standard output.
///
/// # Errors
/// It failed, or nobody reads it.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::of_stdout(&error))
}
