//! The query of `GET /v1/peek`.

use std::borrow::Cow;

use super::Subject;
use super::field::{FieldName, key, shown};
use crate::http::problem::{Problem, ProblemKind};

/// Reads the query of `GET /v1/peek`, as HTML forms write it: `%` escapes, `+` for a space.
///
/// ```
/// use tidegate_server::http::decode::decode_peek;
/// let subject = decode_peek("policy=api&key=user%3A42").unwrap();
/// assert_eq!((subject.policy.as_deref(), &*subject.key), (Some("api"), &b"user:42"[..]));
/// ```
///
/// # Errors
/// What is wrong, by parameter.
pub fn decode_peek(query: &str) -> Result<Subject<'_>, Problem> {
    let (mut policy, mut plain, mut base64) = (None, None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = unescape(name).unwrap_or(Cow::Borrowed(name));
        let (name, place) = match &*name {
            "policy" => ("policy", &mut policy),
            "key" => ("key", &mut plain),
            "key_b64" => ("key_b64", &mut base64),
            _ => {
                let detail = format!("unknown parameter {:?} (there are policy, key, key_b64)", shown(&name));
                return Err(Problem::new(ProblemKind::InvalidRequest, detail));
            }
        };
        let name = FieldName { name, entry: None };
        let value = unescape(value).map_err(|rule| name.problem(format!("{:?}: {rule}", shown(value))))?;
        if place.replace(value).is_some() {
            return Err(name.problem("given twice (give it once)"));
        }
    }
    Ok(Subject { key: key(None, plain, base64)?, policy })
}

/// Undoes the escapes; the rule broken, if they are not UTF-8 in escapes.
fn unescape(text: &str) -> Result<Cow<'_, str>, &'static str> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (first, after) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let byte = hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low);
                byte.ok_or("not an escape of two hex digits (write %25 for a % sign)")?
            }
            (b'%', _) => return Err("an escape cut short (write %25 for a % sign)"),
            (other, _) => *other,
        });
    }
    let text = String::from_utf8(bytes);
    text.map(Cow::Owned).map_err(|_| "not UTF-8 (send keys that are not as key_b64)")
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(query: &str) -> Vec<u8> {
        decode_peek(query).unwrap().key.into_owned()
    }

    #[test]
    fn reads_what_forms_write() {
        assert_eq!(key_of("key=a+b%2Bc%26d%3D"), b"a b+c&d=");
        assert_eq!(key_of("key="), b"");
        assert_eq!(key_of("key"), b"");
        assert_eq!(key_of("&key=%C3%A9&"), "\u{e9}".as_bytes());
        assert_eq!(key_of("key_b64=_-8"), [0xff, 0xef]);
        assert_eq!(key_of("key_b64=%2F%2B8%3D"), [0xff, 0xef]);
    }

    #[test]
    fn two_different_keys_are_never_read_as_one() {
        for (query, said) in [
            ("key=%FF", "not UTF-8"),
            ("key=%F", "cut short"),
            ("key=%zz", "two hex digits"),
            ("key=%+1", "two hex digits"),
            ("key=a&key=a", "given twice"),
            ("key=a&key_b64=YQ", "not both"),
            ("key_b64=/+8=", "%2B"),
            ("key_b64=YQ=a", "not base64"),
            ("keys=a", "unknown parameter \"keys\""),
            ("policy=api", "key: missing"),
            ("", "key: missing"),
        ] {
            let detail = decode_peek(query).unwrap_err().detail().to_owned();
            assert!(detail.contains(said), "{query}: {detail}");
        }
    }
}
