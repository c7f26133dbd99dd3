//! The file as a tree: what was written, and where. The one module that knows the YAML library.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, MessageFormatter, Spanned, UserMessageFormatter};

use super::errors::{Fault, Place, sentence};

/// Values a file may hold.
const MAX_NODES: usize = 1_000_000;

/// Values that aliases may stand for, counted each time.
const MAX_ALIASED: usize = 100_000;

/// Lists and mappings within each other.
const MAX_DEPTH: usize = 32;

/// One value of the file.
#[derive(Debug)]
pub(super) struct Node {
    pub place: Place,
    pub value: Value,
}

/// What a value can be before anybody asks what it should be.
#[derive(Debug)]
pub(super) enum Value {
    /// Nothing after the colon, `null` or `~`.
    Nothing,
    /// Text, quoted or not.
    Text(String),
    /// A number or a boolean, as it stands in the file: `0x10` is not 16 here.
    Plain(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping. The same one may come twice: that is for the reader to refuse.
#[derive(Debug)]
pub(super) struct Key {
    pub place: Place,
    pub text: String,
}

/// Why a text is no tree.
#[derive(Debug)]
pub(super) struct Broken {
    pub place: Place,
    pub fault: Fault,
}

/// Reads `source` as one YAML document.
pub(super) fn parse(source: &str) -> Result<Node, Broken> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_depth: MAX_DEPTH,
            max_recorded_anchor_events: MAX_ALIASED,
            max_recorded_anchor_bytes: 16 * MAX_ALIASED,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
        // Forwarded, so that a key written twice is one error among all others and not the only one seen.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        null_as_string: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        emit_comments: false,
        reject_unsupported_tags: true,
    };
    let root = serde_saphyr::from_str_with_options::<Spanned<Loose>>(source, options);
    root.map(|loose| loose.into_node(source)).map_err(|error| {
        let place = error.location().map_or(Place::START, Place::from);
        Broken { place, fault: fault(&error) }
    })
}

fn fault(error: &Error) -> Fault {
    match error {
        Error::AliasError { error, .. } => fault(error),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => Fault::new(
            format!(
                "too much: a file has up to {MAX_NODES} values, nested up to {MAX_DEPTH} deep, and aliases stand for up to {MAX_ALIASED}"
            ),
            "give whole groups of keys figures by prefix, as in \"acme:*\"",
        ),
        Error::MultipleDocuments { .. } => {
            Fault::new("more than one document", "remove what follows the ---")
        }
        _ => {
            let rule = UserMessageFormatter.format_message(error);
            Fault::new(format!("not valid YAML: {}", sentence(&rule)), "mend it here or just above")
        }
    }
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Place { line: location.line(), column: location.column() }
    }
}

/// Anything at all, as the YAML library guesses its type.
enum Loose {
    Nothing,
    Text(String),
    Plain(String),
    List(Vec<Spanned<Loose>>),
    Map(Vec<(Spanned<String>, Spanned<Loose>)>),
}

trait IntoNode {
    fn into_node(self, source: &str) -> Node;
}

impl IntoNode for Spanned<Loose> {
    fn into_node(self, source: &str) -> Node {
        let value = match self.value {
            Loose::Nothing => Value::Nothing,
            Loose::Text(text) => Value::Text(text),
            Loose::Plain(guess) => Value::Plain(as_written(source, self.defined).unwrap_or(guess)),
            Loose::List(items) => Value::List(items.into_iter().map(|item| item.into_node(source)).collect()),
            Loose::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        (Key { place: key.defined.into(), text: key.value }, value.into_node(source))
                    })
                    .collect(),
            ),
        };
        Node { place: self.defined.into(), value }
    }
}

fn as_written(source: &str, location: Location) -> Option<String> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    source.get(start..start.checked_add(length)?).map(|text| text.trim().to_owned())
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_none<E>(self) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(Loose::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(Loose::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
        Ok(Loose::Plain(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Loose, E> {
        Ok(Loose::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Loose, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Loose::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Loose, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Loose::Map(entries))
    }
}
