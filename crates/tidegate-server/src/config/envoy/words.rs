//! What Envoy's descriptors meet, in words.

use crate::envoy::{Charge, Effect, Level, Node, Rule};

/// A line for each rule: which descriptors it concerns, and what becomes of them.
///
/// ```
/// use tidegate_server::config::{Config, descriptors_in_words};
/// let text = "
/// policies: {api: {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}}
/// envoy:
///   edge:
///     - {key: tenant, policy: api, descriptors: [{key: path, value: /health*, unlimited: true}]}
///     - {key: model, policy: api, by: [model], charge: always}";
/// let config = Config::parse(text, "tidegate.yaml").unwrap();
/// let (domain, descriptors) = config.envoy().domains().next().unwrap();
/// assert_eq!(domain, "edge");
/// assert_eq!(
///     descriptors_in_words(descriptors),
///     [
///         "tenant: api",
///         "tenant, path = /health*: unlimited",
///         "model: api by model, charged whether it fits or not",
///     ]
/// );
/// ```
pub fn descriptors_in_words(level: &Level) -> Vec<String> {
    let mut lines = Vec::new();
    add(level, &mut Vec::new(), &mut lines);
    lines
}

fn add<'l>(level: &'l Level, above: &mut Vec<&'l Node>, lines: &mut Vec<String>) {
    for node in level.nodes() {
        above.push(node);
        if let Some(rule) = &node.rule {
            let entries: Vec<String> = above.iter().map(|node| entry(node)).collect();
            lines.push(format!("{}: {}", entries.join(", "), rule_in_words(rule)));
        }
        add(&node.below, above, lines);
        above.pop();
    }
}

fn entry(node: &Node) -> String {
    let Node { key, value, share, .. } = node;
    match value {
        None => key.clone(),
        Some(value) if *share => format!("{key} = {value} (all as one)"),
        Some(value) => format!("{key} = {value}"),
    }
}

fn rule_in_words(rule: &Rule) -> String {
    let (policy, charge) = match &rule.effect {
        Effect::Unlimited => return "unlimited".to_owned(),
        Effect::Limited { policy, charge } => (policy, charge),
    };
    let mut words = policy.clone();
    if !rule.by.is_empty() {
        words += &format!(" by {}", rule.by.join(" and "));
    }
    if *charge == Charge::Always {
        words += ", charged whether it fits or not";
    }
    if rule.shadow {
        words += ", never refused";
    }
    if rule.quota {
        words += ", refused only with all others of its kind";
    }
    if let Some(name) = &rule.name {
        words += &format!(", named {name}");
    }
    if !rule.replaces.is_empty() {
        words += &format!(", instead of {}", rule.replaces.join(" and "));
    }
    words
}
