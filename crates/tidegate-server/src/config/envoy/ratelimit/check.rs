//! From files as typed to rules and policies as meant.

use std::collections::{BTreeMap, HashSet};

use tidegate::{Limit, Policy};

use super::super::super::errors::{Fault, Problems, Site};
use super::super::super::reader::Field;
use super::super::super::warnings::{Severity, Warning};
use super::super::leaf::Word;
use super::Translated;
use super::leaf::{Truth, UnitWord};
use super::names::{self, Names};
use super::raw::{RawFile, RawLimit, RawNode};
use crate::envoy::{Charge, Effect, EnvoyRules, Level, Node, Rule, Unit};

/// Files that become one configuration.
pub struct Translation {
    names: Names,
    policies: Vec<Policy>,
    domains: BTreeMap<String, Domain>,
    remarks: Vec<Warning>,
}

/// A domain: the file it is in, its tree, and the first entries in it.
struct Domain {
    file: String,
    level: Level,
    taken: HashSet<String>,
}

/// A walk through one file.
struct Walk<'w> {
    into: &'w mut Translation,
    problems: &'w mut Problems,
    file: &'w str,
    /// The domain, and the entries on the way here as the other program writes them.
    above: Vec<String>,
}

impl Translation {
    /// Starts; policies are named other than `taken`.
    pub fn new(names: Names) -> Self {
        Translation { names, policies: Vec::new(), domains: BTreeMap::new(), remarks: Vec::new() }
    }

    /// Adds a file. With `merge` a domain may be in several.
    pub fn add(&mut self, raw: &RawFile, file: &str, merge: bool, problems: &mut Problems) {
        for site in &raw.idle {
            self.remark(
                file,
                site,
                Severity::Warning,
                "has no effect here, nor has it in envoyproxy/ratelimit",
            );
        }
        let domain = text(&raw.domain).unwrap_or_default();
        if domain.is_empty() && !matches!(raw.domain, Field::Wrong) {
            problems.add(&raw.site, Fault::new("domain is missing", "name it as Envoy's filter does"));
        }
        let before = self.domains.remove(&domain);
        if let (Some(before), false) = (&before, merge) {
            let site = raw.domain.given().map_or(&raw.site, |domain| &domain.site);
            let rule = format!("the domain is in {} too", before.file);
            problems.add(site, Fault::new(rule, "put both into one file, or give --envoy-merge-domains"));
        }
        let mut own = before.unwrap_or_else(|| Domain {
            file: file.to_owned(),
            level: Level::default(),
            taken: HashSet::new(),
        });
        let mut walk = Walk { into: self, problems, file, above: vec![domain.clone()] };
        walk.level(&raw.descriptors, &mut own.level, &mut own.taken);
        self.domains.insert(domain, own);
    }

    /// What all files mean, if nothing is wrong with any.
    pub fn done(self) -> Translated {
        let domains = self.domains.into_iter().map(|(name, domain)| (name, domain.level));
        let rules = EnvoyRules::new(domains.collect());
        Translated { policies: self.policies, rules, remarks: self.remarks }
    }

    fn remark(&mut self, file: &str, site: &Site, severity: Severity, text: &str) {
        let path = format!("{file}:{}: {}", site.place.line, site.path);
        self.remarks.push(Warning::new(severity, path, text.to_owned()));
    }
}

