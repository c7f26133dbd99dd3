//! Replay as a subject of the conformance suite: each check is a line of a trace and its answer a line of decisions,
//! under a configuration written out as a file.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use tidegate_cli::replay::{News, Replayer, replay};
use tidegate_cli::trace::{Order, Trace};
use tidegate_server::config::Config;
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{self, Offers, Subject, SubjectAnswer};
use tidegate_testkit::oracle::{Kind, OracleFigures, Outcome};

#[derive(Default)]
struct Replay(Option<Replayer>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at_us: u64,
    key: Option<String>,
    key_b64: Option<String>,
    cost: u64,
    policy: String,
    allowed: bool,
    outcome: String,
    bound_by: String,
    limit: u64,
    remaining: u64,
    retry_after_us: Option<u128>,
    reset_after_us: Option<u128>,
    delay_us: u128,
    limits: Vec<LineLimit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineLimit {
    name: String,
    algorithm: String,
    limit: u64,
    remaining: u64,
    retry_after_us: Option<u128>,
    reset_after_us: Option<u128>,
    delay_us: u128,
}

/// The limits as a configuration file has them.
fn file(limits: &[LimitSpec]) -> String {
    let mut text = "policies:\n  judged:\n    limits:\n".to_owned();
    for LimitSpec { name, kind, capacity, amount, period_us, debt } in limits {
        let rate = format!("{amount}/{period_us}us");
        let (algorithm, figures) = match kind {
            Kind::TokenBucket => ("token_bucket", format!("capacity: {capacity}, refill: {rate}")),
            Kind::Gcra => ("gcra", format!("rate: {rate}, burst: {capacity}")),
            Kind::LeakyBucket => ("leaky_bucket", format!("capacity: {capacity}, leak: {rate}")),
            Kind::FixedWindow => ("fixed_window", format!("limit: {capacity}, window: {period_us}us")),
            Kind::SlidingWindowLog => {
                ("sliding_window_log", format!("limit: {capacity}, window: {period_us}us"))
            }
            Kind::SlidingWindowCounter => {
                ("sliding_window_counter", format!("limit: {capacity}, window: {period_us}us"))
            }
        };
        let debt = debt.map_or(String::new(), |debt| format!(", debt: {debt}"));
        writeln!(text, "      - {{name: {name:?}, algorithm: {algorithm}, {figures}{debt}}}").unwrap();
    }
    text
}

impl Subject for Replay {
    fn offers(&self) -> Offers {
        // A trace holds checks and nothing else.
        let (check_up_to, forced, reset, reload) = (false, false, false, false);
        Offers { grows_after: false, check_up_to, forced, reset, reload, ..Offers::default() }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let config = Config::parse(&file(limits), "judged.yaml").map_err(|errors| errors.to_string())?;
        self.0 = Some(Replayer::new(config.policies().clone(), None).map_err(|error| error.to_string())?);
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let replayer = self.0.as_ref().unwrap();
        let asked = match std::str::from_utf8(key) {
            Ok(key) => json!({"at_us": at_us, "key": key, "cost": cost}).to_string(),
            Err(_) => json!({"at_us": at_us, "key_b64": STANDARD.encode(key), "cost": cost}).to_string(),
        };
        let mut trace = Trace::new(asked.as_bytes(), Order::default(), |name| replayer.resolve(name));
        let mut decided = Vec::new();
        let summary = replay(&mut trace, replayer, Some(&mut decided), &mut |news| {
            assert!(!matches!(news, News::BadLine(_)), "{asked}: {news:?}")
        })
        .unwrap();
        assert_eq!(summary.checks, 1);
        answer(at_us, key, cost, &decided)
    }
}

/// What a line of decisions says, once it is sure that it is about this check.
fn answer(at_us: u64, key: &[u8], cost: u64, line: &[u8]) -> SubjectAnswer {
    let line: Line = serde_json::from_slice(line).unwrap();
    assert_eq!((line.at_us, line.cost), (at_us, cost));
    match (line.key, line.key_b64) {
        (Some(text), None) => assert_eq!(text.as_bytes(), key),
        (None, Some(coded)) => assert_eq!(STANDARD.decode(coded).unwrap(), key),
        both => panic!("{both:?}"),
    }
    assert_eq!(line.policy, "judged");
    let outcome = match line.outcome.as_str() {
        "allowed" => Outcome::Allowed,
        "denied" => Outcome::Denied,
        "cost_exceeds_capacity" => Outcome::CostExceedsCapacity,
        other => panic!("{other}"),
    };
    assert_eq!(line.allowed, outcome == Outcome::Allowed);
    assert!(line.limits.iter().all(|limit| !limit.algorithm.is_empty()));
    let bound_by = line.limits.iter().position(|limit| limit.name == line.bound_by).unwrap();
    let figures = |limit: &LineLimit| OracleFigures {
        limit: limit.limit,
        remaining: limit.remaining,
        retry_after_us: limit.retry_after_us,
        reset_after_us: limit.reset_after_us,
        delay_us: limit.delay_us,
        grows_after_us: None,
    };
    let headline = OracleFigures {
        limit: line.limit,
        remaining: line.remaining,
        retry_after_us: line.retry_after_us,
        reset_after_us: line.reset_after_us,
        delay_us: line.delay_us,
        grows_after_us: None,
    };
    let limits = line.limits.iter().map(figures).collect();
    SubjectAnswer { outcome, bound_by, headline, limits, headers: None }
}

#[test]
fn the_worked_examples_hold() {
    conformance::worked_examples(&mut Replay::default());
}

#[test]
fn no_fault_reported_against_others_is_ours() {
    conformance::cases(&mut Replay::default());
}

#[test]
fn random_traces_are_decided_as_the_oracle_decides_them() {
    conformance::random_traces(&mut Replay::default(), 100);
}

#[test]
fn every_wait_is_honest() {
    conformance::edges(&mut Replay::default(), 60);
}

#[test]
fn no_more_is_admitted_than_promised() {
    conformance::bound(&mut Replay::default(), 60);
}

#[test]
fn different_keys_share_nothing() {
    conformance::keys_apart(&mut Replay::default());
}
