//! Rules for requests that a proxy asks about: whom each concerns, under which policy, at what cost.

mod check;
mod leaf;
mod pattern;
pub(super) mod raw;
mod words;

use std::net::IpAddr;

use http::{HeaderName, Method};
use tidegate::Cost;
use tidegate_fields::client_ip::{Cidr, ClientIp};

pub(super) use check::{proxies, rules};
pub use pattern::Pattern;
pub use words::{proxies_in_words, rule_in_words};

/// What proxies may ask about, and which proxies are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gateway {
    pub(crate) rules: Vec<Rule>,
    pub(crate) proxies: TrustedProxies,
}

/// The proxies whose word on the original request counts: none unless given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies {
    pub(crate) addresses: Vec<Cidr>,
    pub(crate) header: Option<HeaderName>,
    pub(crate) client_ip: ClientIp,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) name: String,
    pub(crate) matches: Match,
    pub(crate) policy: String,
    pub(crate) key: Vec<KeyPart>,
    pub(crate) cost: RuleCost,
    pub(crate) on_missing: OnMissing,
    pub(crate) deny_status: DenyStatus,
}

/// Which requests a rule concerns: those that fit in everything given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Match {
    /// Any of these; empty for every method. So it is with the others.
    pub methods: Vec<Method>,
    pub paths: Vec<Pattern>,
    pub hosts: Vec<Pattern>,
    pub headers: Vec<(HeaderName, Vec<Pattern>)>,
}

/// A part of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPart {
    Header(HeaderName),
    Query(String),
    Const(String),
    Ip,
    Path,
    Host,
    Method,
}

/// What a request costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleCost {
    Fixed(Cost),
    /// What the header says; `default` where it says nothing that can be charged, never above `max`.
    Header {
        name: HeaderName,
        default: Cost,
        max: Cost,
    },
}

/// What becomes of a request that lacks a part of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnMissing {
    #[default]
    Deny,
    Skip,
    Shared,
}

/// The status of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DenyStatus {
    #[default]
    TooManyRequests,
    Forbidden,
}

impl Gateway {
    /// The rules, in the file's order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The proxies that are believed.
    pub fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    /// The rule of this name.
    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }
}

impl TrustedProxies {
    /// Whether no proxy is believed.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether what this peer says of others' requests counts.
    pub(crate) fn believe(&self, peer: Option<IpAddr>) -> bool {
        peer.is_some_and(|peer| self.addresses.iter().any(|range| range.contains(peer)))
    }
}

impl Rule {
    /// Its name, which the address proxies ask at ends in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policy its requests are charged under.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Whether its key has the client's address in it.
    pub(super) fn keys_by_address(&self) -> bool {
        self.key.contains(&KeyPart::Ip)
    }
}
