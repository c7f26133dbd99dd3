//! The words of rules: how each is read and described.

use http::{HeaderName, Method};
use schemars::{Schema, json_schema};
use tidegate_fields::client_ip::Cidr;

use super::super::errors::Fault;
use super::super::leaf::{Choice, Leaf, Name, Scalar};
use super::super::suggest::did_you_mean;
use super::{DenyStatus, KeyPart, OnMissing, Pattern};

/// The name of a rule: it stands in an address.
#[derive(Debug)]
pub struct RuleName(pub String);

impl Leaf for RuleName {
    const EXPECTED: &'static str = "a name, e.g. writes";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let text = scalar.text;
        if text.bytes().all(plain) && (1..=128).contains(&text.len()) && !text.starts_with('.') {
            return Ok(RuleName(text.to_owned()));
        }
        let rule = "a rule's name is 1 to 128 letters, digits, '-', '_' or '.', since addresses end in it";
        Err(Fault::new(rule, "rename it"))
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$" })
    }
}

/// The name of a policy.
#[derive(Debug)]
pub struct PolicyWord(pub String);

impl Leaf for PolicyWord {
    const EXPECTED: &'static str = "a policy's name, e.g. api";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        Name::read(scalar).map(|name| PolicyWord(name.0))
    }

    fn schema() -> Schema {
        Name::schema()
    }
}

/// The name of a header.
#[derive(Debug)]
pub struct HeaderWord(pub HeaderName);

impl Leaf for HeaderWord {
    const EXPECTED: &'static str = "a header's name, e.g. x-api-key";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        header(scalar.text).map(HeaderWord)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": format!("^{TOKEN}$") })
    }
}

/// What a token of HTTP is made of.
const TOKEN: &str = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

/// A header by its name.
pub(super) fn header(text: &str) -> Result<HeaderName, Fault> {
    HeaderName::try_from(text)
        .map_err(|_| Fault::new("not a header's name", "write letters, digits and '-', e.g. x-api-key"))
}

/// A method.
#[derive(Debug)]
pub struct MethodWord(pub Method);

impl Leaf for MethodWord {
    const EXPECTED: &'static str = "a method, e.g. POST";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let text = scalar.text;
        let upper = text.to_uppercase();
        if upper != text {
            return Err(Fault::new("methods are told apart by case", format!("write {upper}")));
        }
        let method = Method::from_bytes(text.as_bytes());
        method.map(MethodWord).map_err(|_| Fault::new("not a method", "write e.g. POST"))
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Z-]+$" })
    }
}

/// A path to compare with.
#[derive(Debug)]
pub struct PathWord(pub Pattern);

impl Leaf for PathWord {
    const EXPECTED: &'static str = "a path, e.g. /v1/*";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let text = scalar.text;
        if !text.starts_with(['/', '*']) {
            return Err(Fault::new(
                "a path begins with / (or with * for any ending)",
                format!("write /{text}"),
            ));
        }
        if text.contains(['?', '#']) {
            let rule = "a path has no query: only what stands before the ? is compared";
            return Err(Fault::new(rule, "cut it off, or key by query:NAME"));
        }
        let bytes = text.as_bytes();
        if bytes.windows(3).any(|it| it[0] == b'%' && it[1..].iter().all(u8::is_ascii_hexdigit)) {
            return Err(Fault::new("paths are compared with their escapes undone", "write it without them"));
        }
        if text.contains("//") || text.contains("/./") || text.contains("/../") {
            return Err(Fault::new("paths are compared with // and dots resolved", "write it without them"));
        }
        pattern(text).map(PathWord)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^(\\*|/)[^?#]*$" })
    }
}

/// A host to compare with, in lower case.
#[derive(Debug)]
pub struct HostWord(pub Pattern);

impl Leaf for HostWord {
    const EXPECTED: &'static str = "a host, e.g. api.example.com";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let text = scalar.text.to_ascii_lowercase();
        if text.is_empty() || text.contains(['/', ' ', '@']) {
            return Err(Fault::new("not a host", "write e.g. api.example.com"));
        }
        if !text.starts_with('[') && text.contains(':') {
            return Err(Fault::new("hosts are compared without their port", "cut it off"));
        }
        pattern(&text).map(HostWord)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^([^/ @:]+|\\[[^/ @]+)$" })
    }
}

