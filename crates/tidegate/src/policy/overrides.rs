//! Which keys have figures of their own.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// The keys an override is for: one key, or all that begin with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyPattern {
    /// Exactly this key.
    Exact(Vec<u8>),
    /// Every key that begins with this.
    Prefix(Vec<u8>),
}

impl KeyPattern {
    /// Exactly `key`.
    pub fn exact(key: impl Into<Vec<u8>>) -> Self {
        KeyPattern::Exact(key.into())
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        KeyPattern::Prefix(prefix.into())
    }

    /// Reads a pattern as the configuration writes it: `acme:*` is a prefix, `acme:\*` the key `acme:*`.
    ///
    /// ```
    /// use tidegate::KeyPattern;
    /// assert_eq!(KeyPattern::parse("acme:*"), KeyPattern::prefix("acme:"));
    /// assert_eq!(KeyPattern::parse("user:vip"), KeyPattern::exact("user:vip"));
    /// assert_eq!(KeyPattern::parse(r"odd\*"), KeyPattern::exact("odd*"));
    /// ```
    pub fn parse(text: &str) -> Self {
        match (text.strip_suffix(r"\*"), text.strip_suffix('*')) {
            (Some(key), _) => Self::exact([key, "*"].concat()),
            (None, Some(prefix)) => Self::prefix(prefix),
            (None, None) => Self::exact(text),
        }
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyPattern::Exact(key) if key.ends_with(b"*") => {
                write!(f, r#""{}\*""#, key[..key.len() - 1].escape_ascii())
            }
            KeyPattern::Exact(key) => write!(f, "\"{}\"", key.escape_ascii()),
            KeyPattern::Prefix(prefix) => write!(f, "\"{}*\"", prefix.escape_ascii()),
        }
    }
}

/// Patterns and the place of the plan each brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    given: Vec<(KeyPattern, usize)>,
    exact: HashMap<Vec<u8>, usize>,
    /// By length: the lengths that occur, longest first, are few even where prefixes are many.
    prefixes: HashMap<Vec<u8>, usize>,
    lengths: Vec<usize>,
}

impl Overrides {
    /// Adds a pattern; `false` if it is there already.
    pub(crate) fn insert(&mut self, pattern: KeyPattern, plan: usize) -> bool {
        let fresh = match &pattern {
            KeyPattern::Exact(key) => self.exact.insert(key.clone(), plan).is_none(),
            KeyPattern::Prefix(prefix) => self.prefixes.insert(prefix.clone(), plan).is_none(),
        };
        if let KeyPattern::Prefix(prefix) = &pattern
            && let Err(place) = self.lengths.binary_search_by(|length| prefix.len().cmp(length))
        {
            self.lengths.insert(place, prefix.len());
        }
        self.given.push((pattern, plan));
        fresh
    }

    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&KeyPattern, usize)> {
        self.given.iter().map(|(pattern, plan)| (pattern, *plan))
    }

    /// The place of the plan in force for `key`; 0, the policy's own, if no pattern matches.
    #[inline]
    pub(crate) fn plan_for(&self, key: &[u8]) -> usize {
        if self.given.is_empty() {
            return 0;
        }
        self.exact.get(key).copied().or_else(|| self.longest_prefix(key)).unwrap_or(0)
    }

    /// The keys that have a pattern of their own.
    pub(crate) fn named_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.exact.keys().map(Vec::as_slice)
    }

    /// For keys that no pattern names exactly: which plans they have here and in `other`, in pairs. `None` if the
    /// prefixes are not the same, and so which keys go together is not.
    pub(crate) fn plans_beside(&self, other: &Overrides) -> Option<HashSet<(usize, usize)>> {
        if self.prefixes.len() != other.prefixes.len() {
            return None;
        }
        let beside = |(prefix, plan): (&Vec<u8>, &usize)| Some((*plan, *other.prefixes.get(prefix)?));
        std::iter::once(Some((0, 0))).chain(self.prefixes.iter().map(beside)).collect()
    }

    fn longest_prefix(&self, key: &[u8]) -> Option<usize> {
        let fitting = self.lengths.iter().filter_map(|length| key.get(..*length));
        fitting.filter_map(|prefix| self.prefixes.get(prefix)).copied().next()
    }
}
