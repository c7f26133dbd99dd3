//! A command on a line, its words apart by spaces and quoted as in Redis: `"a\x41\n"`, `'it\'s'`.

use super::args::Span;
use super::fault::Fault;

/// Whether a line is part of an HTTP request.
pub(super) fn is_http(line: &[u8]) -> bool {
    [b"post ".as_slice(), b"host:"]
        .iter()
        .any(|start| line.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
}

/// Writes the words of `line` to `out`, one behind the other, and where each lies to `words`.
pub(super) fn split(line: &[u8], out: &mut Vec<u8>, words: &mut Vec<Span>) -> Result<(), Fault> {
    let mut rest = line;
    loop {
        let begin = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = &rest[begin..];
        if rest.is_empty() {
            return Ok(());
        }
        let start = out.len();
        rest = word(rest, out)?;
        words.push(Span::new(start, out.len()));
    }
}

/// Takes one word; returns what is behind it.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Fault> {
    loop {
        match rest {
            [] => return Ok(rest),
            [byte, ..] if is_space(*byte) => return Ok(rest),
            [quote @ (b'"' | b'\''), behind @ ..] => {
                rest = quoted(*quote, behind, out)?;
                // A quote ends its word.
                return match rest.first() {
                    Some(byte) if !is_space(*byte) => Err(Fault::Quotes),
                    _ => Ok(rest),
                };
            }
            [byte, behind @ ..] => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
}

/// Takes what is between quotes; returns what is behind the closing one.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Fault> {
    loop {
        rest = match (quote, rest) {
            (_, []) => return Err(Fault::Quotes),
            (_, [byte, behind @ ..]) if *byte == quote => return Ok(behind),
            (b'"', [b'\\', b'x', high, low, behind @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                out.push(nibble(*high) << 4 | nibble(*low));
                behind
            }
            (b'"', [b'\\', byte, behind @ ..]) => {
                out.push(unescaped(*byte));
                behind
            }
            (b'\'', [b'\\', b'\'', behind @ ..]) => {
                out.push(b'\'');
                behind
            }
            (_, [byte, behind @ ..]) => {
                out.push(*byte);
                behind
            }
        };
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn is_space(byte: u8) -> bool {
    // As C's isspace: with the vertical tab.
    byte.is_ascii_whitespace() || byte == 0x0b
}
