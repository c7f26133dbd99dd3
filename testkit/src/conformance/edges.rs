//! What is promised, at its edges: waits that are honest, and bounds that hold whatever is asked.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::duel::Duel;
use super::resolve::{KEYS, Standing};
use super::runner::for_all;
use super::subject::{StepsBack, Subject};
use crate::cases::LimitSpec;
use crate::oracle::{Kind, Outcome};
use crate::strategies::{Act, Cost, LATEST_US, TraceStep, policy, start_us, trace_of_checks};

const LONGEST_TRACE: usize = 30;

/// Every wait is honest: denied one unit of the subject's resolution before its end, admitted at its end.
///
/// # Panics
/// With the smallest trace found after which a wait is not, or if no trace ever had to wait.
pub fn edges(subject: &mut dyn Subject, cases: u32) {
    let subject = RefCell::new(subject);
    let met = Cell::new(0_u32);
    for_all(cases, &(policy(), start_us(), trace_of_checks(LONGEST_TRACE)), |(limits, start, steps)| {
        let mut subject = subject.borrow_mut();
        let mut duel = Duel::start(&mut **subject, &limits).map_err(|reason| format!("refused: {reason}"))?;
        let mut standing = Standing::at(start);
        for step in &steps {
            let key = KEYS[usize::from(step.key)];
            let oldest = duel.oldest_us(key);
            let at = standing.advance(step.gap, step.key, &limits, oldest);
            let cost = asked(step, &standing, &limits);
            let decided_at = duel.oracle(key).decided_at(at);
            let answer = duel.check(at, key, cost)?.answer;
            if let Some(wait) = answer.headline.retry_after_us.filter(|wait| *wait > 0) {
                standing.now_us = waits_honestly(&mut duel, (decided_at, wait), key, cost, &met)?;
            }
            standing.tell(step.key, decided_at, answer);
        }
        Ok(())
    });
    assert!(met.get() > 0, "no trace ever had to wait: this proved nothing");
}

/// Asks again just before the end of a wait and at it. Returns the stamp it ended with.
fn waits_honestly(
    duel: &mut Duel<'_>,
    (decided_at, wait): (u64, u128),
    key: &[u8],
    cost: u64,
    met: &Cell<u32>,
) -> Result<u64, String> {
    let unit = duel.offers().resolution.unit_us();
    let Ok(due) = u64::try_from(u128::from(decided_at) + wait) else { return Ok(decided_at) };
    if due > LATEST_US {
        return Ok(decided_at);
    }
    if wait > unit {
        let early = due - u64::try_from(unit).unwrap_or(0);
        let answer = duel.check(early, key, cost)?.answer;
        if answer.outcome == Outcome::Allowed {
            return Err(format!(
                "a cost of {cost} told to wait from {decided_at} to {due} passed at {early}"
            ));
        }
    }
    let answer = duel.check(due, key, cost)?.answer;
    met.set(met.get() + 1);
    match answer.outcome {
        Outcome::Allowed => Ok(due),
        _ => Err(format!("a cost of {cost} told to wait from {decided_at} to {due} was still refused then")),
    }
}

/// No more passes than was promised, in any span: by the subject's answers alone, whatever the oracle says.
///
/// # Panics
/// With the smallest trace found that got more through, or if nothing ever passed.
pub fn bound(subject: &mut dyn Subject, cases: u32) {
    let subject = RefCell::new(subject);
    let passed = Cell::new(0_usize);
    for_all(cases, &(policy(), start_us(), trace_of_checks(LONGEST_TRACE)), |(limits, start, steps)| {
        let mut subject = subject.borrow_mut();
        let admitted = admitted(&mut **subject, &limits, start, &steps)?;
        passed.set(passed.get() + admitted.values().map(Vec::len).sum::<usize>());
        admitted.values().try_for_each(|passed| limits.iter().try_for_each(|limit| keeps(limit, passed)))
    });
    assert!(passed.get() > 0, "nothing ever passed: this proved nothing");
}

/// Cost admitted at an instant.
type Admitted = (u64, u64);

fn admitted(
    subject: &mut dyn Subject,
    limits: &[LimitSpec],
    start: u64,
    steps: &[TraceStep],
) -> Result<BTreeMap<u8, Vec<Admitted>>, String> {
    subject.install(limits)?;
    let goes_back = subject.offers().steps_back;
    let mut standing = Standing::at(start);
    let mut newest = 0;
    let mut admitted: BTreeMap<u8, Vec<Admitted>> = BTreeMap::new();
    for step in steps {
        let at = standing.advance(step.gap, step.key, limits, StepsBack::oldest_after(goes_back, newest));
        newest = newest.max(at);
        let cost = asked(step, &standing, limits);
        let answer = subject.check(at, KEYS[usize::from(step.key)], cost);
        let passed = admitted.entry(step.key).or_default();
        let decided_at = passed.last().map_or(at, |(last, _)| at.max(*last));
        if answer.outcome == Outcome::Allowed && cost > 0 {
            passed.push((decided_at, cost));
        }
        standing.tell(step.key, decided_at, answer);
    }
    Ok(admitted)
}

fn asked(step: &TraceStep, standing: &Standing, limits: &[LimitSpec]) -> u64 {
    match step.act {
        Act::Check(cost) | Act::CheckUpTo(cost) => standing.units(cost, step.key, limits),
        _ => standing.units(Cost::Units(0), step.key, limits),
    }
}

fn keeps(limit: &LimitSpec, admitted: &[Admitted]) -> Result<(), String> {
    let capacity = u128::from(limit.capacity);
    let within = |from: u128, to: u64| -> u128 {
        let inside = admitted.iter().filter(|(at, _)| u128::from(*at) >= from && *at <= to);
        inside.map(|(_, cost)| u128::from(*cost)).sum()
    };
    let holds = |(end, _): &Admitted| match limit.kind {
        Kind::TokenBucket | Kind::Gcra | Kind::LeakyBucket => admitted.iter().all(|(from, _)| {
            let span = u128::from(end.saturating_sub(*from));
            let above = within((*from).into(), *end).saturating_sub(capacity);
            above * u128::from(limit.period_us) <= span * u128::from(limit.amount)
        }),
        Kind::FixedWindow => within((end - end % limit.period_us).into(), *end) <= capacity,
        Kind::SlidingWindowLog => within(after(*end, limit.period_us), *end) <= capacity,
        Kind::SlidingWindowCounter => within(after(*end, limit.period_us), *end) < (2 * capacity).max(1),
    };
    match admitted.iter().find(|last| !holds(last)) {
        None => Ok(()),
        Some((end, _)) => Err(format!("more than {limit:?} promises passed up to {end}: {admitted:?}")),
    }
}

/// The first instant of the span of length `window` that ends at `end`, which it holds.
fn after(end: u64, window: u64) -> u128 {
    (u128::from(end) + 1).saturating_sub(window.into())
}
