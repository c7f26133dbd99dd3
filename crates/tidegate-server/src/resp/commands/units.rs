//! Whole numbers in a command's words.

use tidegate::{Cost, Units};

use super::shown;
use crate::resp::reply::Reply;

/// Reads a whole number that fits 64 bits.
#[inline]
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // Downwards, for there is one more negative number than positive ones.
    let value = digits.iter().try_fold(0_i64, |value, byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_sub(i64::from(byte - b'0')),
        _ => None,
    })?;
    if negative { Some(value) } else { value.checked_neg() }
}

/// Reads what a check asks for.
pub(super) fn cost(word: &[u8]) -> Option<Cost> {
    integer(word).and_then(|value| u64::try_from(value).ok()).and_then(|value| Cost::new(value).ok())
}

/// Told of a word that is no cost.
pub(super) fn no_cost(reply: &mut Reply<'_>, word: &[u8]) {
    let word = shown(word);
    reply.error(format_args!("ERR cost: '{word}': it has to be a whole number from 0 to {}", Cost::MAX));
}

/// Reads what is given back. An error is told.
pub(super) fn units(reply: &mut Reply<'_>, word: &[u8]) -> Option<Units> {
    let units =
        integer(word).and_then(|value| u64::try_from(value).ok()).and_then(|value| Units::new(value).ok());
    if units.is_none() {
        let word = shown(word);
        reply
            .error(format_args!("ERR units: '{word}': it has to be a whole number from 0 to {}", Units::MAX));
    }
    units
}

/// Told of a word that is no number, in Redis's words.
pub(super) fn not_an_integer(reply: &mut Reply<'_>) {
    reply.error(format_args!("ERR value is not an integer or out of range"));
}

/// A number of milliseconds or seconds in a reply: -1 for never, and what is too long to be written as the
/// longest that can be, which is 292 million years of milliseconds.
pub(super) fn wait(wait: Option<u128>) -> i64 {
    wait.map_or(-1, |wait| i64::try_from(wait).unwrap_or(i64::MAX))
}

/// Units in a reply: 10^12 at most, so they fit.
pub(super) fn amount(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_and_fit() {
        for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
            assert_eq!(integer(value.to_string().as_bytes()), Some(value));
        }
        assert_eq!(integer(b"+7"), Some(7));
        for no in
            ["", "-", "+", "1.5", "1e3", " 1", "0x1", "9223372036854775808", "-9223372036854775809", "ten"]
        {
            assert_eq!(integer(no.as_bytes()), None, "{no}");
        }
    }
}
