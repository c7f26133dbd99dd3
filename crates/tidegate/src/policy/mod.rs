//! Policies: named limits checked together, with other figures for some keys.

mod overrides;
mod set;

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::{Algorithm, Limit, MAX_LIMITS, Plan};

pub use overrides::KeyPattern;
use overrides::Overrides;
pub use set::PolicySet;

/// One to eight named limits that every check of a key is put to together, all or nothing.
///
/// ```
/// use tidegate::{KeyPattern, Limit, Period, Policy, Rate};
/// let api = Policy::builder("api")
///     .limit("burst", Limit::token_bucket(100, Rate::per_second(10)))
///     .limit("daily", Limit::fixed_window(10_000, Period::DAY))
///     .override_for(
///         KeyPattern::exact("user:vip"),
///         [("burst", Limit::token_bucket(1_000, Rate::per_second(100)))],
///     )
///     .build()?;
/// assert_eq!(api.limit_names().collect::<Vec<_>>(), ["burst", "daily"]);
/// assert_eq!(api.plan_for(b"user:vip").limits()[0].capacity().get(), 1_000);
/// assert_eq!(api.plan_for(b"user:42").limits()[0].capacity().get(), 100);
/// # Ok::<(), tidegate::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    name: Arc<str>,
    names: Box<[Arc<str>]>,
    /// The policy's own figures first, then each override's.
    plans: Box<[Plan]>,
    overrides: Overrides,
}

/// Why a policy cannot be built, naming the policy, the limit, the rule broken and the mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A name that could not be shown in a header.
    #[error(
        "{name:?}: a name is 1 to 128 printable ASCII characters, since it is shown in HTTP headers (rename it)"
    )]
    Name {
        /// The name refused.
        name: String,
    },
    /// None, or too many.
    #[error("policy {policy:?}: {limits} limits: a policy has one to eight limits (split the policy)")]
    LimitCount {
        /// The policy.
        policy: String,
        /// How many limits it was given.
        limits: usize,
    },
    /// Two limits of the same name.
    #[error("policy {policy:?}: two limits are named {limit:?} (rename one)")]
    DuplicateLimit {
        /// The policy.
        policy: String,
        /// The name.
        limit: String,
    },
    /// Two policies of the same name.
    #[error("two policies are named {policy:?} (rename one)")]
    DuplicatePolicy {
        /// The name.
        policy: String,
    },
    /// An override for a limit the policy does not have.
    #[error("policy {policy:?}, override {pattern}: no limit is named {limit:?} (the policy has {known})")]
    UnknownLimit {
        /// The policy.
        policy: String,
        /// The keys it is for.
        pattern: KeyPattern,
        /// The limit named.
        limit: String,
        /// The limits there are.
        known: String,
    },
    /// An override that would change the algorithm, not the figures.
    #[error(
        "policy {policy:?}, override {pattern}, limit {limit:?}: an override gives other figures, not another \
         algorithm: {found} where the policy has {expected}"
    )]
    AlgorithmChanged {
        /// The policy.
        policy: String,
        /// The keys it is for.
        pattern: KeyPattern,
        /// The limit named.
        limit: String,
        /// The policy's algorithm.
        expected: Algorithm,
        /// The override's.
        found: Algorithm,
    },
    /// Two overrides for the same keys.
    #[error("policy {policy:?}: two overrides for {pattern} (merge them)")]
    DuplicateOverride {
        /// The policy.
        policy: String,
        /// The keys both are for.
        pattern: KeyPattern,
    },
}

/// Which plans the keys of one plan have in another policy.
#[derive(Clone, Copy)]
enum Heir {
    Nobody,
    One(usize),
    Several,
}

impl Policy {
    /// Starts a policy of this name.
    pub fn builder(name: impl Into<String>) -> PolicyBuilder {
        PolicyBuilder { name: name.into(), limits: Vec::new(), overrides: Vec::new() }
    }

    /// A policy of one limit that bears the policy's own name.
    ///
    /// # Errors
    /// A name that cannot be shown in a header.
    pub fn single(name: impl Into<String>, limit: Limit) -> Result<Self, PolicyError> {
        let name = name.into();
        Self::builder(name.clone()).limit(name, limit).build()
    }

    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its limits, in order.
    pub fn limit_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The name of the limit at `index`, as [`Decision::bound_by`](crate::Decision::bound_by) counts; of the
    /// last one if there are fewer.
    pub fn limit_name(&self, index: usize) -> &str {
        &self.names[index.min(self.names.len() - 1)]
    }

