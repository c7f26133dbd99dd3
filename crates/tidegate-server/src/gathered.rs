//! Bytes of a body as they arrive.

use axum::body::Bytes;

/// What has arrived of a body. Most come as one piece, which is not copied; what it takes is bounded by what came.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    first: Bytes,
    /// All of it, from the second piece on.
    all: Vec<u8>,
}

impl Gathered {
    /// Puts the next piece behind the others.
    pub fn push(&mut self, piece: Bytes) {
        match (self.first.is_empty(), self.all.is_empty()) {
            (true, _) => self.first = piece,
            (false, true) => self.all = [&self.first[..], &piece[..]].concat(),
            (false, false) => self.all.extend_from_slice(&piece),
        }
    }

    /// What is there.
    pub fn as_slice(&self) -> &[u8] {
        if self.all.is_empty() { &self.first } else { &self.all }
    }

    /// All that came.
    pub fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.into() }
    }
}
