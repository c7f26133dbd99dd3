//! Scripts written for the kinds of limits a plan has, for the checks that there are most of (`written`): which goes out,
//! with what, and what it says.
//!
//! They say of a check exactly what `check.lua` says, and leave the same record; they know no logs, and every
//! check is for itself. There is one for each sequence of kinds that policies have, kept for as long as the process
//! lives.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tidegate::{Algorithm, Limit, Plan};

use super::written::{Checks, source};
use super::{Ask, Call, Item, Lives, Script, Told, most_counted};
use crate::record::{double, doubles, width};

/// The script for a plan, and the plan's figures as it reads them.
#[derive(Debug)]
pub(crate) struct Swift {
    one: &'static Script,
    distinct: &'static Script,
    many: &'static Script,
    figures: Vec<u8>,
}

impl Swift {
    /// `None` if the plan keeps a log.
    pub(crate) fn of(plan: &Plan) -> Option<Swift> {
        type Three = [&'static Script; 3];
        static SCRIPTS: Mutex<BTreeMap<String, Three>> = Mutex::new(BTreeMap::new());
        let kinds: Option<String> = plan.limits().iter().map(kind).collect();
        let kinds = kinds?;
        let mut scripts = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
        let write = |kinds: &str, checks, name| -> &'static Script {
            let source = Box::leak(source(kinds, checks).into_boxed_str());
            Box::leak(Box::new(Script { name, source }))
        };
        let [one, distinct, many] = *scripts.entry(kinds).or_insert_with_key(|kinds| {
            [
                write(kinds, Checks::One, "check one"),
                write(kinds, Checks::Distinct, "check several"),
                write(kinds, Checks::Many, "check many"),
            ]
        });
        let mut figures = Vec::new();
        plan.limits().iter().for_each(|limit| doubles(&of_limit(limit), &mut figures));
        Some(Swift { one, distinct, many, figures })
    }

    /// The call that decides `items`, which are all of the plan tagged `tag`.
    pub(crate) fn call(&self, tag: &[u8], items: &[Item], lives: Lives) -> Call {
        let mut constants = self.figures.clone();
        doubles(&lives.doubles(), &mut constants);
        constants.extend_from_slice(tag);
        let mut checks = Vec::with_capacity(24 * items.len() + constants.len());
        for item in items {
            let (cost, up_to) = match item.ask {
                Ask::Exactly(cost) => (cost, 0.0),
                Ask::UpTo(most) => (most, 1.0),
            };
            doubles(&[double(item.now.as_micros()), double(cost), up_to], &mut checks);
        }
        let (script, args) = match items {
            [_] => (self.one, vec![[checks, constants].concat()]),
            _ if are_distinct(items) => (self.distinct, vec![constants, checks]),
            _ => (self.many, vec![constants, checks]),
        };
        Call { script, keys: items.iter().map(|item| item.record.clone()).collect(), args }
    }
}

/// Whether no two are of one record.
fn are_distinct(items: &[Item]) -> bool {
    let records: HashSet<&[u8]> = items.iter().map(|item| &item.record[..]).collect();
    records.len() == items.len()
}

/// What these scripts said of each of `items`: a sign for each, and the record as it was where there was one.
pub(super) fn told(mut reply: &[u8], items: &[Item]) -> Option<Vec<Told>> {
    let mut told = Vec::with_capacity(items.len());
    for Item { plan, .. } in items {
        let (sign, rest) = reply.split_first()?;
        let record = if matches!(sign, b'A' | b'R') { plan.tag.len() + 8 * width(&plan.plan) } else { 0 };
        let (kept, rest) = rest.split_at_checked(record)?;
        told.push(match sign {
            b'a' | b'A' => Told::Decided { admitted: true, kept: kept.to_vec(), logs: Vec::new() },
            b'r' | b'R' => Told::Decided { admitted: false, kept: kept.to_vec(), logs: Vec::new() },
            b'f' => Told::Foreign,
            _ => return None,
        });
        reply = rest;
    }
    reply.is_empty().then_some(told)
}

fn kind(limit: &Limit) -> Option<char> {
    match limit.algorithm() {
        Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => Some('b'),
        Algorithm::FixedWindow => Some('f'),
        Algorithm::SlidingWindowCounter => Some('c'),
        Algorithm::SlidingWindowLog => None,
    }
}

/// A limit's figures, in the order in which its part of a script reads them.
fn of_limit(limit: &Limit) -> Vec<f64> {
    let capacity = double(limit.capacity().get());
    if let Some(rate) = limit.rate() {
        let (amount, period) = rate.lowest_terms();
        return vec![capacity, double(amount / period), double(amount % period), double(period)];
    }
    let window = limit.window().map_or(0.0, |window| double(window.as_micros()));
    vec![capacity, window, most_counted(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::{Period, Rate};

    #[test]
    fn plans_of_the_same_kinds_share_a_script() {
        let bucket = |capacity: u32| Limit::token_bucket(capacity, Rate::per_second(1));
        let (one, other) = (Swift::of(&Plan::single(bucket(1))), Swift::of(&Plan::single(bucket(2))));
        assert!(std::ptr::eq(one.unwrap().one, other.unwrap().one));
        let log = Limit::sliding_window_log(5, Period::DAY).unwrap();
        assert!(Swift::of(&Plan::new([bucket(1), log]).unwrap()).is_none());
    }
}
