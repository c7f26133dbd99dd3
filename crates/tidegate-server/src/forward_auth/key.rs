//! Whom a request is charged to.

use std::borrow::Cow;

use tidegate_fields::joined;

use super::original::Original;
use crate::config::{KeyPart, Rule};
use crate::http::problem::Problem;

/// Whom a request is charged to.
#[derive(Debug)]
pub(super) enum Key {
    /// Everything asked for is there.
    Whole(Vec<u8>),
    /// Something is missing, and this is the key that all such requests share.
    Shared(Vec<u8>),
    /// Something is there twice: whichever was taken, the application might take the other.
    Ambiguous,
}

/// One part of it; empty if the request does not have it, which no part that is there can be.
enum Part<'r> {
    Is(Cow<'r, [u8]>),
    Missing,
    Ambiguous,
}

/// The key of a request. A part that stands alone is the key as it is, several are joined so that different ones
/// never make the same key.
///
/// # Errors
/// A part that the proxy has to tell and does not.
pub(super) fn of(rule: &Rule, original: &Original<'_>) -> Result<Key, Problem> {
    let mut parts = Vec::with_capacity(rule.key.len());
    let mut whole = true;
    for part in &rule.key {
        match read(part, original)? {
            Part::Is(value) => parts.push(value),
            Part::Missing => {
                whole = false;
                parts.push(Cow::Borrowed(&b""[..]));
            }
            Part::Ambiguous => return Ok(Key::Ambiguous),
        }
    }
    let key = match &mut parts[..] {
        [only] => std::mem::take(only).into_owned(),
        parts => joined(parts.iter()),
    };
    Ok(if whole { Key::Whole(key) } else { Key::Shared(key) })
}

fn read<'o>(part: &'o KeyPart, original: &'o Original<'_>) -> Result<Part<'o>, Problem> {
    Ok(match part {
        KeyPart::Header(name) => only(original.lines(name).map(Cow::Borrowed)),
        KeyPart::Query(name) => only(original.target()?.parameters(name).map(Cow::Owned)),
        KeyPart::Const(text) => Part::Is(text.as_bytes().into()),
        KeyPart::Ip => original.client().map_or(Part::Missing, |client| Part::Is(client.as_bytes().into())),
        KeyPart::Path => Part::Is(original.target()?.resolved_path()),
        KeyPart::Host => Part::Is(original.host()?.into()),
        KeyPart::Method => Part::Is(original.method()?.into()),
    })
}

fn only<'o>(mut values: impl Iterator<Item = Cow<'o, [u8]>>) -> Part<'o> {
    match (values.next(), values.next()) {
        (_, Some(_)) => Part::Ambiguous,
        (Some(value), None) if !value.is_empty() => Part::Is(value),
        _ => Part::Missing,
    }
}
