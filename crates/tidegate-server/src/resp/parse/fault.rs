//! Bytes after which nothing can be understood, in Redis's words where it has some.

use std::fmt;

use super::MOST_COMMAND_BYTES;

/// Why a connection is closed. Each but [`Http`](Fault::Http) is told first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// What follows a `*` is no number, or more words than any command has.
    ArrayLength,
    /// What follows a `$` is no number, negative or more than half a gigabyte.
    WordLength,
    /// A word of an array begins with this byte instead of a `$`.
    NoWord(u8),
    /// A word is longer than it said.
    NoLineEnd,
    /// The command would take more than a connection may hold.
    TooBig,
    /// A line that does not end.
    LongLine,
    /// A quote that is not closed, or closed in the midst of a word.
    Quotes,
    /// Too many words for a client that has shown no password.
    StrangersArray,
    /// Too long a word for a client that has shown no password.
    StrangersWord,
    /// HTTP. A page in a browser may make it send such to any port, and put commands in the body; so whoever speaks
    /// it is not listened to, nor told why.
    Http,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Fault::ArrayLength => f.write_str("invalid multibulk length"),
            Fault::WordLength => f.write_str("invalid bulk length"),
            Fault::NoWord(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Fault::NoLineEnd => f.write_str("expected a line end behind a bulk string"),
            Fault::TooBig => write!(f, "too big a command, it may have up to {MOST_COMMAND_BYTES} bytes"),
            Fault::LongLine => f.write_str("too big inline request"),
            Fault::Quotes => f.write_str("unbalanced quotes in request"),
            Fault::StrangersArray => f.write_str("unauthenticated multibulk length"),
            Fault::StrangersWord => f.write_str("unauthenticated bulk length"),
            Fault::Http => f.write_str("this is HTTP"),
        }
    }
}
