//! One line of a trace: a JSON object that asks for one check.

use std::borrow::Cow;
use std::fmt;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use serde::Deserialize;
use serde::de::{Error, Visitor};
use tidegate::{Cost, Timestamp};

use super::MAX_LINE_BYTES;

/// What one line of a trace asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLine<'a> {
    /// When the check came.
    pub at: Timestamp,
    /// The key: any bytes.
    pub key: Cow<'a, [u8]>,
    /// The cost, 1 unless the line says another.
    pub cost: Cost,
    /// The policy, if the line names one.
    pub policy: Option<Cow<'a, str>>,
}

/// Why a line is no check: the field, the value, the rule broken and the mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadLine(String);

impl BadLine {
    /// For this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        BadLine(reason.into())
    }

    pub(super) fn too_long(bytes: usize) -> Self {
        BadLine(format!(
            "{bytes} bytes: a line has at most {MAX_LINE_BYTES} (split it, or shorten its fields)"
        ))
    }
}

/// Reads one line, without its end.
///
/// ```
/// use tidegate_cli::trace::parse_line;
/// let line = parse_line(br#"{"at": "2023-11-14T22:13:20.5Z", "key": "user:42", "cost": 3, "path": "/"}"#)?;
/// assert_eq!(line.at.as_micros(), 1_700_000_000_500_000);
/// assert_eq!((&*line.key, line.cost.get(), line.policy), (&b"user:42"[..], 3, None));
///
/// let error = parse_line(br#"{"at_us": 0, "key": "user:42", "cost": -3}"#).unwrap_err();
/// assert!(error.to_string().starts_with("cost: -3 is negative (write 0 to 1000000000000)"));
/// # Ok::<(), tidegate_cli::trace::BadLine>(())
/// ```
///
/// A field that is `null` is one that is not there. Fields it does not know are passed over, since traces come
/// from logs that hold more.
///
/// # Errors
/// What is not a JSON object in UTF-8 with a stamp (`at_us`, or `at` as RFC 3339) and a key (`key`, or `key_b64`),
/// or holds a figure out of range.
pub fn parse_line(line: &[u8]) -> Result<TraceLine<'_>, BadLine> {
    let text = std::str::from_utf8(line).map_err(|error| {
        BadLine(format!(
            "byte {} is not UTF-8 (send keys of other bytes as key_b64)",
            error.valid_up_to() + 1
        ))
    })?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => (),
        None => return Err(BadLine::new("an empty line (write one JSON object a line)")),
        // An array would otherwise do: its elements would be taken for the fields in their order.
        Some(_) => {
            let example = r#"{"at_us": 1700000000000000, "key": "user:42"}"#;
            return Err(BadLine(format!("not a JSON object (write one a line, as in {example})")));
        }
    }
    let raw: RawLine<'_> = serde_json::from_str(text).map_err(|error| not_a_line(&error))?;
    Ok(TraceLine {
        at: raw.stamp()?,
        cost: raw.cost.map_or(Cost::ONE, |cost| cost.0),
        policy: raw.policy.map(|policy| policy.0),
        key: key(raw.key, raw.key_b64)?,
    })
}

/// A line as typed.
#[derive(Deserialize)]
struct RawLine<'a> {
    at_us: Option<Micros>,
    #[serde(borrow)]
    at: Option<Text<'a>>,
    #[serde(borrow)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    key_b64: Option<Text<'a>>,
    cost: Option<RawCost>,
    #[serde(borrow)]
    policy: Option<Text<'a>>,
}

impl RawLine<'_> {
    fn stamp(&self) -> Result<Timestamp, BadLine> {
        match (&self.at_us, &self.at) {
            (Some(micros), None) => Ok(micros.0),
            (None, Some(at)) => rfc_3339(&at.0),
            (Some(_), Some(_)) => Err(BadLine::new("at_us and at: one stamp is enough (leave one out)")),
            (None, None) => Err(BadLine::new(
                "no stamp (write at_us, microseconds since 1970, or at, as in 2023-11-14T22:13:20Z)",
            )),
        }
    }
}

fn rfc_3339(text: &str) -> Result<Timestamp, BadLine> {
    let refused =
        |rule: &str| BadLine(format!("at: {text:?}: {rule} (write e.g. 2023-11-14T22:13:20.123456Z)"));
    let instant: jiff::Timestamp =
        text.parse().map_err(|_| refused("not a time stamp as RFC 3339 has it"))?;
    // To the microsecond it lies in: rounding up could put it past a check that came later.
    let micros = instant.as_nanosecond().div_euclid(1_000);
    let micros = u64::try_from(micros).map_err(|_| refused("before 1970"))?;
    Timestamp::from_micros(micros).map_err(|error| refused(error.rule()))
}

