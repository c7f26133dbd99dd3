//! A line of a case file, as typed, and its one step to a case, as meant.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::expect::{Expected, ExpectedFigures, stated};
use super::{Action, Case, LimitSpec, Step};
use crate::oracle::Outcome;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLine {
    id: String,
    about: String,
    source: Option<String>,
    limits: Vec<LimitSpec>,
    #[serde(default)]
    refused: bool,
    /// Each a [`StepLine`], or a [`RepeatLine`] if it holds steps of its own.
    steps: Vec<serde_json::Value>,
}

/// Steps that are repeated as a group.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepeatLine {
    times: u64,
    every_us: u64,
    steps: Vec<StepLine>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum Op {
    #[default]
    Check,
    Peek,
    CheckUpTo,
    Credit,
    Penalize,
    Reset,
    Reload,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct StepLine {
    at_us: u64,
    #[serde(default = "one")]
    times: u64,
    #[serde(default)]
    every_us: u64,
    #[serde(default = "key_a")]
    key: String,
    #[serde(default)]
    op: Op,
    cost: Option<u64>,
    n: Option<u64>,
    max: Option<u64>,
    taken: Option<u64>,
    cut: Option<Vec<u64>>,
    outcome: Option<Outcome>,
    bound_by: Option<String>,
    limit: Option<u64>,
    remaining: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    retry_after_us: Option<Option<u128>>,
    #[serde(default, deserialize_with = "stated")]
    reset_after_us: Option<Option<u128>>,
    delay_us: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    grows_after_us: Option<Option<u128>>,
    /// Each limit's figures, or, for a reload, the new limits.
    limits: Option<serde_json::Value>,
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
}

fn one() -> u64 {
    1
}

fn key_a() -> String {
    "a".to_owned()
}

/// Reads a file; a line that does not have the format is a mistake in this crate.
pub(super) fn parse(name: &str, text: &str) -> Vec<Case> {
    let read = |(number, line)| {
        let read = serde_json::from_str(line).and_then(case);
        read.unwrap_or_else(|e| panic!("testkit/cases/{name}.jsonl:{}: {e}", number + 1))
    };
    text.lines().enumerate().map(read).collect()
}

fn case(line: CaseLine) -> serde_json::Result<Case> {
    let mut steps = Vec::new();
    for entry in line.steps {
        let repeat = match entry.get("steps") {
            Some(_) => serde_json::from_value(entry)?,
            None => RepeatLine { times: 1, every_us: 0, steps: vec![serde_json::from_value(entry)?] },
        };
        for round in 0..repeat.times {
            for line in &repeat.steps {
                unroll(line, round * repeat.every_us, &mut steps)?;
            }
        }
    }
    let CaseLine { id, about, source, limits, refused, .. } = line;
    Ok(Case { id, about, source, limits: named(limits), refused, steps })
}

/// Writes a step out as often as it says. All but the last state the outcome alone.
fn unroll(line: &StepLine, later_us: u64, steps: &mut Vec<Step>) -> serde_json::Result<()> {
    for round in 0..line.times {
        let expected = match round + 1 == line.times {
            true => expected(line)?,
            false => Expected { outcome: line.outcome, ..Expected::default() },
        };
        let at_us = line.at_us + later_us + round * line.every_us;
        steps.push(Step { at_us, key: line.key.clone(), action: action(line)?, expected });
    }
    Ok(())
}

fn action(line: &StepLine) -> serde_json::Result<Action> {
    let need = |field: Option<u64>, name| {
        field.ok_or_else(|| <serde_json::Error as serde::de::Error>::missing_field(name))
    };
    Ok(match line.op {
        Op::Check => Action::Check { cost: need(line.cost, "cost")? },
        Op::Peek => Action::Check { cost: 0 },
        Op::CheckUpTo => Action::CheckUpTo { max: need(line.max, "max")?, taken: need(line.taken, "taken")? },
        Op::Credit => Action::Credit { n: need(line.n, "n")? },
        Op::Penalize => Action::Penalize { n: need(line.n, "n")?, cut: line.cut.clone().unwrap_or_default() },
        Op::Reset => Action::Reset,
        Op::Reload => Action::Reload { limits: named(from_value(line)?) },
    })
}

fn expected(line: &StepLine) -> serde_json::Result<Expected> {
    let limits = if line.op == Op::Reload { Vec::new() } else { from_value(line)? };
    let headline = ExpectedFigures {
        limit: line.limit,
        remaining: line.remaining,
        retry_after_us: line.retry_after_us,
        reset_after_us: line.reset_after_us,
        delay_us: line.delay_us.map(u128::from),
        grows_after_us: line.grows_after_us,
    };
    let (bound_by, headers) = (line.bound_by.clone(), line.headers.clone());
    Ok(Expected { outcome: line.outcome, bound_by, headline, limits, headers })
}

fn from_value<T: serde::de::DeserializeOwned>(line: &StepLine) -> serde_json::Result<Vec<T>> {
    line.limits.clone().map_or(Ok(Vec::new()), serde_json::from_value)
}

fn named(mut limits: Vec<LimitSpec>) -> Vec<LimitSpec> {
    for (position, limit) in limits.iter_mut().enumerate() {
        if limit.name.is_empty() {
            limit.name = format!("limit{position}");
        }
    }
    limits
}
