//! What is right but may surprise.

use std::collections::HashMap;
use std::fmt;

use tidegate::{Algorithm, KeyPattern, Limit, Period, Plan, Policy, Units};

use super::checked::Config;
use super::figures::show_period;
use super::reader::step;
use super::rules::Gateway;
use super::store::{StoreKind, StoreSettings};
use super::words::span;

/// Something in a configuration that is right but may not be what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    severity: Severity,
    path: String,
    text: String,
}

/// How likely a [`Warning`] points at a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Probably not meant.
    Warning,
}

impl Warning {
    pub(super) fn new(severity: Severity, path: String, text: String) -> Self {
        Warning { severity, path, text }
    }

    /// How likely this points at a mistake.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The way from the file's top to what this is about.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What may surprise.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.path, self.text)
    }
}

/// All that may surprise in `config`, in the file's order.
pub fn warnings(config: &Config) -> Vec<Warning> {
    let mut found = Vec::new();
    for policy in config.policies().iter() {
        let path = step("policies", policy.name());
        for (index, limit) in policy.plan().limits().iter().enumerate() {
            of_limit(limit, &format!("{path}.limits[{index}]"), &mut found);
        }
        of_overrides(policy, &format!("{path}.overrides"), &mut found);
    }
    of_rules(config.gateway(), &mut found);
    of_store(config.store(), &mut found);
    found.extend(config.remarks().iter().cloned());
    found
}

/// What is said of a store that several instances share means nothing where state is kept in memory.
fn of_store(store: &StoreSettings, found: &mut Vec<Warning>) {
    if *store.kind() != StoreKind::Memory {
        return;
    }
    let shared = store.shared();
    let of_policies = |policies: &mut dyn Iterator<Item = &String>, field: &str| -> Vec<String> {
        policies.map(|policy| format!("{}.{field}", step("policies", policy))).collect()
    };
    let mut paths = of_policies(&mut shared.classic.keys(), "layout");
    paths.extend(of_policies(&mut shared.on_store_error_of.keys(), "on_store_error"));
    paths.extend(shared.is_given().then(|| "redis".to_owned()));
    for path in paths {
        let text =
            "without effect, for state is kept in memory (give store: redis://HOST, or --store)".to_owned();
        found.push(Warning { severity: Severity::Warning, path, text });
    }
}

/// Behind a proxy that is not trusted, all clients have one address: the proxy's.
fn of_rules(gateway: &Gateway, found: &mut Vec<Warning>) {
    if !gateway.proxies().is_empty() {
        return;
    }
    for (index, rule) in gateway.rules().iter().enumerate().filter(|(_, rule)| rule.keys_by_address()) {
        let text = format!(
            "no proxy is trusted, so ip is the address of whoever asks about {}: the proxy's own (give trusted_proxies)",
            rule.name()
        );
        found.push(Warning { severity: Severity::Warning, path: format!("rules[{index}].key"), text });
    }
}

fn of_limit(limit: &Limit, path: &str, found: &mut Vec<Warning>) {
    let mut add = |severity, text| found.push(Warning { severity, path: path.to_owned(), text });
    let size = limit.capacity().get();
    if size == 0 {
        add(Severity::Warning, "0 lets nothing pass: every cost above 0 is denied".to_owned());
        return;
    }
    if let Some(rate) = limit.rate() {
        let (amount, per) = (rate.amount().get(), span(rate.per()));
        let most = size + amount;
        add(
            Severity::Note,
            if amount == 0 {
                format!("never refills: {size} is all a key ever gets")
            } else {
                format!("at most {most} pass in any {per}: {size} at once plus a refill of {amount}")
            },
        );
    }
    if let Some(window) = limit.window() {
        let (twice, span) = (2 * size, span(window));
        match limit.algorithm() {
            Algorithm::FixedWindow => add(
                Severity::Note,
                format!(
                    "up to {twice} can pass within a moment, across the edge of two windows; a sliding window does not let that happen"
                ),
            ),
            Algorithm::SlidingWindowCounter => add(
                Severity::Note,
                format!("exact when traffic is even; up to {} in some {span} when it is not", twice - 1),
            ),
            _ => {}
        }
        if limit.algorithm() != Algorithm::SlidingWindowLog && !begins_at_midnight(window) {
            add(
                Severity::Note,
                format!(
                    "windows begin at whole multiples of {} since 1970, UTC{}",
                    show_period(window),
                    thursday(window)
                ),
            );
        }
    }
}

