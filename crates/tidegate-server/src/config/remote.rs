//! The store that several instances share: where it is, and what is answered while it is not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use schemars::{JsonSchema, Schema, json_schema};
use tidegate::{Algorithm, Period, Policy, PolicySet};

use super::errors::{Fault, Problems};
use super::leaf::{Choice, Leaf, Scalar};
use super::raw::{Named, RawPolicy};
use super::reader::{Cursor, Field, step};

/// What a policy answers while the store does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOutage {
    /// Everything passes, uncounted.
    Allow,
    /// Nothing is decided: clients are told that the service is unavailable.
    Deny,
    /// Each instance enforces its own share of the limit.
    #[default]
    Local,
}

/// What happens to a record in the store that is damaged or not tidegate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// The check fails, and the error names the record.
    #[default]
    Refuse,
    /// The record is deleted: the key is as one never seen.
    StartAnew,
}

/// How a policy's state lies in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Exact, all limits of a client in one record.
    #[default]
    Tidegate,
    /// As the common token-bucket script keeps it.
    Classic,
}

/// Settings of the store that several instances share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedStore {
    /// What all its keys begin with; the store's own choice unless given.
    pub prefix: Option<String>,
    /// How long an answer is waited for; the store's own choice unless given.
    pub timeout: Option<Duration>,
    /// What policies answer while the store does not, unless they say otherwise.
    pub on_store_error: OnOutage,
    /// The same of the policies that do.
    pub on_store_error_of: BTreeMap<String, OnOutage>,
    /// Which of how many instances this one is: `2/5`.
    pub replica: Option<String>,
    /// The one slot of a cluster that all keys are put into.
    pub partition: Option<String>,
    /// What happens to records that are not tidegate's.
    pub on_damaged: OnDamage,
    /// The policies kept in the classic layout, and what the names of their buckets begin with.
    pub classic: BTreeMap<String, String>,
}

/// The store that several instances share.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Redis")]
pub(super) struct RawRedis {
    /// What all keys in the server begin with; stores under different prefixes share nothing.
    #[schemars(default, extend("default" = "tg1"))]
    pub prefix: Field<Label>,
    /// How long an answer is waited for.
    #[schemars(default, extend("default" = "50ms"))]
    pub timeout: Field<Period>,
    /// What policies answer while the server does not: allow, deny, or local, this instance's share of the limit.
    #[schemars(default, extend("default" = "local"))]
    pub on_store_error: Field<OnOutage>,
    /// Which of how many instances this one is, for its share.
    #[schemars(default, extend("default" = "1/1"))]
    pub replica: Field<Replica>,
    /// Puts all keys into one slot of a cluster, so that several can be charged as one.
    #[schemars(default)]
    pub partition: Field<Label>,
    /// What happens to a record that is damaged or not tidegate's.
    #[schemars(default, extend("default" = "refuse"))]
    pub on_damaged: Field<OnDamage>,
}

impl RawRedis {
    pub fn read(node: &Cursor<'_>, problems: &mut Problems) -> Option<Self> {
        node.record("e.g. {timeout: 50ms}, or remove it", problems, |redis| RawRedis {
            prefix: redis.leaf("prefix"),
            timeout: redis.leaf("timeout"),
            on_store_error: redis.leaf("on_store_error"),
            replica: redis.leaf("replica"),
            partition: redis.leaf("partition"),
            on_damaged: redis.leaf("on_damaged"),
        })
    }
}

impl SharedStore {
    /// What differs from `built` and is not for a store that runs.
    pub(super) fn waiting(&self, built: &SharedStore) -> Vec<String> {
        let differ = [
            ("redis.prefix", self.prefix != built.prefix),
            ("redis.timeout", self.timeout != built.timeout),
            ("redis.replica", self.replica != built.replica),
            ("redis.partition", self.partition != built.partition),
            ("redis.on_damaged", self.on_damaged != built.on_damaged),
        ];
        let mut names: Vec<String> =
            differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect();
        let policies: BTreeSet<&String> = self.classic.keys().chain(built.classic.keys()).collect();
        for policy in policies {
            let path = step("policies", policy);
            match (self.classic.get(policy), built.classic.get(policy)) {
                (Some(now), Some(before)) if now == before => {}
                (Some(_), Some(_)) => names.push(format!("{path}.key_prefix")),
                _ => names.push(format!("{path}.layout")),
            }
        }
        names
    }

    /// Whether the file gives `redis` anything that is not as it would be without.
    pub(super) fn is_given(&self) -> bool {
        let of_policies = SharedStore {
            classic: self.classic.clone(),
            on_store_error_of: self.on_store_error_of.clone(),
            ..SharedStore::default()
        };
        *self != of_policies
    }
}

/// The settings meant by `raw` and by what policies say for themselves.
pub(super) fn shared_store(
    raw: Option<&RawRedis>,
    policies: &Named<RawPolicy>,
    checked: &PolicySet,
    problems: &mut Problems,
) -> SharedStore {
    let own =
        policies.iter().filter_map(|(name, raw)| Some((name.value.clone(), raw.on_store_error.value()?)));
    let text = |field: &Field<Label>| field.given().map(|at| at.value.0.clone());
    let settings = SharedStore {
        on_store_error_of: own.collect(),
        classic: classic(policies, checked, problems),
        ..SharedStore::default()
    };
    let Some(raw) = raw else { return settings };
    SharedStore {
        prefix: text(&raw.prefix),
        timeout: raw.timeout.value().map(|period| Duration::from_micros(period.as_micros())),
        on_store_error: raw.on_store_error.value().unwrap_or_default(),
        replica: raw.replica.given().map(|at| at.value.0.clone()),
        partition: text(&raw.partition),
        on_damaged: raw.on_damaged.value().unwrap_or_default(),
        ..settings
    }
}

