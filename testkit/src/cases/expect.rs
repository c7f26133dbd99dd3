//! What a case states of an answer. What it leaves out is judged by the oracle alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::oracle::{OracleDecision, OracleFigures, Outcome};

/// What is stated of one answer.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// How the check must end.
    pub outcome: Option<Outcome>,
    /// The name of the binding limit.
    pub bound_by: Option<String>,
    /// The headline figures.
    pub headline: ExpectedFigures,
    /// Figures of each limit, in order; empty if nothing is stated of them.
    pub limits: Vec<ExpectedFigures>,
    /// Headers of the HTTP door, lower-case, with their whole value, or null for one that must be absent.
    pub headers: BTreeMap<String, Option<String>>,
}

/// What is stated of some figures. The outer `None` states nothing, the inner one states "never".
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExpectedFigures {
    /// The capacity or limit.
    pub limit: Option<u64>,
    /// What is left.
    pub remaining: Option<u64>,
    /// The wait until the cost fits.
    #[serde(deserialize_with = "stated")]
    pub retry_after_us: Option<Option<u128>>,
    /// The wait until as new.
    #[serde(deserialize_with = "stated")]
    pub reset_after_us: Option<Option<u128>>,
    /// The wait of admitted work.
    #[serde(deserialize_with = "wide")]
    pub delay_us: Option<u128>,
    /// The wait until more is left.
    #[serde(deserialize_with = "stated")]
    pub grows_after_us: Option<Option<u128>>,
}

/// Tells a field that is null from one that is absent.
pub(super) fn stated<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<u128>>, D::Error> {
    // Read as 64 bits, which hold every wait a case states: wider ones do not pass through `serde_json::Value`.
    Option::<u64>::deserialize(input).map(|wait| Some(wait.map(u128::from)))
}

fn wide<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u128>, D::Error> {
    u64::deserialize(input).map(|wait| Some(u128::from(wait)))
}

impl Expected {
    /// The first thing stated that `decision` is not, as a sentence.
    pub(super) fn contradicted_by(&self, decision: &OracleDecision, names: &[String]) -> Option<String> {
        let differs = |what: &str, stated: &dyn std::fmt::Debug, is: &dyn std::fmt::Debug| {
            Some(format!("{what} must be {stated:?}, is {is:?}"))
        };
        if let Some(outcome) = self.outcome
            && outcome != decision.outcome
        {
            return differs("the outcome", &outcome, &decision.outcome);
        }
        let bound_by = names.get(decision.bound_by);
        if self.bound_by.is_some() && self.bound_by.as_ref() != bound_by {
            return differs("the binding limit", &self.bound_by, &bound_by);
        }
        let headline = OracleFigures { delay_us: decision.delay_us(), ..decision.headline().clone() };
        if let Some(fault) = self.headline.contradicted_by(&headline) {
            return Some(format!("of the headline, {fault}"));
        }
        let mut limits = self.limits.iter().zip(&decision.limits).zip(names);
        limits.find_map(|((stated, is), name)| {
            stated.contradicted_by(is).map(|fault| format!("of {name:?}, {fault}"))
        })
    }
}

impl ExpectedFigures {
    fn contradicted_by(&self, is: &OracleFigures) -> Option<String> {
        fn differs<T: PartialEq + std::fmt::Debug>(what: &str, stated: &Option<T>, is: &T) -> Option<String> {
            let stated = stated.as_ref()?;
            (stated != is).then(|| format!("{what} must be {stated:?}, is {is:?}"))
        }
        differs("limit", &self.limit, &is.limit)
            .or_else(|| differs("remaining", &self.remaining, &is.remaining))
            .or_else(|| differs("retry_after_us", &self.retry_after_us, &is.retry_after_us))
            .or_else(|| differs("reset_after_us", &self.reset_after_us, &is.reset_after_us))
            .or_else(|| differs("delay_us", &self.delay_us, &is.delay_us))
            .or_else(|| differs("grows_after_us", &self.grows_after_us, &is.grows_after_us))
    }
}
