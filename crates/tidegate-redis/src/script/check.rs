//! `check.lua`: decisions.

use std::sync::Arc;

use redis::Value;
use tidegate::{Cost, Decision, Timestamp};

use super::{Call, Lives, Script, Unheard};
use crate::prepared::Prepared;
use crate::record::{KeptLog, double, doubles, numbers};

static CHECK: Script =
    Script { name: "check", source: concat!(include_str!("record.lua"), include_str!("check.lua")) };

/// How the checks of one call hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each is decided for itself, in order.
    Each,
    /// All are charged or none is. No two are of one record.
    All,
    /// None is charged.
    Foresee,
}

/// What a check asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Exactly(u64),
    UpTo(u64),
}

/// One check of a call.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) plan: Arc<Prepared>,
    /// The record's name.
    pub(crate) record: Vec<u8>,
    pub(crate) ask: Ask,
    /// The instant it is asked at.
    pub(crate) now: Timestamp,
    /// Whether the answer needs whole logs rather than what a single check's needs.
    pub(crate) whole_logs: bool,
}

/// What the script says of one check.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Decided {
        admitted: bool,
        /// The record as it was, without its rings; empty if there was none.
        kept: Vec<u8>,
        /// What the answer needs of each log.
        logs: Vec<KeptLog>,
    },
    /// The record stands under other figures, or is not ours.
    Foreign,
    /// A script of another kind was asked, and has answered for good.
    Answered(Box<Decision>),
}

/// The call that decides `items`, of which those of one record are of one instant.
pub(crate) fn check(items: &[Item], lives: Lives, mode: Mode) -> Call {
    let mut plans: Vec<&Arc<Prepared>> = Vec::new();
    let mut checks = Vec::with_capacity(items.len());
    for item in items {
        let known = plans.iter().position(|plan| Arc::ptr_eq(plan, &item.plan));
        let plan = known.unwrap_or_else(|| {
            plans.push(&item.plan);
            plans.len() - 1
        });
        let (cost, up_to) = match item.ask {
            Ask::Exactly(cost) => (cost, 0.0),
            Ask::UpTo(most) => (most, 1.0),
        };
        checks.push(packed(&[
            double(plan as u64 + 1),
            double(item.now.as_micros()),
            double(cost),
            up_to,
            f64::from(u8::from(item.whole_logs)),
        ]));
    }
    let mode = match mode {
        Mode::Each => 0.0,
        Mode::All => 1.0,
        Mode::Foresee => 2.0,
    };
    let [spare, unending] = lives.doubles();
    let head = packed(&[spare, unending, mode, double(plans.len() as u64)]);
    let mut args = Vec::with_capacity(1 + 2 * plans.len() + checks.len());
    args.push(head);
    args.extend(plans.iter().flat_map(|plan| [plan.tag.clone(), plan.figures.clone()]));
    args.append(&mut checks);
    Call { script: &CHECK, keys: items.iter().map(|item| item.record.clone()).collect(), args }
}

impl Told {
    /// What a script said of each of `items`: this one in words, those of plans of their own in signs.
    pub(crate) fn of(reply: Value, items: &[Item]) -> Result<Vec<Told>, Unheard> {
        let unheard =
            |reply: &dyn std::fmt::Debug| Unheard { script: CHECK.name, reply: format!("{reply:?}") };
        let words = match reply {
            Value::Array(words) => words,
            Value::BulkString(signs) => {
                return super::swift::told(&signs, items).ok_or_else(|| unheard(&signs));
            }
            other => return Err(unheard(&other)),
        };
        let expected: usize = items.iter().map(|item| 2 + item.plan.logs).sum();
        if words.len() != expected {
            return Err(unheard(&words));
        }
        let mut words = words.into_iter();
        let mut told = Vec::with_capacity(items.len());
        for item in items {
            let verdict = words.next();
            let Some(Value::BulkString(kept)) = words.next() else { return Err(unheard(&verdict)) };
            let logs: Vec<Value> = words.by_ref().take(item.plan.logs).collect();
            told.push(match verdict {
                Some(Value::Int(2)) => Told::Foreign,
                Some(Value::Int(verdict @ (0 | 1))) => {
                    let logs = logs.iter().map(|log| read_log(log, item.whole_logs)).collect();
                    // What is no log is not ours; the record as a whole says what is wrong with it.
                    let decided = |logs| Told::Decided { admitted: verdict == 1, kept, logs };
                    Option::map_or(logs, Told::Foreign, decided)
                }
                other => return Err(unheard(&other)),
            });
        }
        Ok(told)
    }
}

fn read_log(log: &Value, whole: bool) -> Option<KeptLog> {
    let Value::BulkString(bytes) = log else { return None };
    if whole {
        // The running total, the number of entries, then each with the total before it.
        let (counts, entries) = bytes.split_at_checked(16)?;
        let total = *numbers(counts)?.first()?;
        return KeptLog::of_slots(entries, total).ok();
    }
    let (first, rest) = numbers(bytes)?.split_first().map(|(first, rest)| (*first, rest.to_vec()))?;
    let mut entries: Vec<(u64, u64)> = rest.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    // The first may be the last, and the one in between either.
    entries.dedup();
    Some(KeptLog { base: first, entries })
}

fn packed(numbers: &[f64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 * numbers.len());
    doubles(numbers, &mut out);
    out
}

/// A cost as it is asked for.
impl From<Cost> for Ask {
    fn from(cost: Cost) -> Self {
        Ask::Exactly(cost.get())
    }
}
