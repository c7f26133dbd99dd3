//! What such files mean, written as a configuration of ours.

use std::fmt::Write as _;

use tidegate::{Limit, Policy};

use super::super::super::figures::show_period;
use super::Translated;
use crate::envoy::{Effect, Level, Node, Rule};

/// A configuration file of ours that means the same as `files`; `from` is told in its first line.
pub fn to_yaml(files: &Translated, from: &str) -> String {
    let mut text = format!("# From {}, written for envoyproxy/ratelimit.\npolicies:\n", one_line(from));
    if files.policies.is_empty() {
        text += "  # Nothing is limited, but a file has at least one policy.\n";
        text += "  default: {limits: [{algorithm: token_bucket, capacity: 100, refill: 10/s}]}\n";
    }
    for policy in &files.policies {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}: {{limits: [{}]}}", quoted(policy.name()), limits(policy));
    }
    text += "envoy:";
    text += if files.rules.is_empty() { " {}\n" } else { "\n" };
    for (domain, level) in files.rules.domains() {
        let _ = writeln!(text, "  {}:\n    charge: always\n    descriptors:", quoted(domain));
        descriptors(level, 6, &mut text);
    }
    text
}

fn limits(policy: &Policy) -> String {
    let limits = policy.limit_names().zip(policy.plan().limits());
    let one = |(name, limit): (&str, &Limit)| {
        let window = limit.window().map(show_period).unwrap_or_default();
        let size = limit.capacity();
        format!("{{name: {}, algorithm: fixed_window, limit: {size}, window: {window}}}", quoted(name))
    };
    limits.map(one).collect::<Vec<_>>().join(", ")
}

fn descriptors(level: &Level, indent: usize, text: &mut String) {
    if level.nodes().is_empty() {
        // In the place of the list's line end.
        text.pop();
        text.push_str(" []\n");
    }
    for node in level.nodes() {
        let _ = writeln!(text, "{:indent$}- {}", "", fields(node).join(&format!("\n{:indent$}  ", "")));
        if !node.below.nodes().is_empty() {
            let _ = writeln!(text, "{:indent$}  descriptors:", "");
            descriptors(&node.below, indent + 4, text);
        }
    }
}

fn fields(node: &Node) -> Vec<String> {
    let mut fields = vec![format!("key: {}", quoted(&node.key))];
    fields.extend(node.value.as_ref().map(|value| format!("value: {}", quoted(value))));
    fields.extend(node.share.then(|| "share: true".to_owned()));
    fields.extend(node.rule.as_ref().map(rule).unwrap_or_default());
    fields
}

fn rule(rule: &Rule) -> Vec<String> {
    let mut fields = match &rule.effect {
        Effect::Unlimited => vec!["unlimited: true".to_owned()],
        Effect::Limited { policy, .. } => vec![format!("policy: {}", quoted(policy))],
    };
    fields.extend(rule.name.as_ref().map(|name| format!("name: {}", quoted(name))));
    if !rule.replaces.is_empty() {
        let names: Vec<String> = rule.replaces.iter().map(|name| quoted(name)).collect();
        fields.push(format!("replaces: [{}]", names.join(", ")));
    }
    fields.extend(rule.shadow.then(|| "shadow: true".to_owned()));
    fields.extend(rule.quota.then(|| "quota: true".to_owned()));
    fields
}

/// In quotes wherever YAML might take it for something else.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    // A single letter may be a boolean, as may some short words.
    let told_apart = text.len() > 5 || text.contains(['_', '.', '/']);
    match word && told_apart {
        true => text.to_owned(),
        false => escaped(text),
    }
}

/// In double quotes, with the escapes of YAML.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            // Breaks of lines are not only those of ASCII.
            c => drop(write!(out, "\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
