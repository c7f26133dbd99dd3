//! Requests out of bytes: arrays of bulk strings, and lines for people who type.
//!
//! The parser does no I/O and copies nothing: a command's words are ranges of the bytes it was read from. It may
//! stop after any byte and goes on where it stopped. What a client declares is never allocated; what a command may
//! take is bounded before it has arrived.

mod args;
mod fault;
mod inline;
mod number;
#[cfg(test)]
mod tests;

use memchr::memchr;

pub use args::Args;
pub use fault::Fault;

use args::Span;
use number::Line;

/// A command has at most this many bytes on the wire.
pub const MOST_COMMAND_BYTES: usize = 1 << 20;
/// A line has at most this many bytes.
const MOST_LINE_BYTES: usize = 64 << 10;
/// An array declares at most this many words, whether they would fit or not.
const MOST_WORDS: u64 = 1 << 20;
/// A word declares at most this many bytes, whether they would fit or not.
const MOST_WORD_BYTES: u64 = 512 << 20;
/// Of a client that has to show a password first, an array has at most this many words.
const MOST_WORDS_OF_STRANGERS: u64 = 10;
/// Of a client that has to show a password first, a word has at most this many bytes.
const MOST_WORD_BYTES_OF_STRANGERS: u64 = 16 << 10;
/// The bytes of the shortest word: `$0`, and two line ends.
const LEAST_WORD_BYTES: usize = 6;

/// Whom the bytes are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// A client that may give commands.
    Client,
    /// One that has to show a password first, and is held to small requests.
    Stranger,
}

/// What the bytes at hand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A whole command, which takes so many bytes; its words are [`Parser::args`].
    Command(usize),
    /// So many bytes that ask for nothing: an empty line, an empty array.
    Nothing(usize),
    /// The beginning of a command.
    Incomplete,
    /// Something after which nothing can be understood.
    Broken(Fault),
}

/// Reads one command after another. Between two calls it remembers how far it has come in an unfinished one.
#[derive(Debug, Default)]
pub struct Parser {
    stage: Stage,
    /// Bytes of the command read so far.
    read: usize,
    words: Vec<Span>,
    /// The words of a line, without their quotes, one behind the other.
    unquoted: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Start,
    /// Of a line; it has not ended yet.
    Line,
    /// Of an array, so many words being left.
    Words { left: usize },
    /// In a word of so many bytes, so many words being left after it.
    Word { bytes: usize, left: usize },
    /// A whole command, from a line or from an array.
    Done { line: bool },
}

impl Parser {
    /// Goes on reading `bytes`, which begin where the command begins: after an [`Incomplete`](Parsed::Incomplete)
    /// they are the same with more behind them, after anything else those behind what was taken.
    pub fn parse(&mut self, bytes: &[u8], from: From) -> Parsed {
        if let Stage::Done { .. } = self.stage {
            self.forget();
        }
        let parsed = self.go_on(bytes, from);
        match parsed {
            Ok(parsed) => parsed,
            Err(fault) => Parsed::Broken(fault),
        }
    }

    /// The words of the command just read from `bytes`.
    pub fn args<'a>(&'a self, bytes: &'a [u8]) -> Args<'a> {
        match self.stage {
            Stage::Done { line: true } => Args::new(&self.unquoted, &self.words),
            Stage::Done { line: false } => Args::new(bytes, &self.words),
            _ => Args::new(bytes, &[]),
        }
    }

