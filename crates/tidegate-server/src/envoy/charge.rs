//! The one place that asks the limiter about descriptors.
//!
//! First comes what happens in any case: hits given back and forced charges. Then, if the request is not over by that
//! already, all others whose word counts are charged as one, whatever figures they are under; at last those whose
//! refusal does not count by itself.

use std::collections::HashSet;

use futures_util::future::join_all;
use tidegate::store::{AdHoc, Store, StoreError};
use tidegate::{AdHocCheck, AdHocSpace, Asked, Cost, Decision, Timestamp, Units};

use super::part::{Decided, Part, Under, is_over};
use crate::app::App;
use crate::store::{AnyStore, SoonEach};

/// Where keys are kept whose limits come with the request.
const OVERRIDES: AdHocSpace = AdHocSpace::new("override");

/// Decides all parts that are under a limit.
///
/// # Errors
/// The store could not answer; some may have been charged.
pub(super) async fn charge(app: &App, parts: &mut [Part<'_>], at: Timestamp) -> Result<(), StoreError> {
    let outright = indices(parts, |part| part.is_settled_alone());
    let at_once = are_of_different_keys(parts, &outright);
    let settled = async |index: &usize| {
        let part = &parts[*index];
        Ok(counts(app, part, settle(app, part, at).await)?.flatten())
    };
    let decided = each(&outright, at_once, settled).await?;
    for (index, decided) in outright.into_iter().zip(decided) {
        parts[index].decided = decided;
    }
    let group = indices(parts, |part| part.waits() && !part.is_aside());
    let aside = indices(parts, |part| part.waits() && part.is_aside());
    // Before anything is charged it has to be known whether all of those that count together refuse.
    foresee(app, parts, &indices(parts, |part| part.waits() && part.is_quota() && !part.is_shadow()), at)
        .await?;
    foresee(app, parts, &indices(parts, |part| part.waits() && part.is_shadow()), at).await?;
    let decided = decide_group(app, parts, &group, !is_over(parts), at).await?;
    keep(parts, &group, decided);
    if !is_over(parts) {
        let at_once = are_of_different_keys(parts, &aside);
        let alone = async |index: &usize| {
            let decided = decide_group(app, parts, std::slice::from_ref(index), true, at).await;
            counts(app, &parts[*index], decided)
        };
        let decided = each(&aside, at_once, alone).await?;
        for (index, decided) in aside.iter().zip(decided) {
            keep(parts, std::slice::from_ref(index), decided.unwrap_or_default());
        }
    }
    Ok(())
}

/// Looks how these stand, which are all shadows or none.
async fn foresee(
    app: &App,
    parts: &mut [Part<'_>],
    members: &[usize],
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(first) = members.first() else { return Ok(()) };
    let foreseen = decide_group(app, parts, members, false, at).await;
    let foreseen = counts(app, &parts[*first], foreseen)?;
    keep(parts, members, foreseen.unwrap_or_default());
    Ok(())
}

/// An answer, or `None` if there is none and nobody is to hear of that: whatever becomes of a shadow, the request does not
/// depend on it.
fn counts<T>(app: &App, part: &Part<'_>, answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match answer {
        Err(error) if part.is_shadow() => {
            app.store_failed(&error);
            Ok(None)
        }
        answer => answer.map(Some),
    }
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
    let handle = match &part.under {
        Under::Nothing(_) => return Ok(None),
        Under::Policy(handle, _) => handle,
        Under::Brought(limit) => {
            let of = AdHocCheck { space: OVERRIDES, key: &part.key, limit, cost: Cost::PEEK };
            let decision = app.limiter().store().credit_ad_hoc(at, of, part.units).await?;
            return Ok(Some(Decided { decision, fits: true }));
        }
    };
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

/// Decides these members as one: all are charged, or none; or just told how they stand.
async fn decide_group(
    app: &App,
    parts: &[Part<'_>],
    members: &[usize],
    charge: bool,
    at: Timestamp,
) -> Result<Vec<Decision>, StoreError> {
    let (mut asked, mut brought) = (Vec::<Asked<'_, AnyStore>>::new(), Vec::<AdHocCheck<'_>>::new());
    for Part { under, key, units, .. } in members.iter().map(|member| &parts[*member]) {
        let cost = cost(*units);
        match under {
            Under::Nothing(_) => {}
            Under::Policy(policy, _) => asked.push(Asked { policy, key, cost }),
            Under::Brought(limit) => brought.push(AdHocCheck { space: OVERRIDES, key, limit, cost }),
        }
    }
    let limiter = app.limiter();
    let decided = match (charge, &asked[..], &brought[..]) {
        (_, [], []) => return Ok(Vec::new()),
        (true, [one], []) => return Ok(vec![one.policy.check_at(one.key, one.cost, at).await?]),
        (true, [], [_]) => return alone(limiter.store().check_ad_hoc(at, &brought)).await,
        (true, _, []) => return limiter.check_all_at(&asked, at).await,
        (false, _, []) => return limiter.foresee_all_at(&asked, at).await,
        (true, ..) => limiter.check_all_with_at(&asked, &brought, at).await?,
        (false, ..) => limiter.foresee_all_with_at(&asked, &brought, at).await?,
    };
    // In the order of the members again.
    let (mut policies, mut brought) = (decided.policies.into_iter(), decided.ad_hoc.into_iter());
    let in_order = members.iter().filter_map(|member| match &parts[*member].under {
        Under::Nothing(_) => None,
        Under::Policy(..) => policies.next(),
        Under::Brought(_) => brought.next(),
    });
    Ok(in_order.collect())
}

/// The answer to a single check.
async fn alone(answers: SoonEach) -> Result<Vec<Decision>, StoreError> {
    AnyStore::each_settled(answers).await.into_iter().collect()
}

/// A cost goes as far as units do.
fn cost(units: Units) -> Cost {
    Cost::new(units.get()).expect("units and costs have one range")
}