/// The policies in the classic layout, each of which has to be one that can be.
fn classic(
    policies: &Named<RawPolicy>,
    checked: &PolicySet,
    problems: &mut Problems,
) -> BTreeMap<String, String> {
    let mut classic = BTreeMap::new();
    let mut taken: HashMap<&str, &str> = HashMap::new();
    for (name, raw) in policies {
        let prefix = raw.key_prefix.given();
        let Some(layout) = raw.layout.given().filter(|layout| layout.value == Layout::Classic) else {
            if let Some(prefix) = prefix {
                let fault = Fault::new(
                    "only layout: classic names its keys itself",
                    "remove it, or give layout: classic",
                );
                problems.add(&prefix.site, fault);
            }
            continue;
        };
        if let Some(policy) = checked.get(&name.value)
            && !is_possible(policy)
        {
            let rule = "the classic layout keeps one token_bucket that refills, for every key";
            problems.add(&layout.site, Fault::new(rule, "remove it, or give one such limit"));
        }
        let text = prefix.map_or("tb:", |prefix| prefix.value.0.as_str());
        if let Some(other) = taken.insert(text, &name.value) {
            let rule = format!("policy {other:?} keeps its buckets under {text:?} too");
            let site = prefix.map_or(&layout.site, |prefix| &prefix.site);
            problems.add(site, Fault::new(rule, "give one of them another key_prefix"));
        }
        classic.insert(name.value.clone(), text.to_owned());
    }
    classic
}

fn is_possible(policy: &Policy) -> bool {
    let plans = std::iter::once(policy.plan()).chain(policy.overrides().map(|(_, plan)| plan));
    plans.into_iter().all(|plan| match plan.limits() {
        [limit] => {
            limit.algorithm() == Algorithm::TokenBucket && limit.rate().is_some_and(|rate| !rate.is_zero())
        }
        _ => false,
    })
}

/// Part of a name in the store: any text that is not too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label(pub String);

impl Leaf for Label {
    const EXPECTED: &'static str = "a short text, e.g. tg1";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        match scalar.text.len() {
            1..=128 => Ok(Label(scalar.text.to_owned())),
            length => Err(Fault::new(format!("{length} bytes: it has 1 to 128"), "write e.g. tg1")),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 128 })
    }
}

/// Which of how many instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replica(pub String);

impl Leaf for Replica {
    const EXPECTED: &'static str = "a number of how many, e.g. 2/5";

    fn read(scalar: Scalar<'_>) -> Result<Self, Fault> {
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
            text.parse::<u32>().ok().filter(|number| digits && (1..=10_000).contains(number))
        };
        let read = |text: &str| {
            let (replica, of) = text.split_once('/')?;
            Some(number(replica)? <= number(of)?)
        };
        match read(scalar.text) {
            Some(true) => Ok(Replica(scalar.text.to_owned())),
            _ => Err(Fault::new(
                "not one of so many instances",
                format!("write {}, at most 10000/10000", Self::EXPECTED),
            )),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[1-9][0-9]{0,4}/[1-9][0-9]{0,4}$" })
    }
}

impl OnOutage {
    /// The word the file uses.
    pub const fn name(self) -> &'static str {
        match self {
            OnOutage::Allow => "allow",
            OnOutage::Deny => "deny",
            OnOutage::Local => "local",
        }
    }
}

impl Choice for OnOutage {
    const WHAT: &'static str = "choice";
    const WORDS: &'static [(&'static str, Self)] =
        &[("allow", OnOutage::Allow), ("deny", OnOutage::Deny), ("local", OnOutage::Local)];
    const EXPECTED: &'static str = "allow, deny or local";
}

impl Choice for OnDamage {
    const WHAT: &'static str = "choice";
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", OnDamage::Refuse), ("start_anew", OnDamage::StartAnew)];
    const EXPECTED: &'static str = "refuse or start_anew";
}

impl Choice for Layout {
    const WHAT: &'static str = "layout";
    const WORDS: &'static [(&'static str, Self)] =
        &[("tidegate", Layout::Tidegate), ("classic", Layout::Classic)];
    const EXPECTED: &'static str = "tidegate or classic";
}

/// Says what is wrong with the address of a store, if anything is: whoever opens stores knows how they are written.
pub type AddressRule = fn(&str) -> Result<(), Fault>;

const SCHEMES: &str = "redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster://, \
                       rediss+cluster://, redis+unix:// or unix://, with valkey for redis as you like";

/// A place that is said to be a store's, before anybody has looked at it closely.
pub(super) fn address(text: &str) -> Result<String, Fault> {
    const FAMILIES: [&str; 3] = ["redis", "valkey", "unix"];
    let scheme = text.split("://").next().unwrap_or_default();
    let family = scheme.split('+').next().unwrap_or_default();
    let family = family.strip_suffix('s').filter(|it| FAMILIES.contains(it)).unwrap_or(family);
    if !FAMILIES.contains(&family) {
        return Err(Fault::new(
            "unknown store",
            format!("write memory, or an address that begins with {SCHEMES}"),
        ));
    }
    Ok(text.to_owned())
}

/// What is wrong with a text that is neither an address nor a word that is known.
pub(super) fn no_address(text: &str) -> Fault {
    match text {
        "redis" | "valkey" => Fault::new("no address", format!("write where it is: {text}://host:6379/0")),
        _ => Fault::new("unknown store", "write memory, or an address such as redis://host:6379/0"),
    }
}
