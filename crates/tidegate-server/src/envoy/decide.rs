//! From the descriptors of a request to one answer.

use std::sync::Arc;

use tidegate::{AdHocLimit, Decision, Outcome, Policy, Rate, Timestamp, Units};

use super::answer::{Answer, Status, refusal, told};
use super::charge::charge;
use super::in_force::InForce;
use super::part::{Decided, Part, Under, is_over};
use super::request::{Descriptor, Refused, Request};
use super::tree::{Effect, Rule, key};
use crate::app::App;

/// Decides a request: all its descriptors together, or none is charged; but for those that are charged whether
/// they fit or not.
///
/// # Errors
/// A question that has no answer.
pub(crate) async fn decide(app: &App, request: &Request<'_>) -> Result<Answer, Refused> {
    if request.domain.is_empty() {
        return Err(Refused::NoDomain);
    }
    if request.descriptors.is_empty() {
        return Err(Refused::NoDescriptors);
    }
    let in_force = app.envoy();
    if in_force.rules.is_empty() {
        return Err(Refused::NoRules);
    }
    let at = app.now();
    let parts = request.descriptors.iter().map(|descriptor| part(&in_force, request, descriptor));
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
    drop_replaced(&mut parts);
    share_figures(&mut parts);
    charge(app, &mut parts, at).await.map_err(|error| {
        app.store_failed(&error);
        Refused::Unanswered(error.kind)
    })?;
    count(app, &parts, app.now().micros_since(at));
    if parts.iter().any(is_without_room) {
        return Err(Refused::NoRoom);
    }
    Ok(answer(app, &parts, at))
}

fn part<'r>(
    in_force: &'r InForce,
    request: &Request<'_>,
    descriptor: &Descriptor<'_>,
) -> Result<Part<'r>, Refused> {
    let hits = descriptor.hits.unwrap_or_else(|| u64::from(request.hits_addend.max(1)));
    // Not an error: proxies let pass what ends in one, and clients may choose the hits.
    let (units, exceeds) = Units::new(hits).map_or((Units::MAX, true), |units| (units, false));
    let gives_back = descriptor.gives_back && hits > 0;
    let of = |rule, under, key| Part { rule, under, key, units, exceeds, gives_back, decided: None };
    if let Some(brought) = descriptor.limit {
        // All at once, and as much again in each unit: figures of its own, whatever the rules say.
        let rate = Rate::new(brought.requests, brought.unit.period());
        let key = key(request.domain, &descriptor.entries, &[]);
        return Ok(of(None, Under::Brought(AdHocLimit::gcra(rate, brought.requests)), key));
    }
    let Some(found) = in_force.rules.find(request.domain, &descriptor.entries) else {
        return Ok(of(None, Under::Nothing(Status::UNMET), Vec::new()));
    };
    let under = match &found.rule.effect {
        Effect::Unlimited => Under::Nothing(Status::UNLIMITED),
        Effect::Limited { policy, .. } => {
            let handle =
                in_force.handle(policy).ok_or_else(|| Refused::NoPolicy { policy: policy.clone() })?;
            let before = handle.policy();
            Under::Policy(handle, before)
        }
    };
    Ok(of(Some(found.rule), under, found.key))
}

/// Rules that another one met replaces do not count.
fn drop_replaced(parts: &mut [Part<'_>]) {
    let replaces = |rule: &Rule, name: &String| rule.replaces.contains(name);
    let replaced: Vec<bool> = parts
        .iter()
        .map(|part| {
            let name = part.rule.and_then(|rule| rule.name.as_ref());
            name.is_some_and(|name| parts.iter().filter_map(|it| it.rule).any(|it| replaces(it, name)))
        })
        .collect();
    for (part, _) in parts.iter_mut().zip(replaced).filter(|(_, replaced)| *replaced) {
        (part.rule, part.under) = (None, Under::Nothing(Status::UNMET));
    }
}

/// One key has one limit in a request: of descriptors that are the same but for the limits they bring, that of the
/// first counts.
fn share_figures(parts: &mut [Part<'_>]) {
    for index in 1..parts.len() {
        let (before, rest) = parts.split_at_mut(index);
        let Part { under: Under::Brought(limit), key, .. } = &mut rest[0] else { continue };
        let first = before.iter().find_map(|part| match &part.under {
            Under::Brought(first) if part.key == *key => Some(first),
            _ => None,
        });
        if let Some(first) = first {
            *limit = first.clone();
        }
    }
}

/// Whether it could not be decided because the store holds as many keys as it may: no limit was exceeded, so the
/// answer is none.
fn is_without_room(part: &Part<'_>) -> bool {
    let outcome = part.decided.as_ref().map(|decided| decided.decision.outcome());
    outcome == Some(Outcome::Overloaded) && !part.is_shadow()
}

fn answer(app: &App, parts: &[Part<'_>], at: Timestamp) -> Answer {
    let over = is_over(parts);
    let versions: Vec<Option<Arc<Policy>>> = parts.iter().map(Part::version).collect();
    let statuses =
        parts.iter().zip(&versions).map(|(part, version)| part.status(version.as_deref())).collect();
    let binding = parts.iter().zip(&versions).filter_map(|(part, version)| {
        let decided = part.decided.as_ref().filter(|_| !part.is_shadow() && (!over || part.is_over()))?;
        // Of what was let pass uncounted nothing is known.
        let decided = Some(decided).filter(|decided| decided.decision.is_metered())?;
        Some((part, version.as_ref()?, &decided.decision))
    });
    let binding = binding.min_by_key(|(_, _, decision)| tightness(over, decision));
    let degraded = parts.iter().filter_map(|part| part.decided.as_ref()).any(|it| it.decision.is_degraded());
    let mut answer =
        Answer { over, statuses, headers: http::HeaderMap::new(), body: String::new(), degraded };
    if let Some((part, policy, decision)) = binding {
        answer.headers = told(app, policy, &part.key, decision, at);
        if over {
            answer.body = refusal(policy, decision, &mut answer.headers);
        }
    }
    answer
}

/// Of refusals the longest wait binds, never being longest; of admissions the one with least left.
fn tightness(over: bool, decision: &Decision) -> (u128, u64) {
    let never = u128::MAX;
    match over {
        true => (never - decision.retry_after().map_or(never, |wait| wait.as_micros()), 0),
        false => (0, decision.remaining()),
    }
}

/// Counts what was decided; neither looks nor hits given back.
fn count(app: &App, parts: &[Part<'_>], micros: u64) {
    for part in parts.iter().filter(|part| !part.gives_back && part.units != Units::ZERO) {
        let Some(Decided { decision, fits }) = &part.decided else { continue };
        let outcome = match (fits, decision.outcome()) {
            // Of a forced charge the decision tells how the key then stands.
            (true, _) => Outcome::Allowed,
            (false, Outcome::Allowed) => Outcome::Denied,
            (false, outcome) => outcome,
        };
        match &part.under {
            Under::Nothing(_) => {}
            Under::Policy(handle, _) => app.metrics().decided(handle.policy().name(), outcome, micros),
            Under::Brought(_) => app.metrics().throttled(outcome),
        }
    }
}
