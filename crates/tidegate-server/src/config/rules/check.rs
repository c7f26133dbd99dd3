//! From rules as typed to rules as meant.

use tidegate::{Cost, Units};
use tidegate_fields::client_ip::{ClientIp, Trust};

use super::super::errors::{Fault, Problems, Site};
use super::super::reader::Field;
use super::super::suggest::did_you_mean;
use super::leaf::header;
use super::raw::{RawCost, RawHeaderCost, RawMatch, RawProxies, RawRule, Several};
use super::{KeyPart, Match, Rule, RuleCost, TrustedProxies};
use crate::app::DEFAULT_POLICY;

/// Parts of a key: more tell nobody apart who was not already.
const MOST_PARTS: usize = 8;

/// The rules meant by `raw`, in a file with policies of these names. What is wrong with them is told, and such rules are left out.
pub fn rules(raw: &[RawRule], policies: &[&str], problems: &mut Problems) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::with_capacity(raw.len());
    for raw in raw {
        let Some(rule) = rule(raw, policies, problems) else { continue };
        if rules.iter().any(|other| other.name == rule.name) {
            let site = raw.name.given().map_or(&raw.site, |name| &name.site);
            problems.add(site, Fault::new(format!("two rules are named {:?}", rule.name), "rename one"));
        }
        rules.push(rule);
    }
    rules
}

fn rule(raw: &RawRule, policies: &[&str], problems: &mut Problems) -> Option<Rule> {
    if raw.name.is_absent() {
        problems.add(&raw.site, Fault::new("name is missing", "write e.g. name: writes"));
    }
    let key = key(raw, problems);
    let policy = policy(raw, policies, problems);
    let cost = match &raw.cost {
        None => Some(RuleCost::Fixed(Cost::ONE)),
        Some(RawCost::Fixed(units)) => units.value().map(|units| RuleCost::Fixed(cost(units))),
        Some(RawCost::Header(raw)) => header_cost(raw, problems),
    };
    Some(Rule {
        matches: raw.r#match.as_ref().map(|raw| matches(raw, problems)).unwrap_or_default(),
        name: raw.name.given()?.value.0.clone(),
        policy: policy?,
        key: key?,
        cost: cost?,
        on_missing: raw.on_missing.value().unwrap_or_default(),
        deny_status: raw.deny_status.value().unwrap_or_default(),
    })
}

fn key(raw: &RawRule, problems: &mut Problems) -> Option<Vec<KeyPart>> {
    let Some(site) = &raw.key.site else {
        problems
            .add(&raw.site, Fault::new("key is missing", "say who is charged, e.g. key: header:x-api-key"));
        return None;
    };
    let parts: Vec<KeyPart> = raw.key.values.iter().map(|at| at.value.clone()).collect();
    if parts.len() > MOST_PARTS {
        let rule = format!("a key has one to {MOST_PARTS} parts, this has {}", parts.len());
        problems.add(site, Fault::new(rule, "leave some out"));
    }
    not_empty(&raw.key, "give at least one part, e.g. ip", problems);
    Some(parts)
}

fn policy(raw: &RawRule, policies: &[&str], problems: &mut Problems) -> Option<String> {
    match &raw.policy {
        Field::Wrong => None,
        Field::Given(given) if policies.contains(&&*given.value.0) => Some(given.value.0.clone()),
        Field::Given(given) => {
            let mend = did_you_mean(&given.value.0, policies);
            problems.add(&given.site, Fault::new("no policy has this name", mend));
            None
        }
        Field::Absent => match policies {
            [only] => Some((*only).to_owned()),
            names if names.contains(&DEFAULT_POLICY) => Some(DEFAULT_POLICY.to_owned()),
            names => {
                let mend = format!("write e.g. policy: {}", names.first().unwrap_or(&"api"));
                problems.add(&raw.site, Fault::new("policy is missing, and there are several", mend));
                None
            }
        },
    }
}