/// A header's value to compare with.
#[derive(Debug)]
pub struct ValueWord(pub Pattern);

impl Leaf for ValueWord {
    const EXPECTED: &'static str = "a header's value in quotes, or * for any";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        if scalar.plain {
            return Err(Fault::new("not a text", format!("write {:?}", scalar.text)));
        }
        pattern(scalar.text).map(ValueWord)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// A text with stars at its ends only.
fn pattern(text: &str) -> Result<Pattern, Fault> {
    let pattern = Pattern::new(text);
    if pattern.fixed().contains('*') {
        return Err(Fault::new("a * stands only at the beginning or the end", "write e.g. /v1/*"));
    }
    Ok(pattern)
}

/// A range of addresses.
#[derive(Debug)]
pub struct Range(pub Cidr);

impl Leaf for Range {
    const EXPECTED: &'static str = "an address or a range of them, e.g. 10.0.0.0/8";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        scalar.text.parse().map(Range).map_err(|error: tidegate_fields::client_ip::CidrError| {
            // It says "TEXT: RULE (MEND)"; the text is shown already.
            let said = error.to_string();
            let rule = said.split_once("\": ").map_or(&*said, |(_, rule)| rule);
            match rule.rsplit_once(" (") {
                Some((rule, mend)) => Fault::new(rule, mend.trim_end_matches(')')),
                None => Fault::new(rule, "write ADDRESS/BITS, such as 10.0.0.0/8"),
            }
        })
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$" })
    }
}

/// The kinds of a key's parts that stand alone.
const ALONE: [(&str, KeyPart); 4] =
    [("ip", KeyPart::Ip), ("path", KeyPart::Path), ("host", KeyPart::Host), ("method", KeyPart::Method)];

impl Leaf for KeyPart {
    const EXPECTED: &'static str = "a part of the key, e.g. header:x-api-key or ip";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let text = scalar.text;
        if let Some((_, part)) = ALONE.iter().find(|(word, _)| *word == text) {
            return Ok(part.clone());
        }
        let named = |kind: &str, name: &str| match name.is_empty() {
            true => Err(Fault::new(format!("{kind} of what?"), format!("write e.g. {kind}:name"))),
            false => Ok(name.to_owned()),
        };
        match text.split_once(':') {
            Some(("header", name)) => {
                named("header", name).and_then(|name| header(&name)).map(KeyPart::Header)
            }
            Some(("query", name)) => named("query", name).map(KeyPart::Query),
            Some(("const", name)) => named("const", name).map(KeyPart::Const),
            _ => {
                let known = ["header:NAME", "ip", "path", "host", "method", "query:NAME", "const:TEXT"];
                Err(Fault::new("no part of a key", did_you_mean(text, &known)))
            }
        }
    }

    fn schema() -> Schema {
        let pattern = format!("^(ip|path|host|method|header:{TOKEN}|query:.+|const:.+)$");
        json_schema!({ "type": "string", "pattern": pattern, "examples": ["ip", "header:x-api-key"] })
    }
}

impl Choice for OnMissing {
    const WHAT: &'static str = "choice";
    const WORDS: &'static [(&'static str, Self)] =
        &[("deny", OnMissing::Deny), ("skip", OnMissing::Skip), ("shared", OnMissing::Shared)];
    const EXPECTED: &'static str = "deny, skip or shared";
}

impl Leaf for DenyStatus {
    const EXPECTED: &'static str = "429 or 403";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        match (scalar.text, scalar.plain) {
            ("429", true) => Ok(DenyStatus::TooManyRequests),
            ("403", true) => Ok(DenyStatus::Forbidden),
            _ => Err(Fault::new("a denial has one of two statuses", "write 429 or 403, without quotes")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "enum": [429, 403] })
    }
}
