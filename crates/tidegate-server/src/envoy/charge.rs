//! The one place that asks the limiter about descriptors.
//!
//! First comes what happens in any case: hits given back and forced charges. Then, if the request is not over by that
//! already, all others whose word counts are charged as one; at last those whose refusal does not count by itself.

use tidegate::store::StoreError;
use tidegate::{AdHocStore, Asked, Cost, Decision, Timestamp, Units};

use super::part::{Decided, Part, Under, is_over};
use crate::app::App;
use crate::store::{AnyStore, Handle};

/// Decides all parts that are under a limit.
///
/// # Errors
/// The store could not answer; some may have been charged.
pub(super) async fn charge(app: &App, parts: &mut [Part<'_>], at: Timestamp) -> Result<(), StoreError> {
    let overrides = app.envoy_overrides();
    for part in parts.iter_mut() {
        part.decided = match &part.under {
            Under::Nothing(_) => None,
            Under::Policy(handle, _) => outright(app, part, handle, at).await?,
            Under::Brought(_) => brought(part, overrides, at),
        };
    }
    let waiting = |parts: &[Part<'_>], aside: bool| -> Vec<usize> {
        let mine = |part: &Part<'_>| part.waits() && part.is_aside() == aside;
        (0..parts.len()).filter(|index| mine(&parts[*index])).collect()
    };
    let (group, aside) = (waiting(parts, false), waiting(parts, true));
    // Before anything is charged it has to be known whether all of those that count together refuse.
    decide_group(app, parts, &aside, false, at).await?;
    let over = is_over(parts);
    decide_group(app, parts, &group, !over, at).await?;
    if is_over(parts) {
        take_back(parts, overrides, at);
    } else {
        for one in aside {
            decide_group(app, parts, &[one], true, at).await?;
        }
    }
    Ok(())
}

/// What does not depend on the others: hits that are given back, forced charges, and what can never fit.
async fn outright(
    app: &App,
    part: &Part<'_>,
    handle: &Handle,
    at: Timestamp,
) -> Result<Option<Decided>, StoreError> {
    if part.gives_back {
        let decision = handle.credit_at(&part.key, part.units, at).await?;
        return Ok(Some(Decided { decision, fits: true }));
    }
    if !part.is_forced() {
        if !part.exceeds {
            return Ok(None);
        }
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
    parts: &mut [Part<'_>],
    members: &[usize],
    charge: bool,
    at: Timestamp,
) -> Result<(), StoreError> {
    let asked: Vec<Asked<'_, AnyStore>> = members
        .iter()
        .filter_map(|member| match &parts[*member] {
            Part { under: Under::Policy(policy, _), key, units, .. } => {
                Some(Asked { policy, key, cost: cost(*units) })
            }
            _ => None,
        })
        .collect();
    let decisions: Vec<Decision> = match (charge, &asked[..]) {
        (_, []) => return Ok(()),
        (true, [one]) => vec![one.policy.check_at(one.key, one.cost, at).await?],
        (true, _) => app.limiter().check_all_at(&asked, at).await?,
        (false, _) => app.limiter().foresee_all_at(&asked, at).await?,
    };
    for (member, decision) in members.iter().zip(decisions) {
        parts[*member].decided = Some(Decided::plainly(decision));
    }
    Ok(())
}

/// A cost goes as far as units do.
fn cost(units: Units) -> Cost {
    Cost::new(units.get()).expect("units and costs have one range")
}
