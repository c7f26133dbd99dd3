//! The bodies of POSTs.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
use tidegate::Cost;
use utoipa::ToSchema;

use super::field::{FieldName, key, shown, text, units};
use super::{AdjustRequest, CheckRequest, MOST_CHECKS, Subject};
use crate::http::problem::{Problem, ProblemKind};

/// A check: may `key` have `cost` under `policy` now?
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Check)]
pub struct CheckBody<'a> {
    /// The policy; the file's only one if it is left out, else `default`.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, example = "default")]
    policy: Option<&'a RawValue>,
    /// The client's key, up to 4096 bytes in UTF-8.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, example = "user:42")]
    key: Option<&'a RawValue>,
    /// In place of `key` for one that is not UTF-8: its bytes in base64, either alphabet, up to 4096 of them.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, pattern = "^([A-Za-z0-9+/]{4})*$")]
    key_b64: Option<&'a RawValue>,
    /// Units asked for; 0 looks without taking.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<u64>, nullable = false, default = 1, minimum = 0, maximum = 1_000_000_000_000u64)]
    cost: Option<&'a RawValue>,
}

/// A credit or a penalty.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Adjustment)]
pub struct AdjustBody<'a> {
    /// The policy; the file's only one if it is left out, else `default`.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, example = "default")]
    policy: Option<&'a RawValue>,
    /// The client's key, up to 4096 bytes in UTF-8.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, example = "user:42")]
    key: Option<&'a RawValue>,
    /// In place of `key` for one that is not UTF-8: its bytes in base64, either alphabet, up to 4096 of them.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, pattern = "^([A-Za-z0-9+/]{4})*$")]
    key_b64: Option<&'a RawValue>,
    /// Units to give back or to charge.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = u64, required = true, minimum = 0, maximum = 1_000_000_000_000u64)]
    units: Option<&'a RawValue>,
}

/// A key to forget.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Reset)]
pub struct ResetBody<'a> {
    /// The policy; the file's only one if it is left out, else `default`.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, example = "default")]
    policy: Option<&'a RawValue>,
    /// The client's key, up to 4096 bytes in UTF-8.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, example = "user:42")]
    key: Option<&'a RawValue>,
    /// In place of `key` for one that is not UTF-8: its bytes in base64, either alphabet, up to 4096 of them.
    #[serde(borrow, default, deserialize_with = "written")]
    #[schema(value_type = Option<String>, nullable = false, pattern = "^([A-Za-z0-9+/]{4})*$")]
    key_b64: Option<&'a RawValue>,
}

/// Checks independent of one another, decided in order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Batch)]
pub struct BatchBody<'a> {
    /// The checks, up to 1000.
    #[serde(borrow)]
    #[schema(value_type = Vec<CheckBody>, max_items = 1000)]
    checks: Batch<'a>,
}

/// The entries of a batch, each still as written.
#[derive(Debug)]
pub struct Batch<'a>(Vec<&'a RawValue>);

impl<'a> Batch<'a> {
    /// Reads the entries one by one; one that is wrong does not keep the others from being read.
    pub fn checks(&self) -> impl ExactSizeIterator<Item = Result<CheckRequest<'a>, Problem>> {
        self.0.iter().enumerate().map(|(index, entry)| check(entry.get(), Some(index)))
    }
}

/// Reads the body of `POST /v1/check`.
///
/// ```
/// use tidegate_server::http::decode::decode_check;
/// let request = decode_check(br#"{"key": "user:42", "cost": 3}"#).unwrap();
/// assert_eq!((&*request.subject.key, request.cost.get()), (&b"user:42"[..], 3));
/// let problem = decode_check(br#"{"key": "user:42", "cost": 1.5}"#).unwrap_err();
/// assert_eq!(
///     problem.detail(),
///     "cost: 1.5: not a whole number from 0 to 1000000000000 (round it as is fair to the client)",
/// );
/// ```
///
/// # Errors
/// What is wrong, by field.
pub fn decode_check(body: &[u8]) -> Result<CheckRequest<'_>, Problem> {
    check(utf8(body)?, None)
}

