//! Replies into bytes, in both versions of the protocol.

use std::fmt::{self, Write as _};

/// Which version of the protocol a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Protocol {
    /// What every client begins with.
    #[default]
    Resp2,
    /// With maps and nulls of its own, after `HELLO 3`.
    Resp3,
}

impl Protocol {
    pub(super) fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// Appends replies to a buffer.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Reply { out, protocol }
    }

    /// Speaks this version from here on.
    pub(super) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// `+OK`.
    pub(super) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A short word of ours.
    pub(super) fn word(&mut self, word: &'static str) {
        self.out.push(b'+');
        self.out.extend_from_slice(word.as_bytes());
        self.end_line();
    }

    /// An error: its code in capitals, then what is wrong. Line ends in it become spaces.
    pub(super) fn error(&mut self, text: fmt::Arguments<'_>) {
        self.out.push(b'-');
        let start = self.out.len();
        // Writing to a vector cannot fail.
        let _ = Bytes(self.out).write_fmt(text);
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.end_line();
    }

    pub(super) fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// Any bytes.
    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    /// The text of a number, which is short.
    pub(super) fn bulk_number(&mut self, value: u64) {
        let mut digits = [0; MOST_DIGITS];
        let text = decimal(value, &mut digits);
        self.bulk(text);
    }

    /// A text for people.
    pub(super) fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                const KIND: &[u8] = b"txt:";
                self.length(b'=', KIND.len() + text.len());
                self.out.extend_from_slice(KIND);
                self.out.extend_from_slice(text.as_bytes());
                self.end_line();
            }
        }
    }

    pub(super) fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array: so many replies follow.
    pub(super) fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// The head of a map: so many pairs of replies follow.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', 2 * pairs),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    fn length(&mut self, kind: u8, length: usize) {
        // No reply has 2^63 of anything.
        self.number(kind, length as i64);
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        match value {
            0..=9 => self.out.push(b'0' + value as u8),
            _ => {
                if value < 0 {
                    self.out.push(b'-');
                }
                let mut digits = [0; MOST_DIGITS];
                self.out.extend_from_slice(decimal(value.unsigned_abs(), &mut digits));
            }
        }
        self.end_line();
    }

    #[inline]
    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Of 2^64.
const MOST_DIGITS: usize = 20;

/// The digits of `value`, at the end of `room`.
fn decimal(mut value: u64, room: &mut [u8; MOST_DIGITS]) -> &[u8] {
    let mut at = MOST_DIGITS;
    loop {
        at -= 1;
        room[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &room[at..];
        }
    }
}

/// Lets text be formatted into bytes.
struct Bytes<'a>(&'a mut Vec<u8>);

impl fmt::Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, protocol));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_to_both_ends() {
        for value in [i64::MIN, -10, -1, 0, 9, 10, 1_234_567_890, i64::MAX] {
            assert_eq!(written(Protocol::Resp2, |reply| reply.integer(value)), format!(":{value}\r\n"));
        }
        assert_eq!(written(Protocol::Resp2, |reply| reply.bulk_number(120)), "$3\r\n120\r\n");
    }

    #[test]
    fn the_versions_differ_in_maps_nulls_and_texts_alone() {
        let all = |reply: &mut Reply<'_>| {
            reply.map(1);
            reply.null();
            reply.text("ab");
            reply.array(1);
            reply.bulk(b"\0\r\n");
        };
        assert_eq!(written(Protocol::Resp2, all), "*2\r\n$-1\r\n$2\r\nab\r\n*1\r\n$3\r\n\0\r\n\r\n");
        assert_eq!(written(Protocol::Resp3, all), "%1\r\n_\r\n=6\r\ntxt:ab\r\n*1\r\n$3\r\n\0\r\n\r\n");
    }

    #[test]
    fn an_error_is_one_line_whatever_it_tells() {
        let error = written(Protocol::Resp2, |reply| reply.error(format_args!("ERR {}", "a\r\n+OK\n")));
        assert_eq!(error, "-ERR a  +OK \r\n");
    }
}
