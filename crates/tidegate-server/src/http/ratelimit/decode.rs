//! From JSON to a question.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use crate::envoy::{Descriptor, Override, Refused, Request, Unit};

/// A `RateLimitRequest`. Names may be in either spelling; `null` is as none.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Message {
    domain: Option<String>,
    descriptors: Option<Vec<RawDescriptor>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawDescriptor {
    entries: Option<Vec<Entry>>,
    limit: Option<RawOverride>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number>,
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: Option<String>,
    value: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawOverride {
    #[serde(alias = "requests_per_unit")]
    requests_per_unit: Option<Number>,
    unit: Option<RawUnit>,
}

/// A whole number, which may stand in quotes or have a fraction of zero.
#[derive(Debug, Clone, Copy)]
struct Number(u64);

/// An `envoy.type.v3.RateLimitUnit`, by name or number.
#[derive(Debug, Clone)]
struct RawUnit(String);

/// Reads a body, whose numbers are as large as those of the message.
pub(super) fn message(body: &[u8]) -> Result<Message, String> {
    let message: Message = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let own = message.hits_addend.iter();
    let limits = message.descriptors.iter().flatten().filter_map(|descriptor| descriptor.limit.as_ref());
    let mut short = own.chain(limits.filter_map(|limit| limit.requests_per_unit.as_ref()));
    match short.find(|number| number.0 > u32::MAX.into()) {
        Some(Number(number)) => Err(format!("{number}: out of range (0 to {})", u32::MAX)),
        None => Ok(message),
    }
}

impl Message {
    /// The question.
    pub fn request(&self) -> Result<Request<'_>, Refused> {
        let descriptors = self.descriptors.iter().flatten().enumerate();
        let descriptors = descriptors.map(|(index, descriptor)| descriptor.read(index));
        Ok(Request {
            domain: self.domain.as_deref().unwrap_or(""),
            descriptors: descriptors.collect::<Result<_, _>>()?,
            hits_addend: short(self.hits_addend),
        })
    }
}

impl RawDescriptor {
    fn read(&self, index: usize) -> Result<Descriptor<'_>, Refused> {
        Ok(Descriptor {
            entries: self.entries.iter().flatten().map(Entry::read).collect(),
            limit: self.limit.as_ref().map(|limit| limit.read(index)).transpose()?,
            hits: self.hits_addend.map(|number| number.0),
            gives_back: self.is_negative_hits.unwrap_or(false),
        })
    }
}

impl Entry {
    fn read(&self) -> (&str, &str) {
        (self.key.as_deref().unwrap_or(""), self.value.as_deref().unwrap_or(""))
    }
}

impl RawOverride {
    fn read(&self, index: usize) -> Result<Override, Refused> {
        let told = self.unit.as_ref().map_or("UNKNOWN", |unit| &unit.0);
        let unit = match told {
            "1" => Some(Unit::Second),
            "2" => Some(Unit::Minute),
            "3" => Some(Unit::Hour),
            "4" => Some(Unit::Day),
            "5" => Some(Unit::Month),
            "6" => Some(Unit::Year),
            // Of this message's own enumeration it is not.
            "WEEK" => None,
            // Only capitals are the names of protobuf.
            name => Unit::named(name).filter(|_| name.bytes().all(|byte| byte.is_ascii_uppercase())),
        };
        let unit = unit.ok_or_else(|| Refused::Unit { index, unit: told.to_owned() })?;
        Ok(Override { requests: short(self.requests_per_unit), unit })
    }
}

/// Of those that have been found to fit.
fn short(number: Option<Number>) -> u32 {
    number.map_or(0, |number| u32::try_from(number.0).unwrap_or(u32::MAX))
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor).map(Number)
    }
}

impl<'de> Deserialize<'de> for RawUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(i32),
            Name(String),
        }
        Ok(RawUnit(match Either::deserialize(deserializer)? {
            Either::Number(number) => number.to_string(),
            Either::Name(name) => name,
        }))
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, not below 0")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        // Above 2^53 a float is no longer one number.
        const MOST: f64 = 9_007_199_254_740_992.0;
        match number.fract() == 0.0 && (0.0..=MOST).contains(&number) {
            true => Ok(number as u64),
            false => Err(E::invalid_value(de::Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}
