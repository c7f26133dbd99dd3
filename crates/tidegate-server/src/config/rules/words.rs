//! What rules do, in words.

use super::{DenyStatus, KeyPart, Match, OnMissing, Rule, RuleCost, TrustedProxies};

/// What a rule charges to whom.
///
/// ```
/// use tidegate_server::config::{Config, rule_in_words};
/// let text = "
/// policies: {api: {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}}
/// rules:
///   - {name: writes, match: {method: [POST, PUT], path: /v1/*}, key: [header:x-api-key, ip], cost: 5}";
/// let config = Config::parse(text, "tidegate.yaml").unwrap();
/// assert_eq!(
///     rule_in_words(&config.gateway().rules()[0]),
///     "POST or PUT, path /v1/*: 5 of api by header x-api-key and ip; denied if one is missing; 429 when denied"
/// );
/// ```
pub fn rule_in_words(rule: &Rule) -> String {
    let cost = match &rule.cost {
        RuleCost::Fixed(cost) => cost.get().to_string(),
        RuleCost::Header { name, default, max } => format!("what {name} says (or {default}, at most {max})"),
    };
    let key: Vec<String> = rule.key.iter().map(part).collect();
    let missing = match rule.on_missing {
        _ if !rule.key.iter().any(may_be_missing) => "",
        OnMissing::Deny => "; denied if one is missing",
        OnMissing::Skip => "; not charged if one is missing",
        OnMissing::Shared => "; all without one share",
    };
    let status = match rule.deny_status {
        DenyStatus::TooManyRequests => 429,
        DenyStatus::Forbidden => 403,
    };
    let (matches, policy, key) = (matches(&rule.matches), &rule.policy, key.join(" and "));
    format!("{matches}: {cost} of {policy} by {key}{missing}; {status} when denied")
}

/// Which proxies are believed, and by which header they tell the client.
pub fn proxies_in_words(proxies: &TrustedProxies) -> String {
    if proxies.is_empty() {
        return "none is trusted: only what the request itself says counts".to_owned();
    }
    let addresses: Vec<String> = proxies.addresses.iter().map(ToString::to_string).collect();
    let header = proxies.header.as_ref().map_or("x-forwarded-for", |header| header.as_str());
    format!("{} are trusted, {header} tells the client's address", addresses.join(", "))
}

fn may_be_missing(part: &KeyPart) -> bool {
    matches!(part, KeyPart::Header(_) | KeyPart::Query(_))
}

fn part(part: &KeyPart) -> String {
    match part {
        KeyPart::Header(name) => format!("header {name}"),
        KeyPart::Query(name) => format!("query {name}"),
        KeyPart::Const(text) => format!("{text:?}"),
        KeyPart::Ip => "ip".to_owned(),
        KeyPart::Path => "path".to_owned(),
        KeyPart::Host => "host".to_owned(),
        KeyPart::Method => "method".to_owned(),
    }
}

fn matches(matches: &Match) -> String {
    let mut words = Vec::new();
    let mut add = |what: &str, any_of: Vec<String>| {
        if !any_of.is_empty() {
            words.push(format!("{what}{}", any_of.join(" or ")));
        }
    };
    add("", matches.methods.iter().map(ToString::to_string).collect());
    add("path ", matches.paths.iter().map(ToString::to_string).collect());
    add("host ", matches.hosts.iter().map(ToString::to_string).collect());
    for (name, values) in &matches.headers {
        add(&format!("header {name} "), values.iter().map(ToString::to_string).collect());
    }
    if words.is_empty() { "every request".to_owned() } else { words.join(", ") }
}
