//! The way to the servers: connections, topologies, and what became of a call.

use std::time::Duration;

use crate::script::Call;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It was proven not to have run: never sent, or the server said so.
    #[error("{0}")]
    NotRun(String),
    /// It may have run, once.
    #[error("{0}")]
    MayHaveRun(String),
    /// The server ran or read it and refused: an error of the script's, of the data it met, or of rights.
    #[error("{0}")]
    Refused(String),
}
