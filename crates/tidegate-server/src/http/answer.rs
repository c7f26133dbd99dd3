//! A decision as JSON.

use serde::{Serialize, Serializer};
use tidegate::{LimitDecision, Wait};
use utoipa::ToSchema;

use super::view::{Part, View};

/// A decision. Times are whole milliseconds, rounded up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Decision)]
pub struct Answer<'a> {
    /// Whether the work may go ahead now.
    allowed: bool,
    /// `allowed`; `denied` for now; `cost_exceeds_capacity`, which no wait mends; or `overloaded`: the store is full of
    /// other keys.
    #[schema(value_type = OutcomeName)]
    outcome: &'static str,
    /// The policy that decided.
    #[schema(value_type = String, example = "default")]
    policy: &'a str,
    /// The limit the figures here come from: of a denial the one with the longest wait, of an admission
    /// the one with the least left.
    #[schema(value_type = String, example = "default")]
    bound_by: &'a str,
    /// Its capacity, or its limit per window.
    #[schema(example = 100)]
    limit: u64,
    /// What is left of it, rounded down; null if the store did not answer and nothing was counted.
    #[schema(required = true, example = 99)]
    remaining: Option<u64>,
    /// Wait until the same check is admitted, if nothing else happens: 0 if it was, null if never.
    #[schema(value_type = Option<u64>, required = true, example = 0)]
    retry_after_ms: Option<u128>,
    /// Time until the limit is as new: 0 if it is, null if never.
    #[schema(value_type = Option<u64>, required = true, example = 100)]
    reset_after_ms: Option<u128>,
    /// How long admitted work should wait, so that it leaves evenly spaced. Leaky buckets ask for it.
    #[schema(value_type = u64, example = 0)]
    delay_ms: u128,
    /// There, and true, if the store that all instances share did not answer: the figures are this instance's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    degraded: bool,
    /// Every limit's own figures, in the order of the policy; none if nothing was counted. An overloaded store tells of the first only.
    #[schema(value_type = Vec<LimitAnswer>)]
    limits: Parts<'a>,
}

/// One limit's own figures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitFigures)]
pub struct LimitAnswer<'a> {
    /// Its name in the policy.
    #[schema(value_type = String, example = "default")]
    name: &'a str,
    /// Its algorithm.
    #[schema(value_type = AlgorithmName)]
    algorithm: &'static str,
    /// Its capacity, or its limit per window.
    #[schema(example = 100)]
    limit: u64,
    /// What is left of it, rounded down.
    #[schema(example = 99)]
    remaining: u64,
    /// Wait until this limit alone admits the cost: 0 if it does, null if never.
    #[schema(value_type = Option<u64>, required = true, example = 0)]
    retry_after_ms: Option<u128>,
    /// Time until it is as new: 0 if it is, null if never.
    #[schema(value_type = Option<u64>, required = true, example = 100)]
    reset_after_ms: Option<u128>,
    /// How long it asks admitted work to wait.
    #[schema(value_type = u64, example = 0)]
    delay_ms: u128,
    /// Of a penalty only: what of it was cut because the limit lets no more debt be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cut: Option<u64>,
}

/// How a check ended, for the document only: the words are [`tidegate::Outcome`]'s.
#[derive(ToSchema)]
#[schema(as = Outcome, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub enum OutcomeName {
    Allowed,
    Denied,
    CostExceedsCapacity,
    Overloaded,
}

/// The algorithms, for the document only: the words are [`tidegate::Algorithm`]'s.
#[derive(ToSchema)]
#[schema(as = Algorithm, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub enum AlgorithmName {
    TokenBucket,
    Gcra,
    LeakyBucket,
    FixedWindow,
    SlidingWindowLog,
    SlidingWindowCounter,
}

/// The limits' figures, written straight from the decision.
#[derive(Debug)]
struct Parts<'a>(&'a View<'a>);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = if self.0.decision().is_metered() { usize::MAX } else { 0 };
        serializer.collect_seq(self.0.parts().take(told).map(|Part { name, limit, decision, cut }| {
            LimitAnswer {
                name,
                algorithm: limit.algorithm().name(),
                limit: decision.limit().get(),
                remaining: decision.remaining(),
                retry_after_ms: millis(decision.retry_after()),
                reset_after_ms: millis(decision.reset_after()),
                delay_ms: decision.delay().as_millis_ceil(),
                cut,
            }
        }))
    }
}

impl<'a> From<&'a View<'a>> for Answer<'a> {
    fn from(view: &'a View<'a>) -> Self {
        let decision = view.decision();
        let binding: &LimitDecision = decision.binding();
        Answer {
            allowed: decision.is_allowed(),
            outcome: decision.outcome().as_str(),
            policy: view.policy().name(),
            bound_by: view.bound_by(),
            limit: binding.limit().get(),
            remaining: decision.is_metered().then(|| binding.remaining()),
            retry_after_ms: millis(binding.retry_after()),
            reset_after_ms: millis(binding.reset_after()),
            delay_ms: decision.delay().as_millis_ceil(),
            degraded: decision.is_degraded(),
            limits: Parts(view),
        }
    }
}

fn millis(wait: Option<Wait>) -> Option<u128> {
    wait.map(Wait::as_millis_ceil)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate::clock::ManualClock;
    use tidegate::{Cost, Limit, Limiter, Outcome, Period, Policy, Rate, Units};

    use super::*;

    #[test]
    fn waits_of_any_length_are_json_integers() {
        let most = Units::MAX;
        let policy = Policy::single("slow", Limit::token_bucket(most, Rate::new(1, Period::MAX))).unwrap();
        let limiter = Limiter::builder(policy).clock(ManualClock::default()).build();
        let handle = limiter.policy("slow").unwrap();
        let cost = Cost::new(most.get()).unwrap();
        assert!(handle.check(b"k", cost).is_allowed());
        let policy = handle.policy();
        let view = View::decided((Arc::clone(&policy), policy), b"k", handle.check(b"k", cost));
        let json = serde_json::to_string(&Answer::from(&view)).unwrap();
        // 10^12 units at one in 366 days, in milliseconds: more than 64 bits hold.
        assert!(json.contains(r#""retry_after_ms":31622400000000000000000,"#), "{json}");
    }

    #[test]
    fn the_document_knows_every_word() {
        let outcomes = <OutcomeName as utoipa::PartialSchema>::schema();
        let outcomes = serde_json::to_string(&outcomes).unwrap();
        for outcome in [Outcome::Allowed, Outcome::Denied, Outcome::CostExceedsCapacity, Outcome::Overloaded]
        {
            assert!(outcomes.contains(&format!("\"{outcome}\"")), "{outcomes}");
        }
        let algorithms = <AlgorithmName as utoipa::PartialSchema>::schema();
        let algorithms = serde_json::to_string(&algorithms).unwrap();
        for algorithm in tidegate::Algorithm::ALL {
            assert!(algorithms.contains(&format!("\"{algorithm}\"")), "{algorithms}");
        }
    }
}
