//! `GET /v1/policies`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tidegate::{Limit, Period, Policy};
use utoipa::ToSchema;

use super::answer::AlgorithmName;
use crate::app::{App, DEFAULT_POLICY};
use crate::config::{limit_in_words, show_rate};

/// The policies in force.
#[derive(Serialize, ToSchema)]
#[schema(as = Policies)]
pub(super) struct Policies {
    /// In the order of the file.
    policies: Vec<PolicyFigures>,
}

/// One policy.
#[derive(Serialize, ToSchema)]
#[schema(as = Policy)]
struct PolicyFigures {
    /// Its name.
    #[schema(example = "default")]
    name: String,
    /// Whether it is the one for requests that name none.
    default: bool,
    /// Its limits, checked together, all or nothing.
    limits: Vec<LimitFigures>,
    /// How many keys or prefixes have figures of their own. Which is not told here: a key may be a secret.
    overrides: usize,
}

/// One limit's figures.
#[derive(Serialize, ToSchema)]
#[schema(as = Limit)]
struct LimitFigures {
    /// Its name in the policy.
    #[schema(example = "default")]
    name: String,
    /// Its algorithm.
    #[schema(value_type = AlgorithmName)]
    algorithm: &'static str,
    /// Its capacity, or its limit per window.
    #[schema(example = 100)]
    limit: u64,
    /// The rate of a bucket as the file writes it; null for windows.
    #[schema(required = true, example = "10/s")]
    rate: Option<String>,
    /// Units a bucket earns in each `rate_per_us`; null for windows.
    #[schema(required = true, example = 10)]
    rate_amount: Option<u64>,
    /// The period of a bucket's rate, in microseconds; null for windows.
    #[schema(required = true, example = 1_000_000)]
    rate_per_us: Option<u64>,
    /// The length of a window, in microseconds; null for buckets.
    #[schema(required = true)]
    window_us: Option<u64>,
    /// How far below zero penalties may sink it.
    #[schema(example = 100)]
    debt: u64,
    /// What that lets pass, in words.
    #[schema(example = "at most 100 at once, then 10 every second (one per 100 ms)")]
    in_words: String,
}

/// List the policies with their limits and figures.
#[utoipa::path(
    get,
    path = "/v1/policies",
    tag = "limits",
    responses((status = 200, description = "The policies in force", body = Policies))
)]
pub(super) async fn policies(State(app): State<Arc<App>>) -> Json<Policies> {
    let policies = app.limiter().policies();
    let only = policies.len() == 1;
    let figures = |policy: &Arc<Policy>| figures(policy, only || policy.name() == DEFAULT_POLICY);
    Json(Policies { policies: policies.iter().map(figures).collect() })
}

fn figures(policy: &Policy, default: bool) -> PolicyFigures {
    let limits = policy.limit_names().zip(policy.plan().limits());
    PolicyFigures {
        name: policy.name().to_owned(),
        default,
        limits: limits.map(|(name, limit)| limit_figures(name, limit)).collect(),
        overrides: policy.overrides().count(),
    }
}

fn limit_figures(name: &str, limit: &Limit) -> LimitFigures {
    let rate = limit.rate();
    LimitFigures {
        name: name.to_owned(),
        algorithm: limit.algorithm().name(),
        limit: limit.capacity().get(),
        rate: rate.map(show_rate),
        rate_amount: rate.map(|rate| rate.amount().get()),
        rate_per_us: rate.map(|rate| rate.per().as_micros()),
        window_us: limit.window().map(Period::as_micros),
        debt: limit.debt().get(),
        in_words: limit_in_words(limit),
    }
}
