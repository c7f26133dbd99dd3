//! The file as typed: one structure that mirrors it, and the source of its JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use tidegate::{Algorithm, OnFull, Period, Rate, Units};

use super::checked::{HeaderFamily, ResetStyle};
use super::envoy::raw::{RawDomain, read_domains};
use super::errors::{Fault, Problems, Site};
use super::leaf::{MaxKeys, Name};
use super::reader::{At, Cursor, Field, Fields};
use super::remote::{Label, Layout, OnOutage, RawRedis};
use super::rules::raw::{RawProxies, RawRule, read_rules};
use super::store::StoreKind;

/// What Tidegate limits, where it keeps count and how it tells.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, title = "Tidegate configuration")]
pub(super) struct RawConfig {
    /// Where state is kept.
    #[schemars(default, extend("default" = "memory"))]
    pub store: Field<StoreKind>,
    /// Bounds of the state kept in memory.
    #[schemars(default, with = "RawMemory")]
    pub memory: Option<RawMemory>,
    /// The store that several instances share, where store is the address of one.
    #[schemars(default, with = "RawRedis")]
    pub redis: Option<RawRedis>,
    /// The HTTP headers that tell clients where they stand.
    #[schemars(default, with = "RawHeaders")]
    pub headers: Option<RawHeaders>,
    /// The policies by name. A check that names none meets the only one, else the one named default.
    #[schemars(with = "BTreeMap<String, RawPolicy>", extend("minProperties" = 1, "propertyNames" = names()))]
    pub policies: Option<Named<RawPolicy>>,
    /// What proxies may ask about at /v1/forward-auth/NAME.
    #[schemars(default, with = "Vec<RawRule>")]
    pub rules: Vec<RawRule>,
    /// The proxies whose word on the original request counts; none unless given.
    #[schemars(default, with = "RawProxies")]
    pub trusted_proxies: Option<RawProxies>,
    /// What Envoy's descriptors meet, by domain.
    #[schemars(default, with = "BTreeMap<String, RawDomain>")]
    pub envoy: Named<RawDomain>,
}

/// Values under names of the user's own, in the file's order.
pub(super) type Named<T> = Vec<(At<String>, T)>;

/// Bounds of the state kept in memory.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Memory")]
pub(super) struct RawMemory {
    /// At most so many keys are held at once; unbounded unless given. A key as new needs no place.
    #[schemars(default)]
    pub max_keys: Field<MaxKeys>,
    /// What happens to a new key when max_keys are held: shed drops of a few keys the one soonest as new,
    /// refuse_new answers "overloaded".
    #[schemars(default, extend("default" = "shed"))]
    pub on_full: Field<OnFull>,
}

/// The HTTP headers that tell clients where they stand.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Headers")]
pub(super) struct RawHeaders {
    /// Which headers: x-ratelimit (X-RateLimit-Limit, -Remaining, -Reset), ietf (RateLimit-Policy, RateLimit),
    /// both or none.
    #[schemars(default, extend("default" = "both"))]
    pub family: Field<HeaderFamily>,
    /// X-RateLimit-Reset as seconds from now (delta) or since 1970 (epoch).
    #[schemars(default, extend("default" = "delta"))]
    pub reset: Field<ResetStyle>,
}

/// One to eight limits checked together, all or nothing.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Policy")]
pub(super) struct RawPolicy {
    /// The limits, in order.
    #[schemars(with = "Vec<RawLimit>", length(min = 1, max = 8))]
    pub limits: Field<Vec<RawLimit>>,
    /// Other figures for some keys: by key, or by prefix where the pattern ends in *; the exact key comes
    /// first, then the longest prefix. What is not given here stays as the policy has it.
    #[schemars(default, with = "BTreeMap<String, BTreeMap<String, RawFigures>>")]
    pub overrides: Named<Named<RawFigures>>,
    /// What is answered while a shared store is not: allow, deny or local; as under redis unless given.
    #[schemars(default)]
    pub on_store_error: Field<OnOutage>,
    /// How state lies in a shared store: tidegate, or classic, as the common token-bucket script keeps it.
    #[schemars(default, extend("default" = "tidegate"))]
    pub layout: Field<Layout>,
    /// With layout classic: what the names of its buckets begin with.
    #[schemars(default, extend("default" = "tb:"))]
    pub key_prefix: Field<Label>,
    #[schemars(skip)]
    pub site: Site,
}

/// One limit: an algorithm with its figures. Its JSON Schema is in schema.rs, an alternative per algorithm.
#[derive(Debug)]
pub(super) struct RawLimit {
    pub name: Field<Name>,
    pub algorithm: Field<Algorithm>,
    pub figures: RawFigures,
    pub site: Site,
}

/// The figures a limit may have, whichever its algorithm.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Figures", default)]
pub(super) struct RawFigures {
    /// All that may pass at once from a full bucket; 0 lets nothing pass.
    pub capacity: Field<Units>,
    /// All that may pass at once; 0 lets nothing pass.
    pub burst: Field<Units>,
    /// What may pass in each window; 0 lets nothing pass.
    pub limit: Field<Units>,
    /// What comes back and how often, N/DURATION; 0/s never refills.
    pub refill: Field<Rate>,
    /// What comes back and how often, N/DURATION; 0/s never refills.
    pub rate: Field<Rate>,
    /// What leaks out and how often, N/DURATION; more than 0.
    pub leak: Field<Rate>,
    /// The length of the window. Those of fixed_window and sliding_window_counter begin at whole multiples of
    /// it since 1970, UTC.
    pub window: Field<Period>,
    /// How far below zero forced charges may sink; as much as the capacity or limit unless given.
    pub debt: Field<Units>,
}