    /// The figures of keys without an override.
    pub fn plan(&self) -> &Plan {
        &self.plans[0]
    }

    /// The figures in force for `key`: an override for exactly this key, else the one with the longest
    /// matching prefix, else the policy's own.
    pub fn plan_for(&self, key: &[u8]) -> &Plan {
        &self.plans[self.plan_index(key)]
    }

    /// The overrides in the order they were given, with the figures each brings.
    pub fn overrides(&self) -> impl Iterator<Item = (&KeyPattern, &Plan)> {
        self.overrides.patterns().map(|(pattern, plan)| (pattern, &self.plans[plan]))
    }

    #[inline]
    pub(crate) fn plan_index(&self, key: &[u8]) -> usize {
        self.overrides.plan_for(key)
    }

    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// For each plan of `old` the one of this policy that its keys have now; `None` where that depends on the key.
    ///
    /// This is so for keys that neither policy names: see [`named_keys`](Self::named_keys).
    pub(crate) fn heirs(&self, old: &Policy) -> Vec<Option<usize>> {
        let mut heirs = vec![Heir::Nobody; old.plans.len()];
        for (before, now) in old.overrides.plans_beside(&self.overrides).into_iter().flatten() {
            heirs[before] = match heirs[before] {
                Heir::Nobody => Heir::One(now),
                Heir::One(other) if other == now => Heir::One(now),
                _ => Heir::Several,
            };
        }
        heirs.into_iter().map(|heir| if let Heir::One(plan) = heir { Some(plan) } else { None }).collect()
    }

    /// The keys that have an override of their own.
    pub(crate) fn named_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.overrides.named_keys()
    }

    /// Whether state kept under a plan of `old` has to be carried over to stand under one of this policy.
    pub(crate) fn changes(&self, plan: usize, old: &Policy, before: usize) -> bool {
        self.plans[plan] != old.plans[before] || self.names != old.names
    }

    /// For each limit of this policy its place in `old`, by name; `None` for those `old` has not.
    pub(crate) fn origins(&self, old: &Policy) -> Vec<Option<usize>> {
        self.names.iter().map(|name| old.names.iter().position(|other| other == name)).collect()
    }
}

/// A policy being put together; see [`Policy::builder`].
#[derive(Debug, Clone)]
pub struct PolicyBuilder {
    name: String,
    limits: Vec<(String, Limit)>,
    overrides: Vec<(KeyPattern, Vec<(String, Limit)>)>,
}

impl PolicyBuilder {
    /// Adds a limit.
    #[must_use]
    pub fn limit(mut self, name: impl Into<String>, limit: Limit) -> Self {
        self.limits.push((name.into(), limit));
        self
    }

    /// Gives the keys that match `pattern` other figures for the limits named; the others stay as they are.
    #[must_use]
    pub fn override_for<N: Into<String>>(
        mut self,
        pattern: KeyPattern,
        limits: impl IntoIterator<Item = (N, Limit)>,
    ) -> Self {
        let limits = limits.into_iter().map(|(name, limit)| (name.into(), limit)).collect();
        self.overrides.push((pattern, limits));
        self
    }

    /// Checks the whole and builds it.
    ///
    /// # Errors
    /// The first rule broken, see [`PolicyError`].
    pub fn build(self) -> Result<Policy, PolicyError> {
        self.check_names()?;
        let own: Vec<Limit> = self.limits.iter().map(|(_, limit)| *limit).collect();
        let mut plans = vec![self.plan(&own)?];
        // By figures: a file may give a hundred thousand keys figures of their own.
        let mut known = HashMap::from([(plans[0].clone(), 0)]);
        let mut overrides = Overrides::default();
        for (pattern, limits) in &self.overrides {
            let plan = self.plan(&self.overridden(&own, pattern, limits)?)?;
            let index = *known.entry(plan).or_insert_with_key(|plan| {
                plans.push(plan.clone());
                plans.len() - 1
            });
            if !overrides.insert(pattern.clone(), index) {
                let policy = self.name.clone();
                return Err(PolicyError::DuplicateOverride { policy, pattern: pattern.clone() });
            }
        }
        Ok(Policy {
            name: self.name.as_str().into(),
            names: self.limits.iter().map(|(name, _)| name.as_str().into()).collect(),
            plans: plans.into(),
            overrides,
        })
    }