/// Whether some window begins at every midnight, UTC: what people expect.
fn begins_at_midnight(window: Period) -> bool {
    Period::DAY.as_micros().is_multiple_of(window.as_micros())
}

fn thursday(window: Period) -> &'static str {
    let weeks = window.as_micros().is_multiple_of(7 * Period::DAY.as_micros());
    if weeks { ", so on a Thursday" } else { "" }
}

fn of_overrides(policy: &Policy, path: &str, found: &mut Vec<Warning>) {
    let prefixes = Prefixes::of(policy);
    for (pattern, plan) in policy.overrides() {
        let path = format!("{path}[{pattern}]");
        if *pattern == KeyPattern::prefix("") {
            let text = "matches every key: the policy's own figures are never used".to_owned();
            found.push(Warning { severity: Severity::Warning, path: path.clone(), text });
        }
        for (index, limit) in plan.limits().iter().enumerate() {
            let own = policy.plan().limits()[index];
            if limit.capacity() == Units::ZERO && *limit != own {
                let path = step(&path, policy.limit_name(index));
                let text = "0 lets nothing pass: these keys are blocked".to_owned();
                found.push(Warning { severity: Severity::Note, path, text });
            }
        }
        if let Some((wider, wider_plan)) = prefixes.next_wider(pattern) {
            not_inherited(policy, (&path, plan), (wider, wider_plan), found);
        }
    }
}

/// Tells of limits that a wider pattern changes and this one, which alone counts, does not.
fn not_inherited(policy: &Policy, own: (&str, &Plan), wider: (&KeyPattern, &Plan), found: &mut Vec<Warning>) {
    let (path, plan) = own;
    let (wider, wider_plan) = wider;
    for (index, base) in policy.plan().limits().iter().enumerate() {
        if wider_plan.limits()[index] != *base && plan.limits()[index] == *base {
            let name = policy.limit_name(index);
            let text = format!(
                "the {name} of {wider} does not count here, only the closest pattern does (repeat it if it is meant)"
            );
            found.push(Warning { severity: Severity::Warning, path: path.to_owned(), text });
        }
    }
}

/// The prefixes of a policy's overrides, to look up which of them covers another pattern.
struct Prefixes<'p> {
    plans: HashMap<&'p [u8], (&'p KeyPattern, &'p Plan)>,
    /// The lengths that occur, the longest first.
    lengths: Vec<usize>,
}

impl<'p> Prefixes<'p> {
    fn of(policy: &'p Policy) -> Self {
        let prefix = |(pattern, plan): (&'p KeyPattern, &'p Plan)| match pattern {
            KeyPattern::Prefix(prefix) => Some((&prefix[..], (pattern, plan))),
            KeyPattern::Exact(_) => None,
        };
        let plans: HashMap<_, _> = policy.overrides().filter_map(prefix).collect();
        let mut lengths: Vec<usize> = plans.keys().map(|prefix| prefix.len()).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        Prefixes { plans, lengths }
    }

    /// The longest prefix that covers `pattern` and is another.
    fn next_wider(&self, pattern: &KeyPattern) -> Option<(&'p KeyPattern, &'p Plan)> {
        let (text, longest) = match pattern {
            KeyPattern::Exact(key) => (key, key.len()),
            KeyPattern::Prefix(prefix) => (prefix, prefix.len().checked_sub(1)?),
        };
        let fitting = self.lengths.iter().filter(|length| **length <= longest);
        fitting.filter_map(|length| self.plans.get(&text[..*length])).copied().next()
    }
}
