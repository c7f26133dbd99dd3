//! Bytes per second over tokio's I/O traits.
//!
//! A [`gate::Gate`] is one policy that has to admit bytes under one key; a [`toll::Toll`] is all of them, for
//! one direction of one connection; the reader and the writer hold bytes back until the toll is paid.

mod bell;
mod gate;
mod reader;
mod toll;
mod writer;

use std::io::{Error, ErrorKind};

use tidegate::AcquireError;

pub use reader::ThrottledReader;
pub use writer::ThrottledWriter;

/// An error of a policy as one of I/O: the [`AcquireError`] is within.
fn refused(error: AcquireError) -> Error {
    let kind = match error {
        AcquireError::Never | AcquireError::TooLate { .. } => ErrorKind::QuotaExceeded,
        AcquireError::QueueFull | AcquireError::Overloaded => ErrorKind::ResourceBusy,
        _ => ErrorKind::Other,
    };
    Error::new(kind, error)
}
