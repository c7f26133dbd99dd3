//! From the section as typed to rules as meant.

use std::collections::BTreeMap;

use tidegate::PolicySet;

use super::super::errors::{Fault, Problems};
use super::super::raw::Named;
use super::super::reader::{At, Field};
use super::super::suggest::did_you_mean;
use super::leaf::{Flag, Word};
use super::raw::RawDescriptor;
use crate::envoy::{Effect, EnvoyRules, Level, Node, Rule};

/// The rules meant by `raw`. What is wrong with them is told, and such rules are left out.
pub fn rules(raw: &Named<Vec<RawDescriptor>>, policies: &PolicySet, problems: &mut Problems) -> EnvoyRules {
    let mut domains = BTreeMap::new();
    for (domain, descriptors) in raw {
        if domain.value.is_empty() {
            problems
                .add(&domain.site, Fault::new("a domain without a name", "name it as Envoy's filter does"));
        }
        domains.insert(domain.value.clone(), level(descriptors, &mut Vec::new(), policies, problems));
    }
    EnvoyRules::new(domains)
}

/// `above` are the keys on the way here.
fn level<'r>(
    raw: &'r [RawDescriptor],
    above: &mut Vec<&'r str>,
    policies: &PolicySet,
    problems: &mut Problems,
) -> Level {
    let mut level = Level::default();
    for raw in raw {
        let Some(key) = raw.key.given().map(|key| &*key.value.0).filter(|key| !key.is_empty()) else {
            if !matches!(raw.key, Field::Wrong) {
                problems.add(&raw.site, Fault::new("key is missing", "write e.g. key: remote_address"));
            }
            continue;
        };
        above.push(key);
        let rule = rule(raw, above, policies, problems);
        let below = self::level(&raw.descriptors, above, policies, problems);
        above.pop();
        let (value, share) = (text(&raw.value), flag(&raw.share));
        if share && !value.as_deref().is_some_and(|value| value.contains('*')) {
            let mend = "give a value with a *, or remove share";
            problems.add(&raw.site, Fault::new("share is for values with a *", mend));
        }
        if let Err(twin) = level.add(Node { key: key.to_owned(), value, share, rule, below }) {
            let value = twin.value.map_or_else(String::new, |value| format!(" and value {value:?}"));
            let rule = format!("two descriptors have the key {key:?}{value}");
            problems.add(&raw.site, Fault::new(rule, "put what is below them together"));
        }
    }
    level
}

fn rule(raw: &RawDescriptor, above: &[&str], policies: &PolicySet, problems: &mut Problems) -> Option<Rule> {
    if let Some(wrong) = raw.by.iter().find(|by| !above.contains(&&*by.value.0)) {
        problems.add(
            &wrong.site,
            Fault::new("no entry up to here has this key", did_you_mean(&wrong.value.0, above)),
        );
    }
    let effect = match (&raw.policy, flag(&raw.unlimited)) {
        (Field::Given(_), true) => {
            let mend = "remove one of them";
            problems.add(&raw.site, Fault::new("both a policy and unlimited", mend));
            return None;
        }
        (_, true) => Effect::Unlimited,
        (Field::Given(policy), false) => {
            let At { value: Word(name), site } = &**policy;
            if policies.get(name).is_none() {
                let known: Vec<&str> = policies.iter().map(|policy| policy.name()).collect();
                problems.add(site, Fault::new("no policy has this name", did_you_mean(name, &known)));
            }
            Effect::Limited { policy: name.clone(), charge: raw.charge.value().unwrap_or_default() }
        }
        (_, false) => return None,
    };
    let name = text(&raw.name);
    if let Some(own) = raw.replaces.iter().find(|it| Some(&it.value.0) == name.as_ref()) {
        problems.add(&own.site, Fault::new("it would replace itself", "name others"));
    }
    Some(Rule {
        effect,
        name,
        replaces: raw.replaces.iter().map(|it| it.value.0.clone()).collect(),
        shadow: flag(&raw.shadow),
        quota: flag(&raw.quota),
        by: raw.by.iter().map(|it| it.value.0.clone()).collect(),
    })
}

fn flag(field: &Field<Flag>) -> bool {
    field.value().is_some_and(|flag| flag.0)
}

/// An empty text is as none.
fn text(field: &Field<Word>) -> Option<String> {
    field.given().map(|at| at.value.0.clone()).filter(|text| !text.is_empty())
}