    fn plan(&self, limits: &[Limit]) -> Result<Plan, PolicyError> {
        let count = |_| PolicyError::LimitCount { policy: self.name.clone(), limits: limits.len() };
        Plan::new(limits.iter().copied()).map_err(count)
    }

    fn check_names(&self) -> Result<(), PolicyError> {
        let names = std::iter::once(&self.name).chain(self.limits.iter().map(|(name, _)| name));
        for name in names {
            let printable = name.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            if !printable || name.is_empty() || name.len() > 128 {
                return Err(PolicyError::Name { name: name.clone() });
            }
        }
        if self.limits.is_empty() || self.limits.len() > MAX_LIMITS {
            let (policy, limits) = (self.name.clone(), self.limits.len());
            return Err(PolicyError::LimitCount { policy, limits });
        }
        for (index, (name, _)) in self.limits.iter().enumerate() {
            if self.limits[..index].iter().any(|(other, _)| other == name) {
                let (policy, limit) = (self.name.clone(), name.clone());
                return Err(PolicyError::DuplicateLimit { policy, limit });
            }
        }
        Ok(())
    }

    fn overridden(
        &self,
        own: &[Limit],
        pattern: &KeyPattern,
        limits: &[(String, Limit)],
    ) -> Result<Vec<Limit>, PolicyError> {
        let mut figures = own.to_vec();
        for (name, limit) in limits {
            let Some(index) = self.limits.iter().position(|(known, _)| known == name) else {
                let known: Vec<&str> = self.limits.iter().map(|(name, _)| name.as_str()).collect();
                return Err(PolicyError::UnknownLimit {
                    policy: self.name.clone(),
                    pattern: pattern.clone(),
                    limit: name.clone(),
                    known: known.join(", "),
                });
            };
            if limit.algorithm() != own[index].algorithm() {
                return Err(PolicyError::AlgorithmChanged {
                    policy: self.name.clone(),
                    pattern: pattern.clone(),
                    limit: name.clone(),
                    expected: own[index].algorithm(),
                    found: limit.algorithm(),
                });
            }
            figures[index] = *limit;
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Period, Rate};

    fn api() -> PolicyBuilder {
        Policy::builder("api")
            .limit("burst", Limit::token_bucket(100, Rate::per_second(10)))
            .limit("daily", Limit::fixed_window(10_000, Period::DAY))
    }

    fn bigger() -> Limit {
        Limit::token_bucket(1_000, Rate::per_second(100))
    }

    #[test]
    fn the_exact_key_comes_before_the_longest_prefix() {
        let policy = api()
            .override_for(KeyPattern::prefix("acme:"), [("burst", bigger())])
            .override_for(KeyPattern::prefix("acme:eu:"), [("daily", Limit::fixed_window(7, Period::DAY))])
            .override_for(KeyPattern::exact("acme:eu:7"), [("daily", Limit::fixed_window(0, Period::DAY))])
            .build()
            .unwrap();
        let figures = |key: &str| {
            let limits = policy.plan_for(key.as_bytes()).limits();
            (limits[0].capacity().get(), limits[1].capacity().get())
        };
        assert_eq!(figures("acme:us"), (1_000, 10_000));
        assert_eq!(figures("acme:eu:1"), (100, 7));
        assert_eq!(figures("acme:eu:7"), (100, 0));
        assert_eq!(figures("acme"), (100, 10_000));
    }

    #[test]
    fn refuses_by_name() {
        let refused = |builder: PolicyBuilder| builder.build().unwrap_err().to_string();
        assert!(refused(Policy::builder("api")).contains("0 limits"));
        assert!(refused(Policy::builder("a\u{e9}").limit("x", bigger())).contains("printable ASCII"));
        assert!(refused(api().limit("burst", bigger())).contains("two limits are named \"burst\""));
        let unknown = api().override_for(KeyPattern::exact("k"), [("brust", bigger())]);
        assert!(refused(unknown).contains("no limit is named \"brust\" (the policy has burst, daily)"));
        let changed = api().override_for(KeyPattern::exact("k"), [("daily", bigger())]);
        assert!(refused(changed).contains("token_bucket where the policy has fixed_window"));
        let twice = api()
            .override_for(KeyPattern::exact("k"), [("burst", bigger())])
            .override_for(KeyPattern::exact("k"), [("burst", bigger())]);
        assert!(refused(twice).contains("two overrides"));
    }
}