fn key<'a>(key: Option<Text<'a>>, key_b64: Option<Text<'a>>) -> Result<Cow<'a, [u8]>, BadLine> {
    match (key, key_b64) {
        (Some(Text(Cow::Borrowed(key))), None) => Ok(Cow::Borrowed(key.as_bytes())),
        (Some(Text(Cow::Owned(key))), None) => Ok(Cow::Owned(key.into_bytes())),
        (None, Some(Text(coded))) => decode(&coded).map(Cow::Owned),
        (Some(_), Some(_)) => Err(BadLine::new("key and key_b64: one key is enough (leave one out)")),
        (None, None) => Err(BadLine::new("no key (write key, or key_b64 for bytes that are not UTF-8)")),
    }
}

/// Reads base64 in either alphabet, padded or not, as the HTTP door does.
fn decode(coded: &str) -> Result<Vec<u8>, BadLine> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    let engine = if coded.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    engine.decode(coded).map_err(|error| {
        let shown: String = coded.chars().take(48).collect();
        BadLine(format!("key_b64: {shown:?}: not base64: {error} (write base64, standard or URL-safe)"))
    })
}

/// What the JSON reader says, without the line it counts in its own text.
fn not_a_line(error: &serde_json::Error) -> BadLine {
    let said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let said = said.strip_suffix(&place).unwrap_or(&said);
    let kind = if error.is_data() { "" } else { "not JSON: " };
    BadLine(format!("{kind}{said}, at column {}", error.column()))
}

/// A string, borrowed from the line unless it holds escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Strings)
    }
}

/// A whole number of a field, with words for what else may stand there.
struct Whole {
    field: &'static str,
    /// What the field means, and how to write it.
    mend: &'static str,
}

impl Whole {
    fn refuse<E: Error>(&self, value: impl fmt::Display, rule: &str) -> E {
        E::custom(format_args!("{}: {value} {rule} ({})", self.field, self.mend))
    }
}

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number for {}", self.field)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_err(|_| self.refuse(value, "is negative"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        /// Up to here a float is as exact as an integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        // JSON knows one kind of number: 5.0 is the whole number 5, as over HTTP, and -0 is nothing.
        if value.fract() == 0.0 && (0.0..EXACT).contains(&value) {
            return Ok(value as u64);
        }
        // The JSON reader hands on as a float what is too large for an integer, too.
        let rule = match value {
            ..0.0 => "is negative",
            EXACT.. => "is out of range",
            _ => "is not a whole number",
        };
        Err(self.refuse(value, rule))
    }
}

struct RawCost(Cost);

impl<'de> Deserialize<'de> for RawCost {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = || Whole { field: "cost", mend: "write 0 to 1000000000000" };
        let cost = deserializer.deserialize_u64(whole())?;
        Cost::new(cost).map(RawCost).map_err(|_| whole().refuse(cost, "is out of range"))
    }
}

