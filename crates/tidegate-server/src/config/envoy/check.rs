//! From the section as typed to rules as meant.

use std::collections::BTreeMap;

use super::super::errors::{Fault, Problems};
use super::super::raw::Named;
use super::super::reader::{At, Field};
use super::super::suggest::did_you_mean;
use super::leaf::{Flag, Word};
use super::raw::{RawDescriptor, RawDomain};
use crate::envoy::{Charge, Effect, EnvoyRules, Level, Node, Rule};

/// The rules meant by `raw`, in a file with policies of these names. What is wrong with them is told, and such rules are left out.
pub fn rules(raw: &Named<RawDomain>, policies: &[&str], problems: &mut Problems) -> EnvoyRules {
    let mut domains = BTreeMap::new();
    for (domain, raw) in raw {
        if domain.value.is_empty() {
            problems
                .add(&domain.site, Fault::new("a domain without a name", "name it as Envoy's filter does"));
        }
        let mut reader = Reader { policies, problems, above: Vec::new() };
        let level = reader.level(&raw.descriptors, raw.charge.value().unwrap_or_default());
        domains.insert(domain.value.clone(), level);
    }
    EnvoyRules::new(domains)
}

/// Walks a domain's tree.
struct Reader<'p, 'r> {
    policies: &'p [&'p str],
    problems: &'p mut Problems,
    /// The keys on the way here.
    above: Vec<&'r str>,
}

impl<'r> Reader<'_, 'r> {
    /// `charge` is what the descriptors say that say nothing.
    fn level(&mut self, raw: &'r [RawDescriptor], charge: Charge) -> Level {
        let mut level = Level::default();
        for raw in raw {
            let Some(node) = self.node(raw, charge) else { continue };
            if let Err(twin) = level.add(node) {
                let value = twin.value.map_or_else(String::new, |value| format!(" and value {value:?}"));
                let rule = format!("two descriptors have the key {:?}{value}", twin.key);
                self.problems.add(&raw.site, Fault::new(rule, "put what is below them together"));
            }
        }
        level
    }

    fn node(&mut self, raw: &'r RawDescriptor, charge: Charge) -> Option<Node> {
        let Some(key) = raw.key.given().map(|key| &*key.value.0).filter(|key| !key.is_empty()) else {
            if !matches!(raw.key, Field::Wrong) {
                let mend = "write e.g. key: remote_address";
                self.problems.add(&raw.site, Fault::new("key is missing", mend));
            }
            return None;
        };
        self.above.push(key);
        let charge = raw.charge.value().unwrap_or(charge);
        let rule = self.rule(raw, charge);
        let below = self.level(&raw.descriptors, charge);
        self.above.pop();
        let (value, share) = (text(&raw.value), flag(&raw.share));
        if share && !value.as_deref().is_some_and(|value| value.contains('*')) {
            let mend = "give a value with a *, or remove share";
            self.problems.add(&raw.site, Fault::new("share is for values with a *", mend));
        }
        Some(Node { key: key.to_owned(), value, share, rule, below })
    }

    fn rule(&mut self, raw: &RawDescriptor, charge: Charge) -> Option<Rule> {
        let effect = self.effect(raw, charge);
        if let Some(wrong) = raw.by.iter().find(|by| !self.above.contains(&&*by.value.0)) {
            let mend = did_you_mean(&wrong.value.0, &self.above);
            self.problems.add(&wrong.site, Fault::new("no entry up to here has this key", mend));
        }
        let name = text(&raw.name);
        if let Some(own) = raw.replaces.iter().find(|it| Some(&it.value.0) == name.as_ref()) {
            self.problems.add(&own.site, Fault::new("it would replace itself", "name others"));
        }
        Some(Rule {
            effect: effect?,
            name,
            replaces: raw.replaces.iter().map(|it| it.value.0.clone()).collect(),
            shadow: flag(&raw.shadow),
            quota: flag(&raw.quota),
            by: raw.by.iter().map(|it| it.value.0.clone()).collect(),
        })
    }

    fn effect(&mut self, raw: &RawDescriptor, charge: Charge) -> Option<Effect> {
        match (&raw.policy, flag(&raw.unlimited)) {
            (Field::Given(_), true) => {
                let mend = "remove one of them";
                self.problems.add(&raw.site, Fault::new("both a policy and unlimited", mend));
                None
            }
            (_, true) => Some(Effect::Unlimited),
            (Field::Given(policy), false) => {
                let At { value: Word(name), site } = &**policy;
                if !self.policies.contains(&name.as_str()) {
                    let mend = did_you_mean(name, self.policies);
                    self.problems.add(site, Fault::new("no policy has this name", mend));
                }
                Some(Effect::Limited { policy: name.clone(), charge })
            }
            (_, false) => {
                self.idle(raw);
                None
            }
        }
    }

    /// Tells of fields that say something about a limit where there is none.
    fn idle(&mut self, raw: &RawDescriptor) {
        let given = [
            ("by", !raw.by.is_empty()),
            ("shadow", !raw.shadow.is_absent()),
            ("quota", !raw.quota.is_absent()),
            ("name", !raw.name.is_absent()),
            ("replaces", !raw.replaces.is_empty()),
        ];
        let given = given.iter().find(|(_, given)| *given).filter(|_| raw.policy.is_absent());
        if let Some((field, _)) = given {
            let rule = format!("{field} without a policy");
            self.problems.add(&raw.site, Fault::new(rule, format!("name a policy, or remove {field}")));
        }
    }
}

fn flag(field: &Field<Flag>) -> bool {
    field.value().is_some_and(|flag| flag.0)
}

/// An empty text is as none.
fn text(field: &Field<Word>) -> Option<String> {
    field.given().map(|at| at.value.0.clone()).filter(|text| !text.is_empty())
}
