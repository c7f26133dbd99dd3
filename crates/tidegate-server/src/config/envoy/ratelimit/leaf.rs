//! Values as the other program reads them.

use schemars::{Schema, json_schema};

use super::super::super::errors::Fault;
use super::super::super::leaf::{Leaf, Scalar};
use crate::envoy::Unit;

/// Yes or no, in any of the words that YAML once had for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth(pub bool);

impl Leaf for Truth {
    const EXPECTED: &'static str = "true or false";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        match scalar.text {
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                Ok(Truth(true))
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                Ok(Truth(false))
            }
            _ => Err(Fault::new("neither true nor false", "write true or false")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// How many requests: a number of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests(pub u32);

impl Leaf for Requests {
    const EXPECTED: &'static str = "a whole number, e.g. 20";

    /// With the bases and separators of YAML 1.1: a leading 0 makes a number octal.
    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let digits = scalar.text.replace('_', "");
        let digits = digits.strip_prefix('+').unwrap_or(&digits);
        let based =
            |prefix: &str, base| digits.strip_prefix(prefix).map(|digits| u32::from_str_radix(digits, base));
        let read = based("0x", 16)
            .or_else(|| based("0b", 2))
            .or_else(|| based("0o", 8))
            .or_else(|| {
                digits.strip_prefix('0').filter(|it| !it.is_empty()).map(|it| u32::from_str_radix(it, 8))
            })
            .unwrap_or_else(|| digits.parse());
        // A second sign is no digit, though the parser takes one.
        match read {
            Ok(requests) if !digits.contains(['+', '-']) => Ok(Requests(requests)),
            _ => Err(Fault::new("no whole number from 0 to 4294967295", "write e.g. 20")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

/// A unit, in any case; what is none is kept, since beside `unlimited` nobody reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitWord {
    /// One that there is.
    Known(Unit),
    /// Any other text.
    Unknown(String),
}

impl Leaf for UnitWord {
    const EXPECTED: &'static str = "second, minute, hour, day, week, month or year";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let unknown = || UnitWord::Unknown(scalar.text.to_owned());
        Ok(Unit::named(scalar.text).map_or_else(unknown, UnitWord::Known))
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string" })
    }
}
