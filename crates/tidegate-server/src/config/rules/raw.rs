//! Rules as typed.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tidegate::Units;

use super::super::errors::{Problems, Site};
use super::super::leaf::Leaf;
use super::super::raw::Named;
use super::super::reader::{At, Cursor, Field};
use super::leaf::{HeaderWord, HostWord, MethodWord, PathWord, PolicyWord, Range, RuleName, ValueWord};
use super::{DenyStatus, KeyPart, OnMissing};

/// The proxies whose word on the original request counts.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "TrustedProxies")]
pub struct RawProxies {
    /// Their addresses or ranges of them, such as 10.0.0.0/8.
    #[schemars(with = "Several<Range>")]
    pub addresses: Several<Range>,
    /// The one header that tells the client's address: x-forwarded-for, forwarded, or one that holds a single
    /// address and is set by the proxy, such as x-real-ip.
    #[schemars(default, extend("default" = "x-forwarded-for"))]
    pub client_ip: Field<HeaderWord>,
    #[schemars(skip)]
    pub site: Site,
}

/// What a proxy may ask about at /v1/forward-auth/NAME.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Rule")]
pub struct RawRule {
    /// The name that the address ends in.
    pub name: Field<RuleName>,
    /// The requests it concerns, those that fit in all that is given; every request unless given. Others are
    /// allowed and not charged.
    #[schemars(default, with = "RawMatch")]
    pub r#match: Option<RawMatch>,
    /// The policy; the only one, else the one named default, unless given.
    #[schemars(default)]
    pub policy: Field<PolicyWord>,
    /// Whom a request is charged to: one to eight of header:NAME, ip, path, host, method, query:NAME, const:TEXT.
    #[schemars(with = "Several<KeyPart>")]
    pub key: Several<KeyPart>,
    /// What a request costs: an amount, or a header that tells.
    #[schemars(default, with = "RawCost", extend("default" = 1))]
    pub cost: Option<RawCost>,
    /// What becomes of a request without a part of its key: deny (403), skip (allowed, not charged), or shared
    /// (charged to all such requests together).
    #[schemars(default, extend("default" = "deny"))]
    pub on_missing: Field<OnMissing>,
    /// The status of a denial: 429, or 403 for proxies that understand no other.
    #[schemars(default, extend("default" = 429))]
    pub deny_status: Field<DenyStatus>,
    #[schemars(skip)]
    pub site: Site,
}

/// Which requests a rule concerns.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Match")]
pub struct RawMatch {
    /// The method, or several.
    #[schemars(default, with = "Several<MethodWord>")]
    pub method: Several<MethodWord>,
    /// The path without its query, or several; * at an end stands for anything.
    #[schemars(default, with = "Several<PathWord>")]
    pub path: Several<PathWord>,
    /// The host without its port, or several; * at an end stands for anything.
    #[schemars(default, with = "Several<HostWord>")]
    pub host: Several<HostWord>,
    /// Headers by name and the value each has to have, or several; * at an end stands for anything.
    #[schemars(default, with = "BTreeMap<String, Several<ValueWord>>")]
    pub headers: Named<Several<ValueWord>>,
}

/// What a request costs.
#[derive(Debug)]
pub enum RawCost {
    Fixed(Field<Units>),
    Header(Box<RawHeaderCost>),
}

/// A cost that a header tells.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "HeaderCost")]
pub struct RawHeaderCost {
    /// The header; let the proxy set it, or remove it from what clients send.
    pub header: Field<HeaderWord>,
    /// The cost where the header is missing, 0 or no number; 1 or more.
    #[schemars(default, extend("default" = 1))]
    pub default: Field<Units>,
    /// The most that is charged, whatever the header says.
    pub max: Field<Units>,
    #[schemars(skip)]
    pub site: Site,
}

/// One value, or a list of them; nothing if absent.
#[derive(Debug)]
pub struct Several<T> {
    pub values: Vec<At<T>>,
    /// Where it stands, if it does.
    pub site: Option<Site>,
    pub is_list: bool,
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Several { values: Vec::new(), site: None, is_list: false }
    }
}

impl<T: Leaf> Several<T> {
    fn read(node: Option<Cursor<'_>>, problems: &mut Problems) -> Self {
        let Some(node) = node else { return Self::default() };
        let site = Some(node.site());
        let is_list = node.is_list();
        let items = if is_list { node.list("", problems).unwrap_or_default() } else { vec![node] };
        let all = items.len();
        let values = items.iter().filter_map(|item| match item.leaf::<T>(problems) {
            Field::Given(at) => Some(*at),
            Field::Absent | Field::Wrong => None,
        });
        let values: Vec<At<T>> = values.collect();
        Several { is_list: is_list && all == values.len(), values, site }
    }
}

impl<T: Leaf> JsonSchema for Several<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::EXPECTED.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = T::schema();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

impl JsonSchema for RawCost {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let header = generator.subschema_for::<RawHeaderCost>();
        json_schema!({
            "description": "What a request costs.",
            "anyOf": [Units::schema(), header],
        })
    }
}

impl RawProxies {
    pub fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("e.g. {addresses: [10.0.0.0/8]}, or remove it", problems, |proxies| RawProxies {
            addresses: Several::read(proxies.child("addresses"), proxies.problems),
            client_ip: proxies.leaf("client_ip"),
            site: node.site(),
        })
    }
}

/// Reads the list of rules.
pub fn read_rules(node: &Cursor<'_>, problems: &mut Problems) -> Vec<RawRule> {
    let example = "- {name: writes, match: {method: POST}, policy: api, key: ip}";
    let items = node.list(example, problems).unwrap_or_default();
    items.iter().filter_map(|item| RawRule::read(item, example, problems)).collect()
}

impl RawRule {
    fn read(node: &Cursor<'_>, example: &str, problems: &mut Problems) -> Option<Self> {
        node.record(example.trim_start_matches("- "), problems, |rule| RawRule {
            name: rule.leaf("name"),
            r#match: rule.child("match").and_then(|node| RawMatch::read(&node, rule.problems)),
            policy: rule.leaf("policy"),
            key: Several::read(rule.child("key"), rule.problems),
            cost: rule.child("cost").map(|node| RawCost::read(&node, rule.problems)),
            on_missing: rule.leaf("on_missing"),
            deny_status: rule.leaf("deny_status"),
            site: node.site(),
        })
    }
}

impl RawMatch {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("e.g. {method: POST, path: /v1/*}, or remove it", problems, |it| RawMatch {
            method: Several::read(it.child("method"), it.problems),
            path: Several::read(it.child("path"), it.problems),
            host: Several::read(it.child("host"), it.problems),
            headers: match it.child("headers") {
                Some(node) => read_headers(&node, it.problems),
                None => Vec::new(),
            },
        })
    }
}

fn read_headers(node: &Cursor<'_>, problems: &mut Problems) -> Named<Several<ValueWord>> {
    let headers = node.named("e.g. {x-plan: free}, or remove it", problems).unwrap_or_default();
    headers.into_iter().map(|(name, node)| (name, Several::read(Some(node), problems))).collect()
}

impl RawCost {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Self {
        if !node.is_map() {
            return RawCost::Fixed(node.leaf(problems));
        }
        let header = node.record("e.g. {header: x-cost, max: 100}", problems, |cost| RawHeaderCost {
            header: cost.leaf("header"),
            default: cost.leaf("default"),
            max: cost.leaf("max"),
            site: node.site(),
        });
        header.map_or(RawCost::Fixed(Field::Wrong), |header| RawCost::Header(Box::new(header)))
    }
}
