//! Single fields: what was written for them, and what that means.

use std::borrow::Cow;
use std::fmt::Display;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tidegate::Units;

use super::MOST_KEY_BYTES;
use crate::http::problem::Problem;

/// The name of a field, with the way to it if it is in a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldName {
    pub name: &'static str,
    pub entry: Option<usize>,
}

impl Display for FieldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.entry {
            Some(entry) => write!(f, "checks[{entry}].{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

impl FieldName {
    pub fn problem(self, detail: impl AsRef<str>) -> Problem {
        Problem::of_field(self.to_string(), detail)
    }
}

/// Reads a JSON string.
pub(super) fn text<'a>(name: FieldName, json: &'a str) -> Result<Cow<'a, str>, Problem> {
    let Some(inside) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Err(name.problem(match json {
            "null" => "null: not a string (leave the field out instead)".to_owned(),
            _ => format!("{}: not a string (write it in quotes)", shown(json)),
        }));
    };
    if !inside.contains('\\') {
        return Ok(Cow::Borrowed(inside));
    }
    // Only now can it be wrong: half of a surrogate pair is legal JSON and no text.
    serde_json::from_str(json).map(Cow::Owned).map_err(|_| {
        name.problem(format!("{}: not Unicode text (send keys that are not as key_b64)", shown(json)))
    })
}

/// Reads an amount from JSON: a whole number and nothing else. `below_zero` and `absent` are the mends for a negative
/// one and for null.
pub(super) fn units(name: FieldName, json: &str, below_zero: &str, absent: &str) -> Result<Units, Problem> {
    let rule = format!("a whole number from 0 to {}", Units::MAX);
    let refused = |mend: &str| Err(name.problem(format!("{}: not {rule} ({mend})", shown(json))));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // JSON knows one kind of number, so some clients write 5 as 5.0, and nothing as -0; it is the same whole number.
    let nothing = json.strip_prefix('-').filter(|rest| rest.bytes().all(|byte| matches!(byte, b'0' | b'.')));
    let written = nothing.unwrap_or(json);
    let (whole, fraction) = written.split_once('.').unwrap_or((written, "0"));
    if digits(whole) && fraction.bytes().all(|byte| byte == b'0') {
        return match whole.parse().ok().and_then(|amount| Units::new(amount).ok()) {
            Some(units) => Ok(units),
            None => refused("send less"),
        };
    }
    match json.as_bytes() {
        [b'-', ..] => refused(below_zero),
        [b'0'..=b'9', ..] if digits(whole) && digits(fraction) => {
            refused("round it as is fair to the client")
        }
        [b'0'..=b'9', ..] => refused("write digits only, without an exponent"),
        [b'"', ..] => refused("write it without quotes"),
        b"null" => refused(absent),
        _ => refused("write a number"),
    }
}

/// The key itself, from whichever of the two fields was given.
pub(super) fn key<'a>(
    entry: Option<usize>,
    plain: Option<Cow<'a, str>>,
    base64: Option<Cow<'a, str>>,
) -> Result<Cow<'a, [u8]>, Problem> {
    let name = |name| FieldName { name, entry };
    let (name, key) = match (plain, base64) {
        (Some(Cow::Borrowed(plain)), None) => (name("key"), Cow::Borrowed(plain.as_bytes())),
        (Some(Cow::Owned(plain)), None) => (name("key"), Cow::Owned(plain.into_bytes())),
        (None, Some(base64)) => (name("key_b64"), Cow::Owned(decode(name("key_b64"), &base64)?)),
        (None, None) => {
            return Err(name("key").problem("missing (send key, or key_b64 for one that is not UTF-8)"));
        }
        (Some(_), Some(_)) => return Err(name("key").problem("given twice (send key or key_b64, not both)")),
    };
    if key.len() > MOST_KEY_BYTES {
        let length = key.len();
        return Err(name.problem(format!(
            "{length} bytes: a key has at most {MOST_KEY_BYTES} (send a hash of it instead)"
        )));
    }
    Ok(key)
}

/// Reads base64 in either alphabet, padded or not.
fn decode(name: FieldName, base64: &str) -> Result<Vec<u8>, Problem> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    let engine = if base64.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    engine.decode(base64).map_err(|error| {
        let mend = match base64.contains(' ') {
            true => "in a query + stands for a space: write %2B, or - of the URL-safe alphabet",
            false => "write the key's bytes in base64, standard or URL-safe",
        };
        name.problem(format!("{:?}: not base64: {error} ({mend})", shown(base64)))
    })
}

/// What was written, cut to what fits a line.
pub(crate) fn shown(written: &str) -> Cow<'_, str> {
    const MOST: usize = 48;
    match written.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}...", &written[..end])),
        None => Cow::Borrowed(written),
    }
}