impl Walk<'_> {
    fn level(&mut self, raw: &[RawNode], level: &mut Level, taken: &mut HashSet<String>) {
        for raw in raw {
            let Some(node) = self.node(raw, taken) else { continue };
            // Told already: what makes one node makes one composite key.
            let _ = level.add(node);
        }
    }

    fn node(&mut self, raw: &RawNode, taken: &mut HashSet<String>) -> Option<Node> {
        let Some(key) = text(&raw.key) else {
            if !matches!(raw.key, Field::Wrong) {
                let mend = "write e.g. key: remote_address";
                self.problems.add(&raw.site, Fault::new("key is missing", mend));
            }
            return None;
        };
        if key.contains('*') {
            let site = raw.key.given().map_or(&raw.site, |key| &key.site);
            let mend = "put the * into the value, or leave the value out for any";
            self.problems.add(site, Fault::new("a * in a key", mend));
        }
        let value = text(&raw.value);
        let composite = value.as_ref().map_or_else(|| key.clone(), |value| format!("{key}_{value}"));
        if !taken.insert(composite.clone()) {
            let rule = format!("two descriptors make {composite:?}");
            self.problems.add(&raw.site, Fault::new(rule, "put what is below them together"));
        }
        let share = truth(&raw.share_threshold);
        if share && !value.as_ref().is_some_and(|value| value.contains('*')) {
            let mend = "give a value with a *, or remove it";
            self.problems.add(&raw.site, Fault::new("share_threshold is for values with a *", mend));
        }
        for site in &raw.of_metrics {
            let text = "is about envoyproxy/ratelimit's metrics, and has no effect here";
            self.into.remark(self.file, site, Severity::Note, text);
        }
        self.above.push(composite);
        let rule = raw.rate_limit.as_ref().and_then(|limit| self.rule(raw, limit));
        let mut below = Level::default();
        self.level(&raw.descriptors, &mut below, &mut HashSet::new());
        self.above.pop();
        Some(Node { key, value, share, rule, below })
    }

    fn rule(&mut self, raw: &RawNode, limit: &RawLimit) -> Option<Rule> {
        let name = text(&limit.name);
        let mut replaces = Vec::with_capacity(limit.replaces.len());
        for entry in &limit.replaces {
            let given = entry.as_ref().map(|at| (&at.value.0, &at.site));
            match given {
                Ok((other, site)) if Some(other) == name.as_ref() => {
                    self.problems.add(site, Fault::new("it would replace itself", "name others"));
                }
                Ok((other, _)) if !other.is_empty() => replaces.push(other.clone()),
                Ok((_, site)) | Err(site) => {
                    self.problems.add(site, Fault::new("a name is missing", "write e.g. {name: base}"));
                }
            }
        }
        Some(Rule {
            effect: self.effect(limit, name.as_deref())?,
            name,
            replaces,
            shadow: truth(&raw.shadow_mode),
            quota: truth(&raw.quota_mode),
            by: Vec::new(),
        })
    }

    fn effect(&mut self, limit: &RawLimit, name: Option<&str>) -> Option<Effect> {
        let unit = limit.unit.given().map(|unit| (&unit.value, &unit.site));
        match (truth(&limit.unlimited), unit) {
            (true, Some((UnitWord::Known(_), site))) => {
                self.problems.add(site, Fault::new("a unit beside unlimited", "remove one of them"));
                None
            }
            (true, _) => Some(Effect::Unlimited),
            (false, Some((UnitWord::Known(unit), _))) => Some(self.limited(limit, *unit, name)),
            (false, Some((UnitWord::Unknown(_), site))) => {
                let mend = "use second, minute, hour, day, week, month or year";
                self.problems.add(site, Fault::new("no such unit", mend));
                None
            }
            (false, None) => {
                if !matches!(limit.unit, Field::Wrong) {
                    let mend = "write e.g. unit: minute, or unlimited: true";
                    self.problems.add(&limit.site, Fault::new("unit is missing", mend));
                }
                None
            }
        }
    }

    fn limited(&mut self, limit: &RawLimit, unit: Unit, name: Option<&str>) -> Effect {
        let requests = limit.requests_per_unit.value().map_or(0, |requests| requests.0);
        if limit.requests_per_unit.is_absent() {
            let text = "without requests_per_unit it is 0, and all is refused";
            self.into.remark(self.file, &limit.site, Severity::Warning, text);
        }
        let policy = self.into.names.make(&self.above);
        let name = name.and_then(names::of_limit).unwrap_or(unit.name());
        let window = Limit::fixed_window(requests, unit.period());
        let built = Policy::builder(policy.clone()).limit(name, window).build();
        self.into.policies.push(built.expect("one limit, and both names fit a header"));
        Effect::Limited { policy, charge: Charge::Always }
    }
}

fn truth(field: &Field<Truth>) -> bool {
    field.value().is_some_and(|truth| truth.0)
}

/// An empty text is as none.
fn text(field: &Field<Word>) -> Option<String> {
    field.given().map(|at| at.value.0.clone()).filter(|text| !text.is_empty())
}
