//! The number behind a `*` or a `$`.

/// What a line of a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Not all there.
    Incomplete,
    /// Something else.
    NoNumber,
    /// A number; the byte behind its line is at `end`.
    Number { value: i64, end: usize },
}

/// Digits enough for every length there may be; a longer number is none.
const MOST_DIGITS: usize = 18;

/// Reads the line of a number that begins at `start`, as strictly as Redis does: a minus or none, no zeros in
/// front, `\r\n`.
pub(super) fn line(bytes: &[u8], start: usize) -> Line {
    let negative = bytes.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let mut value: i64 = 0;
    for (count, at) in (first..).enumerate() {
        match bytes.get(at) {
            None => return Line::Incomplete,
            Some(digit @ b'0'..=b'9') => {
                let leading_zero = count == 1 && value == 0;
                if leading_zero || count == MOST_DIGITS {
                    return Line::NoNumber;
                }
                value = value * 10 + i64::from(digit - b'0');
            }
            Some(b'\r') if count > 0 && !(negative && value == 0) => {
                return match bytes.get(at + 1) {
                    None => Line::Incomplete,
                    Some(b'\n') => Line::Number { value: if negative { -value } else { value }, end: at + 2 },
                    Some(_) => Line::NoNumber,
                };
            }
            Some(_) => return Line::NoNumber,
        }
    }
    Line::NoNumber
}