struct Micros(Timestamp);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole =
            || Whole { field: "at_us", mend: "write microseconds since 1970, up to 9007199254740991" };
        let micros = deserializer.deserialize_u64(whole())?;
        Timestamp::from_micros(micros).map(Micros).map_err(|_| whole().refuse(micros, "is out of range"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_line_says() {
        let full =
            br#" {"cost":0,"policy":"api","key":"\u00e9\"x","at_us":9007199254740991,"more":[{"x":[]}]} "#;
        let line = parse_line(full).unwrap();
        assert_eq!((line.at, line.cost), (Timestamp::MAX, Cost::PEEK));
        assert_eq!((&*line.key, line.policy.as_deref()), ("\u{e9}\"x".as_bytes(), Some("api")));
        let least = parse_line(br#"{"at_us":0,"key":"","cost":null,"policy":null,"at":null}"#).unwrap();
        assert_eq!((&*least.key, least.cost, least.policy), (&b""[..], Cost::ONE, None));
        assert!(matches!(parse_line(br#"{"at_us":0,"key":"k"}"#).unwrap().key, Cow::Borrowed(b"k")));
        let bytes = parse_line(br#"{"at_us":0,"key_b64":"/wA="}"#).unwrap();
        assert_eq!(&*bytes.key, b"\xff\x00");
        let url_safe = parse_line(br#"{"at_us":0,"key_b64":"_wA"}"#).unwrap();
        assert_eq!(url_safe, bytes);
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        for (written, cost) in [("5.0", 5), ("0.0", 0), ("-0", 0), ("-0.0", 0), ("1e12", 1_000_000_000_000)] {
            let line = format!(r#"{{"at_us":1700000000000000.0,"key":"k","cost":{written}}}"#);
            let line = parse_line(line.as_bytes()).unwrap();
            assert_eq!((line.at.as_micros(), line.cost.get()), (1_700_000_000_000_000, cost), "{written}");
        }
    }

    #[test]
    fn reads_stamps_with_offsets_and_fractions() {
        let at = |text: &str| {
            let line = format!(r#"{{"at":"{text}","key":"k"}}"#);
            parse_line(line.as_bytes()).map(|line| line.at.as_micros())
        };
        assert_eq!(at("2023-11-14T22:13:20Z"), Ok(1_700_000_000_000_000));
        assert_eq!(at("2023-11-14T23:13:20.000001+01:00"), Ok(1_700_000_000_000_001));
        assert_eq!(at("1970-01-01T00:00:00.0000019Z"), Ok(1));
        for refused in [
            "1969-12-31T23:59:59.9999999Z",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "now",
            "9000-01-01T00:00:00Z",
        ] {
            let error = at(refused).unwrap_err().to_string();
            assert!(error.starts_with(&format!("at: {refused:?}: ")), "{error}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_line() {
        for (line, said) in [
            (&b""[..], "an empty line"),
            (b" \t", "an empty line"),
            (b"{\"at_us\":0,\"key\":\"k\xff\"}", "byte 20 is not UTF-8"),
            (b"{\"at_us\":0,\"note\":\"\xff\",\"key\":\"k\"}", "is not UTF-8"),
            (b"{\"at_us\":0,\"key\":\"k\"", "not JSON: EOF while parsing an object, at column 20"),
            (b"{\"at_us\":0,\"key\":\"k\"} {", "not JSON: trailing characters, at column 23"),
            (b"at=0 key=k", "not a JSON object (write one a line, as in"),
            (b"[0,null,\"k\",null,1,null]", "not a JSON object"),
            (b"{\"key\":\"k\"}", "no stamp (write at_us"),
            (b"{\"at_us\":0}", "no key (write key"),
            (
                b"{\"at_us\":0,\"at\":\"2023-11-14T22:13:20Z\",\"key\":\"k\"}",
                "at_us and at: one stamp is enough",
            ),
            (b"{\"at_us\":0,\"key\":\"k\",\"key_b64\":\"aw==\"}", "key and key_b64: one key is enough"),
            (b"{\"at_us\":0,\"key\":\"k\",\"key\":\"l\"}", "duplicate field `key`"),
            (b"{\"at_us\":0,\"key\":7}", "invalid type: integer `7`, expected a string, at column 18"),
            (b"{\"at_us\":0,\"key_b64\":\"a\"}", "key_b64: \"a\": "),
            (b"{\"at_us\":-1,\"key\":\"k\"}", "at_us: -1 is negative (write microseconds since 1970"),
            (b"{\"at_us\":1.5,\"key\":\"k\"}", "at_us: 1.5 is not a whole number"),
            (b"{\"at_us\":9007199254740992,\"key\":\"k\"}", "at_us: 9007199254740992 is out of range"),
            (
                b"{\"at_us\":\"5\",\"key\":\"k\"}",
                "invalid type: string \"5\", expected a whole number for at_us",
            ),
            (b"{\"at_us\":0,\"key\":\"k\",\"cost\":-3}", "cost: -3 is negative (write 0 to 1000000000000)"),
            (b"{\"at_us\":0,\"key\":\"k\",\"cost\":0.5}", "cost: 0.5 is not a whole number"),
            (b"{\"at_us\":0,\"key\":\"k\",\"cost\":-1.5}", "cost: -1.5 is negative"),
            (b"{\"at_us\":0,\"key\":\"k\",\"cost\":1000000000001.0}", "cost: 1000000000001 is out of range"),
            (b"{\"at_us\":9007199254740992.0,\"key\":\"k\"}", "at_us: 9007199254740992 is out of range"),
            (b"{\"at_us\":0,\"key\":\"k\",\"cost\":1000000000001}", "cost: 1000000000001 is out of range"),
            (
                b"{\"at_us\":0,\"key\":\"k\",\"cost\":99999999999999999999}",
                "cost: 100000000000000000000 is out of range",
            ),
            (
                b"{\"at_us\":0,\"key\":\"k\",\"cost\":true}",
                "invalid type: boolean `true`, expected a whole number for cost",
            ),
            (b"{\"at_us\":0,\"key\":\"k\",\"policy\":[]}", "invalid type: sequence, expected a string"),
        ] {
            let error = parse_line(line).unwrap_err().to_string();
            assert!(error.contains(said), "{}: {error}", String::from_utf8_lossy(line));
            assert!(!error.contains("line 1"), "{error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        let line = format!(r#"{{"at_us":0,"key":"k","more":{}}}"#, "[".repeat(500_000));
        assert!(parse_line(line.as_bytes()).is_err());
    }
}