fn names() -> serde_json::Value {
    serde_json::json!({ "pattern": super::leaf::NAME_PATTERN })
}

impl RawConfig {
    /// Reads the whole file, telling all that does not fit its form.
    pub fn read(root: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        root.record("policies: {...}", problems, |file| RawConfig {
            store: file.leaf("store"),
            memory: file.child("memory").and_then(|node| RawMemory::read(&node, file.problems)),
            redis: file.child("redis").and_then(|node| RawRedis::read(&node, file.problems)),
            headers: file.child("headers").and_then(|node| RawHeaders::read(&node, file.problems)),
            policies: match file.child("policies") {
                Some(node) => read_policies(&node, file.problems).or(Some(Vec::new())),
                None => None,
            },
            rules: match file.child("rules") {
                Some(node) => read_rules(&node, file.problems),
                None => Vec::new(),
            },
            trusted_proxies: file
                .child("trusted_proxies")
                .and_then(|node| RawProxies::read(&node, file.problems)),
            envoy: match file.child("envoy") {
                Some(node) => read_domains(&node, file.problems),
                None => Vec::new(),
            },
        })
    }
}

fn read_policies(node: &Cursor<'_>, problems: &mut Problems) -> Option<Named<RawPolicy>> {
    let policies = node.named("a policy, e.g. api: {limits: [...]}", problems)?;
    if policies.is_empty() {
        problems.add(&node.site(), Fault::new("no policy", "give at least one, e.g. api: {limits: [...]}"));
    }
    let read = |(name, node): (At<String>, Cursor<'_>)| Some((name, RawPolicy::read(&node, problems)?));
    Some(policies.into_iter().filter_map(read).collect())
}

impl RawMemory {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("e.g. {max_keys: 1000000}, or remove it", problems, |memory| RawMemory {
            max_keys: memory.leaf("max_keys"),
            on_full: memory.leaf("on_full"),
        })
    }
}

impl RawHeaders {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("e.g. {family: both}, or remove it", problems, |headers| RawHeaders {
            family: headers.leaf("family"),
            reset: headers.leaf("reset"),
        })
    }
}

impl RawPolicy {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("{limits: [...]}", problems, |policy| RawPolicy {
            limits: match policy.child("limits") {
                Some(node) => read_limits(&node, policy.problems),
                None => Field::Absent,
            },
            overrides: match policy.child("overrides") {
                Some(node) => read_overrides(&node, policy.problems),
                None => Vec::new(),
            },
            on_store_error: policy.leaf("on_store_error"),
            layout: policy.leaf("layout"),
            key_prefix: policy.leaf("key_prefix"),
            site: node.site(),
        })
    }
}

fn read_limits(node: &Cursor<'_>, problems: &mut Problems) -> Field<Vec<RawLimit>> {
    match node.list("- {algorithm: token_bucket, capacity: 100, refill: 10/s}", problems) {
        Some(items) => {
            let value = items.iter().map(|node| RawLimit::read(node, problems)).collect();
            Field::given_at(value, node.site())
        }
        None => Field::Wrong,
    }
}

fn read_overrides(node: &Cursor<'_>, problems: &mut Problems) -> Named<Named<RawFigures>> {
    let example = r#"e.g. "user:vip": {burst: {capacity: 1000}}"#;
    let patterns = node.named(example, problems).unwrap_or_default();
    let mut overrides = Vec::with_capacity(patterns.len());
    for (pattern, node) in patterns {
        let example = "the limit's name and its figures, e.g. {burst: {capacity: 1000}}";
        let limits = node.named(example, problems).unwrap_or_default();
        // Exactly as many as there are: a file may have a hundred thousand overrides of one limit each.
        let mut read = Vec::with_capacity(limits.len());
        for (name, node) in limits {
            read.extend(RawFigures::read(&node, problems).map(|figures| (name, figures)));
        }
        overrides.push((pattern, read));
    }
    overrides
}

impl RawLimit {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Self {
        let site = node.site();
        let limit =
            node.record("{algorithm: token_bucket, capacity: 100, refill: 10/s}", problems, |limit| {
                let (name, algorithm) = (limit.leaf("name"), limit.leaf("algorithm"));
                (name, algorithm, RawFigures::fields(limit))
            });
        let (name, algorithm, figures) = limit.unwrap_or((Field::Wrong, Field::Wrong, RawFigures::default()));
        RawLimit { name, algorithm, figures, site }
    }
}

impl RawFigures {
    fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("the figures that differ, e.g. {capacity: 1000}", problems, Self::fields)
    }

    fn fields(fields: &mut Fields<'_, '_>) -> Self {
        RawFigures {
            capacity: fields.leaf("capacity"),
            burst: fields.leaf("burst"),
            limit: fields.leaf("limit"),
            refill: fields.leaf("refill"),
            rate: fields.leaf("rate"),
            leak: fields.leaf("leak"),
            window: fields.leaf("window"),
            debt: fields.leaf("debt"),
        }
    }
}