/// Reads the body of `POST /v1/credit` and `/v1/penalize`.
///
/// # Errors
/// What is wrong, by field.
pub fn decode_adjust(body: &[u8]) -> Result<AdjustRequest<'_>, Problem> {
    let body: AdjustBody<'_> = object(utf8(body)?, None)?;
    let name = FieldName { name: "units", entry: None };
    let Some(json) = body.units else { return Err(name.problem("missing (say how many units)")) };
    Ok(AdjustRequest {
        units: units(
            name,
            json.get(),
            "a credit and a penalty are opposites: use the other",
            "say how many",
        )?,
        subject: subject(None, body.policy, body.key, body.key_b64)?,
    })
}

/// Reads the body of `POST /v1/reset`.
///
/// # Errors
/// What is wrong, by field.
pub fn decode_reset(body: &[u8]) -> Result<Subject<'_>, Problem> {
    let body: ResetBody<'_> = object(utf8(body)?, None)?;
    subject(None, body.policy, body.key, body.key_b64)
}

/// Reads the body of `POST /v1/check/batch`, its entries only as far as to tell where each ends.
///
/// # Errors
/// A body that is not an object with one list `checks` of at most [`MOST_CHECKS`] entries.
pub fn decode_batch(body: &[u8]) -> Result<Batch<'_>, Problem> {
    let body: BatchBody<'_> = object(utf8(body)?, None)?;
    Ok(body.checks)
}

fn check(json: &str, entry: Option<usize>) -> Result<CheckRequest<'_>, Problem> {
    let body: CheckBody<'_> = object(json, entry)?;
    let cost = match body.cost {
        Some(json) => cost(FieldName { name: "cost", entry }, json.get())?,
        None => Cost::ONE,
    };
    Ok(CheckRequest { subject: subject(entry, body.policy, body.key, body.key_b64)?, cost })
}

fn cost(name: FieldName, json: &str) -> Result<Cost, Problem> {
    let units = units(name, json, "POST /v1/credit gives units back", "leave the field out for a cost of 1")?;
    // Costs and units have the same range.
    Cost::new(units.get()).map_err(|error| name.problem(error.to_string()))
}

fn subject<'a>(
    entry: Option<usize>,
    policy: Option<&'a RawValue>,
    plain: Option<&'a RawValue>,
    base64: Option<&'a RawValue>,
) -> Result<Subject<'a>, Problem> {
    let read = |name, json: Option<&'a RawValue>| -> Result<Option<Cow<'a, str>>, Problem> {
        json.map(|json| text(FieldName { name, entry }, json.get())).transpose()
    };
    let key = key(entry, read("key", plain)?, read("key_b64", base64)?)?;
    Ok(Subject { policy: read("policy", policy)?, key })
}

fn utf8(body: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        let mend = "send JSON in UTF-8; a key that is not UTF-8 goes into key_b64";
        Problem::new(ProblemKind::InvalidRequest, format!("the body is not UTF-8 at byte {at} ({mend})"))
    })
}

/// Reads an object whose fields stay as written.
fn object<'a, T: Deserialize<'a>>(json: &'a str, entry: Option<usize>) -> Result<T, Problem> {
    let invalid = |what: String| match entry {
        Some(entry) => Problem::of_field(format!("checks[{entry}]"), what),
        None => Problem::new(ProblemKind::InvalidRequest, format!("the body: {what}")),
    };
    // Serde would take a list for a struct, its elements for the fields.
    if json.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('[') {
        return Err(invalid(format!("{}: not an object (write {{\"key\": ...}})", shown(json))));
    }
    serde_json::from_str(json).map_err(|error| {
        invalid(match error.classify() {
            Category::Data => error.to_string(),
            Category::Eof if json.is_empty() => "empty (send JSON: {\"key\": ...})".to_owned(),
            _ => format!("not JSON: {error}"),
        })
    })
}

/// A field as it is written, `null` too: what stands there is judged later, by name.
fn written<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

impl<'de: 'a, 'a> Deserialize<'de> for Batch<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_seq(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Batch<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of checks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == MOST_CHECKS {
                let rule = format!("checks: a batch has at most {MOST_CHECKS} (send several)");
                return Err(A::Error::custom(rule));
            }
            entries.push(entry);
        }
        Ok(Batch(entries))
    }
}
