//! The words of this section: how each is read and described.

use schemars::{Schema, json_schema};

use super::super::errors::Fault;
use super::super::leaf::{Choice, Leaf, Scalar};
use crate::envoy::Charge;

/// Any text; a number or a boolean as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word(pub String);

impl Leaf for Word {
    const EXPECTED: &'static str = "a text, e.g. remote_address";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        Ok(Word(scalar.text.to_owned()))
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag(pub bool);

impl Leaf for Flag {
    const EXPECTED: &'static str = "true or false";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        match (scalar.text, scalar.plain) {
            ("true", true) => Ok(Flag(true)),
            ("false", true) => Ok(Flag(false)),
            _ => Err(Fault::new("neither true nor false", "write true or false, without quotes")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

impl Choice for Charge {
    const WHAT: &'static str = "charge";
    const WORDS: &'static [(&'static str, Self)] = &[("fits", Charge::Fits), ("always", Charge::Always)];
    const EXPECTED: &'static str = "fits or always";
}
