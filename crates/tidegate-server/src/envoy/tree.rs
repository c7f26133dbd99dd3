//! The tree that descriptors are matched against.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_fields::joined;

/// Which limits Envoy's descriptors meet, by domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvoyRules {
    domains: BTreeMap<String, Level>,
}

/// The nodes that one entry of a descriptor may meet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Level {
    nodes: Vec<Node>,
    /// By key and value, of those that have one: a value that is a pattern letter by letter meets it too.
    exact: HashMap<(String, String), usize>,
    /// Those with a `*`, in the order of the file.
    wild: Vec<usize>,
    /// By key, of those without a value.
    bare: HashMap<String, usize>,
}

/// What an entry of a descriptor meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The entry's key.
    pub key: String,
    /// The entry's value, a pattern if it has a `*`; `None` for any.
    pub value: Option<String>,
    /// All values that fit the pattern are counted as one.
    pub share: bool,
    /// What meets a descriptor that ends here.
    pub rule: Option<Rule>,
    /// What the next entry may meet.
    pub below: Level,
}

/// What is done with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The limit, or none.
    pub effect: Effect,
    /// What others call it in `replaces`.
    pub name: Option<String>,
    /// Rules of these names do not count beside this one.
    pub replaces: Vec<String>,
    /// Charged and told, but never refused.
    pub shadow: bool,
    /// Refuses only if all rules of this kind do that the request meets.
    pub quota: bool,
    /// The entries whose values are the client's key; all entries and the domain if empty.
    pub by: Vec<String>,
}

/// The limit of a rule, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Never refused, nothing is counted.
    Unlimited,
    /// Under a policy.
    Limited {
        /// The policy's name.
        policy: String,
        /// How it is charged.
        charge: Charge,
    },
}

/// How the hits of a descriptor are charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charge {
    /// If they fit, together with all other descriptors of the request or not at all.
    #[default]
    Fits,
    /// Whether they fit or not, as envoyproxy/ratelimit counts: so that costs known afterwards count.
    Always,
}

/// A rule that a descriptor meets, and the key it is charged under.
#[derive(Debug)]
pub(crate) struct Found<'t> {
    pub rule: &'t Rule,
    pub key: Vec<u8>,
}

impl EnvoyRules {
    /// Rules by domain.
    pub fn new(domains: BTreeMap<String, Level>) -> Self {
        EnvoyRules { domains }
    }

    /// Adds the domains of others.
    ///
    /// # Errors
    /// The name of a domain that there is already; nothing is added.
    pub(crate) fn absorb(&mut self, others: EnvoyRules) -> Result<(), String> {
        if let Some(twin) = others.domains.keys().find(|domain| self.domains.contains_key(*domain)) {
            return Err(twin.clone());
        }
        self.domains.extend(others.domains);
        Ok(())
    }

    /// Whether there are none, for no domain.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The domains with their rules.
    pub fn domains(&self) -> impl ExactSizeIterator<Item = (&str, &Level)> {
        self.domains.iter().map(|(domain, level)| (domain.as_str(), level))
    }

    /// The names of the policies in them, each once.
    pub(crate) fn policies(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.domains.values().for_each(|level| level.add_policies(&mut names));
        names
    }

    /// What a descriptor of these entries meets: a rule where its last entry ends.
    pub(crate) fn find(&self, domain: &str, entries: &[(&str, &str)]) -> Option<Found<'_>> {
        let mut level = self.domains.get(domain)?;
        let mut node = None;
        let mut counted = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let met = level.meet(key, value)?;
            let value = if met.share { met.value.as_deref().unwrap_or(value) } else { value };
            counted.push((*key, value));
            (level, node) = (&met.below, Some(met));
        }
        let rule = node?.rule.as_ref()?;
        Some(Found { rule, key: key(domain, &counted, &rule.by) })
    }
}

/// The key a descriptor is charged under. No two descriptors make the same, whatever they hold; but where `by`
/// names the entries that count, these alone do, and a single one is the key itself.
pub(crate) fn key(domain: &str, entries: &[(&str, &str)], by: &[String]) -> Vec<u8> {
    if by.is_empty() {
        let parts = entries.iter().flat_map(|(key, value)| [*key, *value]);
        return joined(std::iter::once(domain).chain(parts));
    }
    let value = |name: &String| entries.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
    match by {
        [name] => value(name).into(),
        names => joined(names.iter().map(value)),
    }
}

impl Level {
    /// Adds a node.
    ///
    /// # Errors
    /// The node, if there is one of this key and value already.
    pub fn add(&mut self, node: Node) -> Result<(), Box<Node>> {
        let place = self.nodes.len();
        let twin = match &node.value {
            None => self.bare.contains_key(&node.key),
            Some(value) => self.exact.contains_key(&(node.key.clone(), value.clone())),
        };
        if twin {
            return Err(Box::new(node));
        }
        match &node.value {
            None => drop(self.bare.insert(node.key.clone(), place)),
            Some(value) => {
                self.wild.extend(value.contains('*').then_some(place));
                self.exact.insert((node.key.clone(), value.clone()), place);
            }
        }
        self.nodes.push(node);
        Ok(())
    }