    /// Bytes of heap held.
    pub fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<Span>() + self.unquoted.capacity()
    }

    /// Gives back what a long command took.
    pub fn shrink(&mut self) {
        const KEPT: usize = 64;
        if self.words.capacity() > KEPT {
            self.forget();
            self.words.shrink_to(KEPT);
        }
        if self.unquoted.capacity() > KEPT * size_of::<Span>() {
            self.forget();
            self.unquoted.shrink_to(KEPT * size_of::<Span>());
        }
    }

    fn forget(&mut self) {
        self.stage = Stage::Start;
        self.read = 0;
        self.words.clear();
        self.unquoted.clear();
    }

    fn nothing(&mut self, bytes: usize) -> Parsed {
        self.forget();
        Parsed::Nothing(bytes)
    }

    fn go_on(&mut self, bytes: &[u8], from: From) -> Result<Parsed, Fault> {
        loop {
            match self.stage {
                Stage::Done { line: _ } => return Ok(Parsed::Command(self.read)),
                Stage::Start => match bytes.first() {
                    None => return Ok(Parsed::Incomplete),
                    Some(b'*') => match number::line(bytes, 1) {
                        Line::Incomplete => return Ok(Parsed::Incomplete),
                        Line::NoNumber => return Err(Fault::ArrayLength),
                        Line::Number { value: ..=0, end } => return Ok(self.nothing(end)),
                        Line::Number { value, end } => self.begin_array(value.unsigned_abs(), end, from)?,
                    },
                    Some(_) => self.stage = Stage::Line,
                },
                Stage::Line => return self.line(bytes),
                Stage::Words { left } => match self.begin_word(bytes, left, from)? {
                    true => {}
                    false => return Ok(Parsed::Incomplete),
                },
                Stage::Word { bytes: length, left } => match self.end_word(bytes, length, left)? {
                    true => {}
                    false => return Ok(Parsed::Incomplete),
                },
            }
        }
    }

    fn begin_array(&mut self, words: u64, end: usize, from: From) -> Result<(), Fault> {
        match from {
            _ if words > MOST_WORDS => return Err(Fault::ArrayLength),
            From::Stranger if words > MOST_WORDS_OF_STRANGERS => return Err(Fault::StrangersArray),
            _ => {}
        }
        // At most a million, so it fits.
        let left = words as usize;
        if end + left * LEAST_WORD_BYTES > MOST_COMMAND_BYTES {
            return Err(Fault::TooBig);
        }
        self.read = end;
        self.stage = Stage::Words { left };
        Ok(())
    }

    /// Reads the length of the next word. `false` if it is not all there.
    fn begin_word(&mut self, bytes: &[u8], left: usize, from: From) -> Result<bool, Fault> {
        match bytes.get(self.read) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(other) => return Err(Fault::NoWord(*other)),
        }
        let (value, end) = match number::line(bytes, self.read + 1) {
            Line::Incomplete => return Ok(false),
            Line::NoNumber => return Err(Fault::WordLength),
            Line::Number { value, end } => (value, end),
        };
        let length = match u64::try_from(value) {
            Ok(length) if length <= MOST_WORD_BYTES => length,
            _ => return Err(Fault::WordLength),
        };
        if from == From::Stranger && length > MOST_WORD_BYTES_OF_STRANGERS {
            return Err(Fault::StrangersWord);
        }
        // At most half a gigabyte, so it fits.
        let length = length as usize;
        if end + length + 2 + (left - 1) * LEAST_WORD_BYTES > MOST_COMMAND_BYTES {
            return Err(Fault::TooBig);
        }
        self.read = end;
        self.stage = Stage::Word { bytes: length, left: left - 1 };
        Ok(true)
    }

    /// Takes the next word. `false` if it is not all there.
    fn end_word(&mut self, bytes: &[u8], length: usize, left: usize) -> Result<bool, Fault> {
        let end = self.read + length;
        let Some(line_end) = bytes.get(end..end + 2) else { return Ok(false) };
        if line_end != b"\r\n" {
            return Err(Fault::NoLineEnd);
        }
        self.words.push(Span::new(self.read, end));
        self.read = end + 2;
        self.stage = if left == 0 { Stage::Done { line: false } } else { Stage::Words { left } };
        Ok(true)
    }

    fn line(&mut self, bytes: &[u8]) -> Result<Parsed, Fault> {
        let Some(end) = memchr(b'\n', &bytes[self.read..]).map(|at| self.read + at) else {
            self.read = bytes.len();
            return if self.read > MOST_LINE_BYTES { Err(Fault::LongLine) } else { Ok(Parsed::Incomplete) };
        };
        if end > MOST_LINE_BYTES {
            return Err(Fault::LongLine);
        }
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        if inline::is_http(line) {
            return Err(Fault::Http);
        }
        inline::split(line, &mut self.unquoted, &mut self.words)?;
        if self.words.is_empty() {
            return Ok(self.nothing(end + 1));
        }
        self.read = end + 1;
        self.stage = Stage::Done { line: true };
        Ok(Parsed::Command(end + 1))
    }
}
