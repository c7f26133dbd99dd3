//! Values without parts: how each is read and described.

use schemars::{Schema, json_schema};
use tidegate::{Algorithm, OnFull, Period, Rate, Units};

use super::checked::{HeaderFamily, ResetStyle};
use super::errors::{Fault, quoted, shortened};
use super::figures::{parse_period, parse_rate, parse_units};
use super::number::{Number, whole};
use super::store::StoreKind;
use super::suggest::one_of;
use super::yaml::Value;

/// A value without parts, as meant.
pub(super) trait Leaf: Sized {
    /// What to write, for whoever wrote a list or nothing at all.
    const EXPECTED: &'static str;

    /// Reads the text that stands in the file.
    fn read(scalar: Scalar<'_>) -> Result<Self, Fault>;

    /// Whether a text that is wrong may hold a secret all the same, and is not to be shown.
    fn may_be_secret(_text: &str) -> bool {
        false
    }

    /// Its JSON Schema.
    fn schema() -> Schema;
}

/// Text as it stands in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar<'t> {
    pub text: &'t str,
    /// Whether YAML takes it for a number or a boolean; what is in quotes never is.
    pub plain: bool,
}

/// Reads any value of the file as a leaf.
pub(super) fn read<T: Leaf>(value: &Value) -> Result<T, Fault> {
    let wrong = |rule: &str| Err(Fault::new(rule, format!("write {}", T::EXPECTED)));
    match value {
        Value::Text(text) => T::read(Scalar { text, plain: false }),
        Value::Plain(text) => T::read(Scalar { text, plain: true }),
        Value::Nothing => wrong("no value"),
        Value::List(_) => wrong("a list is no value here"),
        Value::Map(_) => wrong("a mapping is no value here"),
    }
}

impl Leaf for Units {
    const EXPECTED: &'static str = "a whole number, e.g. 100";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        if !scalar.plain
            && let Number::Whole(number) = whole(scalar.text)
        {
            return Err(Fault::new("text, not a number", format!("write {number} without quotes")));
        }
        parse_units(scalar.text)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": Units::MAX.get() })
    }
}

impl Leaf for Rate {
    const EXPECTED: &'static str = "a rate, e.g. 10/s";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        parse_rate(scalar.text)
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(0|[1-9][0-9]*)/([1-9][0-9]*)?(us|ms|s|min|h|d|w)$",
            "examples": ["10/s", "3/7s", "1/30d"],
        })
    }
}

impl Leaf for Period {
    const EXPECTED: &'static str = "a duration, e.g. 1d";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        parse_period(scalar.text)
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^([1-9][0-9]*)?(us|ms|s|min|h|d|w)$",
            "examples": ["1s", "90min", "1d"],
        })
    }
}

/// The name of a limit: it is shown in HTTP headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(pub String);

impl Leaf for Name {
    const EXPECTED: &'static str = "a name, e.g. burst";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        name_fault(scalar.text).map_or_else(|| Ok(Name(scalar.text.to_owned())), Err)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": NAME_PATTERN })
    }
}

/// What a name has to match, as a regular expression.
pub(super) const NAME_PATTERN: &str = "^[ -~]{1,128}$";

/// What is wrong with a name, if anything is.
pub(super) fn name_fault(name: &str) -> Option<Fault> {
    let printable = name.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if printable && (1..=128).contains(&name.len()) {
        return None;
    }
    let rule = "a name is 1 to 128 printable ASCII characters, since it is shown in HTTP headers";
    Some(Fault::new(rule, "rename it"))
}

/// How many keys are held at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaxKeys(pub u64);

impl Leaf for MaxKeys {
    const EXPECTED: &'static str = "a whole number, e.g. 1000000, or remove the line for no bound";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        match Units::read(scalar)?.get() {
            0 => Err(Fault::new("no key could be held", "write 1 or more, or remove the line for no bound")),
            keys => Ok(MaxKeys(keys)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": Units::MAX.get() })
    }
}

impl Leaf for StoreKind {
    const EXPECTED: &'static str = "memory, or an address such as redis://host:6379/0";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        if scalar.text.contains("://") {
            return super::remote::address(scalar.text).map(StoreKind::Shared);
        }
        one_of(scalar.text, "store", &[("memory", ())]).map(|()| StoreKind::Memory).map_err(|fault| {
            if fault.mend.starts_with("did you mean") {
                fault
            } else {
                super::remote::no_address(scalar.text)
            }
        })
    }

    fn may_be_secret(text: &str) -> bool {
        text.contains('@')
    }

    fn schema() -> Schema {
        json_schema!({
            "anyOf": [{ "const": "memory" }, { "type": "string", "pattern": "^[a-z+]+://" }],
            "examples": ["memory", "redis://host:6379/0", "redis+cluster://a,b,c"],
        })
    }
}

/// A value that is one of a few words.
pub(super) trait Choice: Sized + Copy + 'static {
    const WHAT: &'static str;
    const WORDS: &'static [(&'static str, Self)];
    const EXPECTED: &'static str;
}

impl<T: Choice> Leaf for T {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        one_of(scalar.text, T::WHAT, T::WORDS)
    }

    fn schema() -> Schema {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json_schema!({ "enum": words })
    }
}

impl Choice for Algorithm {
    const WHAT: &'static str = "algorithm";
    const WORDS: &'static [(&'static str, Self)] = &[
        (Algorithm::TokenBucket.name(), Algorithm::TokenBucket),
        (Algorithm::Gcra.name(), Algorithm::Gcra),
        (Algorithm::LeakyBucket.name(), Algorithm::LeakyBucket),
        (Algorithm::FixedWindow.name(), Algorithm::FixedWindow),
        (Algorithm::SlidingWindowLog.name(), Algorithm::SlidingWindowLog),
        (Algorithm::SlidingWindowCounter.name(), Algorithm::SlidingWindowCounter),
    ];
    const EXPECTED: &'static str = "an algorithm, e.g. token_bucket";
}

impl Choice for OnFull {
    const WHAT: &'static str = "choice";
    const WORDS: &'static [(&'static str, Self)] =
        &[("shed", OnFull::Shed), ("refuse_new", OnFull::RefuseNew)];
    const EXPECTED: &'static str = "shed or refuse_new";
}

impl Choice for HeaderFamily {
    const WHAT: &'static str = "family";
    const WORDS: &'static [(&'static str, Self)] = &[
        (HeaderFamily::Both.name(), HeaderFamily::Both),
        (HeaderFamily::XRateLimit.name(), HeaderFamily::XRateLimit),
        (HeaderFamily::Ietf.name(), HeaderFamily::Ietf),
        (HeaderFamily::None.name(), HeaderFamily::None),
    ];
    const EXPECTED: &'static str = "both, x-ratelimit, ietf or none";
}

impl Choice for ResetStyle {
    const WHAT: &'static str = "choice";
    const WORDS: &'static [(&'static str, Self)] =
        &[(ResetStyle::Delta.name(), ResetStyle::Delta), (ResetStyle::Epoch.name(), ResetStyle::Epoch)];
    const EXPECTED: &'static str = "delta or epoch";
}

/// A value as an error shows it: text in quotes, numbers as they stand, nothing for what does not fit a line.
pub(super) fn written(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(quoted(text)),
        Value::Plain(text) => Some(shortened(text)),
        Value::Nothing | Value::List(_) | Value::Map(_) => None,
    }
}