    /// The nodes in the order of the file.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn add_policies<'l>(&'l self, names: &mut BTreeSet<&'l str>) {
        for node in &self.nodes {
            if let Some(Rule { effect: Effect::Limited { policy, .. }, .. }) = &node.rule {
                names.insert(policy);
            }
            node.below.add_policies(names);
        }
    }

    fn meet(&self, key: &str, value: &str) -> Option<&Node> {
        // The map would have to be asked with owned texts; levels are short, and most have no exact node at all.
        let exact = (!self.exact.is_empty()).then(|| self.exact.get(&(key.to_owned(), value.to_owned())));
        let wild = || {
            self.wild.iter().copied().find(|place| {
                let node = &self.nodes[*place];
                node.key == key && node.value.as_deref().is_some_and(|pattern| fits(pattern, value))
            })
        };
        let place = exact.flatten().copied().or_else(wild).or_else(|| self.bare.get(key).copied())?;
        Some(&self.nodes[place])
    }
}

/// Whether a value fits a pattern in which each `*` stands for any text, or for none.
fn fits(pattern: &str, value: &str) -> bool {
    let (first, rest) = pattern.split_once('*').unwrap_or((pattern, ""));
    let Some(mut value) = value.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return value.ends_with(rest) };
    // The leftmost place is as good as any: what follows has the most left to fit in.
    for part in middle.split('*') {
        match value.split_once(part) {
            Some((_, after)) => value = after,
            None => return false,
        }
    }
    value.ends_with(last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn node(key: &str, value: Option<&str>, policy: Option<&str>, below: Vec<Node>) -> Node {
        let rule = policy.map(|policy| Rule {
            effect: Effect::Limited { policy: policy.into(), charge: Charge::Fits },
            name: None,
            replaces: Vec::new(),
            shadow: false,
            quota: false,
            by: Vec::new(),
        });
        Node { key: key.into(), value: value.map(Into::into), share: false, rule, below: level(below) }
    }

    fn level(nodes: Vec<Node>) -> Level {
        let mut level = Level::default();
        nodes.into_iter().for_each(|node| level.add(node).unwrap());
        level
    }

    fn met<'t>(rules: &'t EnvoyRules, entries: &[(&str, &str)]) -> Option<&'t str> {
        match &rules.find("edge", entries)?.rule.effect {
            Effect::Limited { policy, .. } => Some(policy),
            Effect::Unlimited => None,
        }
    }

    #[test]
    fn the_exact_goes_before_the_pattern_before_the_bare_and_only_the_last_entry_counts() {
        let below = vec![node("path", None, Some("deep"), vec![])];
        let level = level(vec![
            node("ip", None, Some("bare"), vec![node("path", None, Some("bare-path"), vec![])]),
            node("ip", Some("10.*"), Some("first"), vec![]),
            node("ip", Some("10.1*"), Some("second"), vec![]),
            node("ip", Some("10.1.1.1"), Some("exact"), below),
            node("path", None, None, vec![]),
        ]);
        let rules = EnvoyRules::new(BTreeMap::from([("edge".into(), level)]));
        assert_eq!(met(&rules, &[("ip", "10.1.1.1")]), Some("exact"));
        assert_eq!(met(&rules, &[("ip", "10.1.1.2")]), Some("first"), "the file's order, not the longest");
        assert_eq!(met(&rules, &[("ip", "9.9.9.9")]), Some("bare"));
        assert_eq!(met(&rules, &[("ip", "10.1.1.1"), ("path", "/")]), Some("deep"));
        assert_eq!(met(&rules, &[("ip", "9.9.9.9"), ("path", "/")]), Some("bare-path"));
        assert_eq!(met(&rules, &[("ip", "10.2.2.2"), ("path", "/")]), None, "no way back from a pattern");
        assert_eq!(met(&rules, &[("path", "/")]), None, "a node without a rule");
        assert_eq!(met(&rules, &[("ip", "1"), ("path", "/"), ("more", "")]), None);
        assert_eq!(met(&rules, &[]), None);
        assert!(rules.find("other", &[("ip", "1")]).is_none());
    }

    #[test]
    fn one_counter_for_each_value_unless_they_share_the_pattern_s() {
        let mut wild = node("ip", Some("10.*"), Some("api"), vec![]);
        let key = |rules: &EnvoyRules, value| rules.find("edge", &[("ip", value)]).unwrap().key;
        let rules = |node: Node| EnvoyRules::new(BTreeMap::from([("edge".into(), level(vec![node]))]));
        let apart = rules(wild.clone());
        assert_ne!(key(&apart, "10.1"), key(&apart, "10.2"));
        wild.share = true;
        let shared = rules(wild.clone());
        assert_eq!(key(&shared, "10.1"), key(&shared, "10.2"));
        wild.share = false;
        wild.rule.as_mut().unwrap().by = vec!["ip".into()];
        assert_eq!(key(&rules(wild), "10.1"), b"10.1");
        assert_ne!(super::key("a", &[("b", "c_d")], &[]), super::key("a", &[("b_c", "d")], &[]));
    }

    #[test]
    fn the_same_node_is_not_added_twice() {
        for value in [None, Some("x"), Some("x*")] {
            let mut level = level(vec![node("k", value, None, vec![])]);
            assert!(level.add(node("k", value, None, vec![])).is_err(), "{value:?}");
            assert!(level.add(node("j", value, None, vec![])).is_ok());
        }
    }

    proptest! {
        #[test]
        fn patterns_fit_as_by_trying_every_cut(pattern in "[ab*]{0,6}", value in "[ab]{0,8}") {
            fn slow(pattern: &[u8], value: &[u8]) -> bool {
                match pattern {
                    [] => value.is_empty(),
                    [b'*', rest @ ..] => (0..=value.len()).any(|cut| slow(rest, &value[cut..])),
                    [first, rest @ ..] => value.first() == Some(first) && slow(rest, &value[1..]),
                }
            }
            prop_assume!(pattern.contains('*'));
            prop_assert_eq!(fits(&pattern, &value), slow(pattern.as_bytes(), value.as_bytes()));
        }
    }
}
