//! The one place that asks the limiter about descriptors.
//!
//! First comes what happens in any case: hits given back and forced charges. Then, if the request is not over by that
//! already, all others whose word counts are charged as one; at last those whose refusal does not count by itself.

use std::collections::HashSet;

use futures_util::future::join_all;
use tidegate::store::StoreError;
use tidegate::{AdHocStore, Asked, Cost, Decision, Timestamp, Units};

use super::part::{Decided, Part, Under, is_over};
use crate::app::App;
use crate::store::AnyStore;

/// Decides all parts that are under a limit.
///
/// # Errors
/// The store could not answer; some may have been charged.
pub(super) async fn charge(app: &App, parts: &mut [Part<'_>], at: Timestamp) -> Result<(), StoreError> {
    let overrides = app.envoy_overrides();
    for part in parts.iter_mut() {
        part.decided = brought(part, overrides, at);
    }
    let charged = charge_policies(app, parts, at).await;
    if charged.is_err() || is_over(parts) {
        take_back(parts, overrides, at);
    }
    charged
}

async fn charge_policies(app: &App, parts: &mut [Part<'_>], at: Timestamp) -> Result<(), StoreError> {
    let outright = indices(parts, |part| part.is_settled_alone());
    let at_once = are_of_different_keys(parts, &outright);
    let decided = each(&outright, at_once, |index| settle(app, &parts[*index], at)).await?;
    for (index, decided) in outright.into_iter().zip(decided) {
        parts[index].decided = decided;
    }
    let group = indices(parts, |part| part.waits() && !part.is_aside());
    let aside = indices(parts, |part| part.waits() && part.is_aside());
    // Before anything is charged it has to be known whether all of those that count together refuse.
    let foreseen = decide_group(app, parts, &aside, false, at).await?;
    keep(parts, &aside, foreseen);
    let decided = decide_group(app, parts, &group, !is_over(parts), at).await?;
    keep(parts, &group, decided);
    if !is_over(parts) {
        let at_once = are_of_different_keys(parts, &aside);
        let alone = |index| decide_group(app, parts, std::slice::from_ref(index), true, at);
        let decided = each(&aside, at_once, alone).await?;
        keep(parts, &aside, decided.into_iter().flatten().collect());
    }
    Ok(())
}

fn indices(parts: &[Part<'_>], mine: impl Fn(&Part<'_>) -> bool) -> Vec<usize> {
    (0..parts.len()).filter(|index| mine(&parts[*index])).collect()
}

/// Whether it is the same in which order these are decided.
fn are_of_different_keys(parts: &[Part<'_>], indices: &[usize]) -> bool {
    let mut keys = HashSet::with_capacity(indices.len());
    indices.iter().all(|index| keys.insert(&parts[*index].key))
}

/// Does something about each, and if it may be, about all at once: it may be a way to a store and back.
async fn each<'i, T, F: Future<Output = Result<T, StoreError>>>(
    indices: &'i [usize],
    at_once: bool,
    ask: impl Fn(&'i usize) -> F,
) -> Result<Vec<T>, StoreError> {
    if at_once && indices.len() > 1 {
        // All are waited for, though one fails: what is on its way would be charged or not, by chance.
        return join_all(indices.iter().map(ask)).await.into_iter().collect();
    }
    let mut all = Vec::with_capacity(indices.len());
    for index in indices {
        all.push(ask(index).await?);
    }
    Ok(all)
}

fn keep(parts: &mut [Part<'_>], members: &[usize], decisions: Vec<Decision>) {
    for (member, decision) in members.iter().zip(decisions) {
        parts[*member].decided = Some(Decided::plainly(decision));
    }
}

/// What does not depend on the others: hits that are given back, forced charges, and what can never fit.
async fn settle(app: &App, part: &Part<'_>, at: Timestamp) -> Result<Option<Decided>, StoreError> {
    let Under::Policy(handle, _) = &part.under else { return Ok(None) };
    if part.gives_back {
        let decision = handle.credit_at(&part.key, part.units, at).await?;
        return Ok(Some(Decided { decision, fits: true }));
    }
    if !part.is_forced() {
        let asked = Asked { policy: handle, key: &part.key, cost: cost(part.units) };
        let foreseen = app.limiter().foresee_all_at(&[asked], at).await?;
        return Ok(foreseen.into_iter().next().map(|decision| Decided { decision, fits: false }));
    }
    let done = handle.penalize_at(&part.key, part.units, at).await?;
    let fits = !part.exceeds && done.after.is_allowed() && done.cuts().iter().all(|cut| *cut == 0);
    Ok(Some(Decided { decision: done.after, fits }))
}

/// Under figures that came with the request. They are kept apart from the policies' state, so they cannot be in one
/// group with it: what they were charged is given back if the others refuse.
fn brought(part: &Part<'_>, store: &AdHocStore, at: Timestamp) -> Option<Decided> {
    let Under::Brought(limit) = &part.under else { return None };
    if part.gives_back {
        let decision = store.credit(at, &part.key, limit, part.units);
        return Some(Decided { decision, fits: true });
    }
    Some(Decided::plainly(store.check(at, &part.key, limit, cost(part.units))))
}

fn take_back(parts: &mut [Part<'_>], store: &AdHocStore, at: Timestamp) {
    for part in parts.iter_mut().filter(|part| !part.gives_back) {
        if let (Under::Brought(limit), Some(decided @ Decided { fits: true, .. })) =
            (&part.under, &mut part.decided)
        {
            decided.decision = store.credit(at, &part.key, limit, part.units);
        }
    }
}

/// Decides these members as one: all are charged, or none; or just told how they stand.
async fn decide_group(
    app: &App,
    parts: &[Part<'_>],
    members: &[usize],
    charge: bool,
    at: Timestamp,
) -> Result<Vec<Decision>, StoreError> {
    let asked: Vec<Asked<'_, AnyStore>> = members
        .iter()
        .filter_map(|member| match &parts[*member] {
            Part { under: Under::Policy(policy, _), key, units, .. } => {
                Some(Asked { policy, key, cost: cost(*units) })
            }
            _ => None,
        })
        .collect();
    match (charge, &asked[..]) {
        (_, []) => Ok(Vec::new()),
        (true, [one]) => Ok(vec![one.policy.check_at(one.key, one.cost, at).await?]),
        (true, _) => app.limiter().check_all_at(&asked, at).await,
        (false, _) => app.limiter().foresee_all_at(&asked, at).await,
    }
}

/// A cost goes as far as units do.
fn cost(units: Units) -> Cost {
    Cost::new(units.get()).expect("units and costs have one range")
}
