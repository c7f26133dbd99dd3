//! A file as typed.

use super::super::super::errors::{Problems, Site};
use super::super::super::leaf::Leaf;
use super::super::super::reader::{At, Cursor, Field, Fields};
use super::super::leaf::Word;
use super::leaf::{Requests, Truth, UnitWord};

/// A file.
#[derive(Debug)]
pub struct RawFile {
    pub domain: Field<Word>,
    pub descriptors: Vec<RawNode>,
    pub site: Site,
    /// Fields that the other program takes anywhere, where they mean nothing.
    pub idle: Vec<Site>,
}

/// A descriptor.
#[derive(Debug)]
pub struct RawNode {
    pub key: Field<Word>,
    pub value: Field<Word>,
    pub rate_limit: Option<RawLimit>,
    pub descriptors: Vec<RawNode>,
    pub shadow_mode: Field<Truth>,
    pub quota_mode: Field<Truth>,
    pub share_threshold: Field<Truth>,
    /// What says how its metrics are named.
    pub of_metrics: Vec<Site>,
    pub site: Site,
}

/// A limit.
#[derive(Debug)]
pub struct RawLimit {
    pub unit: Field<UnitWord>,
    pub requests_per_unit: Field<Requests>,
    pub unlimited: Field<Truth>,
    pub name: Field<Word>,
    /// The names it replaces; the site where one is missing.
    pub replaces: Vec<Result<At<Word>, Site>>,
    pub site: Site,
}

/// All keys there are. Each is taken wherever it stands, and means nothing outside its place.
const KEYS: [&str; 16] = [
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "quota_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];

const EXAMPLE: &str = "{key: remote_address, rate_limit: {unit: minute, requests_per_unit: 20}}";

impl RawFile {
    pub fn read(root: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        let mut idle = Vec::new();
        let example = format!("domain: edge, and descriptors: [{EXAMPLE}]");
        let file = root.record(&example, problems, |file| {
            let domain = leaf(file, "domain");
            let descriptors = list(file, "descriptors", &mut idle);
            misplaced(file, &["domain", "descriptors"], &mut idle);
            (domain, descriptors)
        });
        let (domain, descriptors) = file?;
        Some(RawFile { domain, descriptors, site: root.site(), idle })
    }
}

impl RawNode {
    fn read(node: &Cursor<'_>, problems: &mut Problems, idle: &mut Vec<Site>) -> Option<Self> {
        node.record(EXAMPLE, problems, |fields| {
            let read = RawNode {
                key: leaf(fields, "key"),
                value: leaf(fields, "value"),
                rate_limit: present(fields, "rate_limit")
                    .and_then(|node| RawLimit::read(&node, fields.problems, idle)),
                descriptors: list(fields, "descriptors", idle),
                shadow_mode: leaf(fields, "shadow_mode"),
                quota_mode: leaf(fields, "quota_mode"),
                share_threshold: leaf(fields, "share_threshold"),
                of_metrics: ["detailed_metric", "value_to_metric", "metadata"]
                    .into_iter()
                    .filter_map(|name| Some(present(fields, name)?.site()))
                    .collect(),
                site: node.site(),
            };
            let own = ["key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode"];
            let metric = ["share_threshold", "detailed_metric", "value_to_metric", "metadata"];
            misplaced(fields, &[&own[..], &metric[..]].concat(), idle);
            read
        })
    }
}

impl RawLimit {
    fn read(node: &Cursor<'_>, problems: &mut Problems, idle: &mut Vec<Site>) -> Option<Self> {
        node.record("{unit: minute, requests_per_unit: 20}", problems, |fields| {
            let read = RawLimit {
                unit: leaf(fields, "unit"),
                requests_per_unit: leaf(fields, "requests_per_unit"),
                unlimited: leaf(fields, "unlimited"),
                name: leaf(fields, "name"),
                replaces: replaces(fields, idle),
                site: node.site(),
            };
            misplaced(fields, &["unit", "requests_per_unit", "unlimited", "name", "replaces"], idle);
            read
        })
    }
}

fn replaces(fields: &mut Fields<'_, '_>, idle: &mut Vec<Site>) -> Vec<Result<At<Word>, Site>> {
    let Some(node) = present(fields, "replaces") else { return Vec::new() };
    let items = node.list("a list, e.g. [{name: base}]", fields.problems).unwrap_or_default();
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        let name = item.record("{name: base}", fields.problems, |fields| {
            let name = leaf::<Word>(fields, "name");
            misplaced(fields, &["name"], idle);
            name
        });
        match name {
            Some(Field::Given(name)) => names.push(Ok(*name)),
            Some(Field::Absent) => names.push(Err(item.site())),
            Some(Field::Wrong) | None => {}
        }
    }
    names
}

fn list(fields: &mut Fields<'_, '_>, name: &'static str, idle: &mut Vec<Site>) -> Vec<RawNode> {
    let Some(node) = present(fields, name) else { return Vec::new() };
    let items = node.list(&format!("- {EXAMPLE}"), fields.problems).unwrap_or_default();
    items.iter().filter_map(|node| RawNode::read(node, fields.problems, idle)).collect()
}

/// A field with nothing in it is as none.
fn present<'t>(fields: &mut Fields<'t, '_>, name: &'static str) -> Option<Cursor<'t>> {
    fields.child(name).filter(|node| !node.is_nothing())
}

fn leaf<T: Leaf>(fields: &mut Fields<'_, '_>, name: &'static str) -> Field<T> {
    match present(fields, name) {
        Some(node) => node.leaf(fields.problems),
        None => Field::Absent,
    }
}

fn misplaced(fields: &mut Fields<'_, '_>, own: &[&str], idle: &mut Vec<Site>) {
    for key in KEYS.into_iter().filter(|key| !own.contains(key)) {
        idle.extend(fields.child(key).map(|node| node.site()));
    }
}
