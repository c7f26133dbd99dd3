//! The section as typed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::super::errors::{Fault, Problems, Site};
use super::super::raw::Named;
use super::super::reader::{At, Cursor, Field};
use super::leaf::{Flag, Word};
use crate::envoy::Charge;

const EXAMPLE: &str = "{key: remote_address, policy: api}";

/// What an entry of a descriptor meets. A descriptor meets, entry by entry, first the one of its key and value,
/// then those whose value has a * in this order, then the one without a value; what is said where its last entry
/// ends counts.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Descriptor")]
pub struct RawDescriptor {
    /// The entry's key.
    pub key: Field<Word>,
    /// The entry's value, each * standing for any text; any value unless given.
    #[schemars(default)]
    pub value: Field<Word>,
    /// The policy that descriptors ending here are under.
    #[schemars(default)]
    pub policy: Field<Word>,
    /// The keys of the entries whose values are the client's key; unless given, the domain and all entries are.
    #[schemars(default, with = "Vec<Field<Word>>")]
    pub by: Vec<At<Word>>,
    /// fits: if all descriptors of the request fit, else none is charged. always: whether it fits or not, so that
    /// costs known afterwards count. As above it, or in the domain, unless given.
    #[schemars(default)]
    pub charge: Field<Charge>,
    /// Descriptors ending here are never refused, and nothing is counted.
    #[schemars(default, extend("default" = false))]
    pub unlimited: Field<Flag>,
    /// Charged and counted, but never refused.
    #[schemars(default, extend("default" = false))]
    pub shadow: Field<Flag>,
    /// Refuses only if all descriptors of this kind do.
    #[schemars(default, extend("default" = false))]
    pub quota: Field<Flag>,
    /// All values that fit the pattern are counted as one.
    #[schemars(default, extend("default" = false))]
    pub share: Field<Flag>,
    /// What others call this in replaces.
    #[schemars(default)]
    pub name: Field<Word>,
    /// Where a request meets this, those of these names do not count.
    #[schemars(default, with = "Vec<Field<Word>>")]
    pub replaces: Vec<At<Word>>,
    /// What the next entry meets.
    #[schemars(default, with = "Vec<RawDescriptor>")]
    pub descriptors: Vec<RawDescriptor>,
    #[schemars(skip)]
    pub site: Site,
}

/// The descriptors of a domain: a list, or a mapping that says more of all of them.
#[derive(Debug, Default)]
pub struct RawDomain {
    pub charge: Field<Charge>,
    pub descriptors: Vec<RawDescriptor>,
}

/// A domain that says more than its descriptors.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Domain")]
#[expect(dead_code, reason = "says what the schema of the longer form is")]
struct LongDomain {
    /// How its descriptors are charged that do not say: fits or always.
    #[schemars(default, extend("default" = "fits"))]
    charge: Field<Charge>,
    /// The descriptors.
    #[schemars(with = "Vec<RawDescriptor>")]
    descriptors: Vec<RawDescriptor>,
}

impl JsonSchema for RawDomain {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyDomain".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (list, long) =
            (generator.subschema_for::<RawDescriptor>(), generator.subschema_for::<LongDomain>());
        json_schema!({ "anyOf": [{ "type": "array", "items": list }, long] })
    }
}

/// Reads the whole section: descriptors by domain.
pub fn read_domains(node: &Cursor<'_>, problems: &mut Problems) -> Named<RawDomain> {
    let domains = node.named("a domain and its descriptors, e.g. edge: [...]", problems).unwrap_or_default();
    let read = |(domain, node): (At<String>, Cursor<'_>)| (domain, RawDomain::read(&node, problems));
    domains.into_iter().map(read).collect()
}

impl RawDomain {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Self {
        if !node.is_map() {
            return RawDomain { charge: Field::Absent, descriptors: read_list(node, problems) };
        }
        let long = node.record("a list of descriptors", problems, |domain| {
            let charge = domain.leaf("charge");
            let descriptors = domain.child("descriptors").map(|node| read_list(&node, domain.problems));
            (charge, descriptors)
        });
        let (charge, descriptors) = long.unwrap_or_default();
        if descriptors.is_none() {
            problems.add(
                &node.site(),
                Fault::new("descriptors is missing", format!("write descriptors: [{EXAMPLE}]")),
            );
        }
        RawDomain { charge, descriptors: descriptors.unwrap_or_default() }
    }
}

fn read_list(node: &Cursor<'_>, problems: &mut Problems) -> Vec<RawDescriptor> {
    let items = node.list(&format!("- {EXAMPLE}"), problems).unwrap_or_default();
    items.iter().filter_map(|node| RawDescriptor::read(node, problems)).collect()
}

fn words(node: Option<Cursor<'_>>, problems: &mut Problems) -> Vec<At<Word>> {
    let items =
        node.and_then(|node| node.list("a list, e.g. [remote_address]", problems)).unwrap_or_default();
    let given = |node: &Cursor<'_>| node.leaf::<Word>(problems).given().cloned();
    items.iter().filter_map(given).collect()
}

impl RawDescriptor {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record(EXAMPLE, problems, |fields| RawDescriptor {
            key: fields.leaf("key"),
            value: fields.leaf("value"),
            policy: fields.leaf("policy"),
            by: words(fields.child("by"), fields.problems),
            charge: fields.leaf("charge"),
            unlimited: fields.leaf("unlimited"),
            shadow: fields.leaf("shadow"),
            quota: fields.leaf("quota"),
            share: fields.leaf("share"),
            name: fields.leaf("name"),
            replaces: words(fields.child("replaces"), fields.problems),
            descriptors: match fields.child("descriptors") {
                Some(node) => read_list(&node, fields.problems),
                None => Vec::new(),
            },
            site: node.site(),
        })
    }
}