fn cost(units: Units) -> Cost {
    Cost::new(units.get()).unwrap_or(Cost::MAX)
}

fn header_cost(raw: &RawHeaderCost, problems: &mut Problems) -> Option<RuleCost> {
    let example = "write e.g. cost: {header: x-cost, max: 100}";
    for (name, absent) in [("header", raw.header.is_absent()), ("max", raw.max.is_absent())] {
        if absent {
            problems.add(&raw.site, Fault::new(format!("{name} is missing"), example));
        }
    }
    for field in [&raw.default, &raw.max] {
        if let Some(at) = field.given().filter(|at| at.value == Units::ZERO) {
            problems.add(&at.site, Fault::new("nothing would be charged", "write 1 or more"));
        }
    }
    let max = raw.max.value()?;
    let default = raw.default.value();
    if let Some(at) = raw.default.given().filter(|at| at.value > max) {
        problems.add(&at.site, Fault::new(format!("more than max, {max}"), "raise max or lower this"));
    }
    Some(RuleCost::Header {
        name: raw.header.given()?.value.0.clone(),
        default: default.map_or(Cost::ONE, cost),
        max: cost(max),
    })
}

fn matches(raw: &RawMatch, problems: &mut Problems) -> Match {
    not_empty(&raw.method, "write e.g. POST, or remove the line for every method", problems);
    not_empty(&raw.path, "write e.g. /v1/*, or remove the line for every path", problems);
    not_empty(&raw.host, "write e.g. api.example.com, or remove the line for every host", problems);
    let mut headers = Vec::with_capacity(raw.headers.len());
    for (name, values) in &raw.headers {
        not_empty(values, "write \"*\" for any value", problems);
        match header(&name.value) {
            Ok(name) => headers.push((name, values.values.iter().map(|at| at.value.0.clone()).collect())),
            Err(fault) => problems.add(&name.site, fault),
        }
    }
    Match {
        methods: raw.method.values.iter().map(|at| at.value.0.clone()).collect(),
        paths: raw.path.values.iter().map(|at| at.value.0.clone()).collect(),
        hosts: raw.host.values.iter().map(|at| at.value.0.clone()).collect(),
        headers,
    }
}

/// Refuses an empty list: it could mean all or nothing.
fn not_empty<T>(several: &Several<T>, mend: &str, problems: &mut Problems) {
    if several.values.is_empty()
        && let Some(site) = several.site.as_ref().filter(|_| several.is_list)
    {
        problems.add(site, Fault::new("an empty list", mend));
    }
}

/// The proxies meant by `raw`.
pub fn proxies(raw: &RawProxies, problems: &mut Problems) -> TrustedProxies {
    if raw.addresses.site.is_none() {
        missing_addresses(&raw.site, problems);
    }
    not_empty(&raw.addresses, "give at least one, e.g. 127.0.0.1", problems);
    let addresses: Vec<_> = raw.addresses.values.iter().map(|at| at.value.0).collect();
    let ranges: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    // A range's own text is a range: if it were not, nobody would be believed.
    let Ok(trust) = Trust::proxies(ranges.iter().map(String::as_str)) else {
        return TrustedProxies::default();
    };
    let header = raw.client_ip.given().map(|at| at.value.0.clone());
    let client_ip = match header.as_ref().map(|header| header.as_str()) {
        None | Some("x-forwarded-for") => ClientIp::x_forwarded_for(trust),
        Some("forwarded") => ClientIp::forwarded(trust),
        Some(_) => header.clone().map_or_else(ClientIp::peer, |header| ClientIp::single(header, trust)),
    };
    TrustedProxies { addresses, header, client_ip }
}

fn missing_addresses(site: &Site, problems: &mut Problems) {
    problems
        .add(site, Fault::new("addresses is missing", "say who is believed, e.g. addresses: [127.0.0.1]"));
}
