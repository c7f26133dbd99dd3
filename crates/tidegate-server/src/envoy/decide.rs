//! From the descriptors of a request to one answer.

use std::sync::Arc;

use tidegate::{AdHocLimit, AdHocStore, Asked, Cost, Decision, Policy, PolicyHandle, Rate, Timestamp, Units};
use tidegate_fields::decided_under;

use super::answer::{Answer, Status, refusal, told};
use super::request::{Descriptor, Refused, Request};
use super::tree::{Charge, Effect, EnvoyRules, Rule, key};
use crate::app::App;

/// One descriptor on its way to its status.
struct Part<'r> {
    rule: Option<&'r Rule>,
    under: Under,
    key: Vec<u8>,
    units: Units,
    gives_back: bool,
    decided: Option<Decided>,
}

/// What a descriptor is counted under.
enum Under {
    /// No limit.
    Nothing(Status),
    /// A policy, and the version of it in force when the request came.
    Policy(PolicyHandle, Arc<Policy>),
    /// The figures that came with it.
    Brought(AdHocLimit),
}

struct Decided {
    decision: Decision,
    /// Whether what was asked was there; of a forced charge not the same as how the key then stands.
    fits: bool,
}

/// Decides a request: all its descriptors together, or none is charged; but for those that are charged whether
/// they fit or not.
///
/// # Errors
/// A question that has no answer.
pub(crate) fn decide(app: &App, rules: &EnvoyRules, request: &Request<'_>) -> Result<Answer, Refused> {
    if request.domain.is_empty() {
        return Err(Refused::NoDomain);
    }
    if request.descriptors.is_empty() {
        return Err(Refused::NoDescriptors);
    }
    if rules.is_empty() {
        return Err(Refused::NoRules);
    }
    let at = app.now();
    let parts = request.descriptors.iter().enumerate();
    let mut parts = parts
        .map(|(index, descriptor)| part(app, rules, request, index, descriptor))
        .collect::<Result<Vec<_>, _>>()?;
    drop_replaced(&mut parts);
    charge_all(app, &mut parts, at);
    let answer = answer(app, &parts, at);
    count(app, &parts, app.now().micros_since(at));
    Ok(answer)
}

fn part<'r>(
    app: &App,
    rules: &'r EnvoyRules,
    request: &Request<'_>,
    index: usize,
    descriptor: &Descriptor<'_>,
) -> Result<Part<'r>, Refused> {
    let hits = descriptor.hits.unwrap_or_else(|| u64::from(request.hits_addend.max(1)));
    let units = Units::new(hits).map_err(|_| Refused::Hits { index, hits })?;
    let gives_back = descriptor.gives_back && hits > 0;
    let of = |rule, under, key| Part { rule, under, key, units, gives_back, decided: None };
    if let Some(brought) = descriptor.limit {
        // All at once, and as much again in each unit: figures of its own, whatever the rules say.
        let rate = Rate::new(brought.requests, brought.unit.period());
        let key = key(request.domain, &descriptor.entries, &[]);
        return Ok(of(None, Under::Brought(AdHocLimit::gcra(rate, brought.requests)), key));
    }
    let Some(found) = rules.find(request.domain, &descriptor.entries) else {
        return Ok(of(None, Under::Nothing(Status::UNMET), Vec::new()));
    };
    let under = match &found.rule.effect {
        Effect::Unlimited => Under::Nothing(Status::UNLIMITED),
        Effect::Limited { policy, .. } => {
            let handle = app.limiter().policy(policy);
            let handle = handle.map_err(|_| Refused::Changing { policy: policy.clone() })?;
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

/// First what is charged in any case; then, if that is not over already, all others that count, as one; last those
/// whose refusal does not count by itself.
fn charge_all(app: &App, parts: &mut [Part<'_>], at: Timestamp) {
    for part in parts.iter_mut() {
        part.decided = part.outright(at);
    }
    let overrides = app.envoy_overrides();
    for part in parts.iter_mut().filter(|part| part.decided.is_none()) {
        part.decided = part.brought(overrides, at);
    }
    let group: Vec<usize> =
        (0..parts.len()).filter(|at| parts[*at].waits() && !parts[*at].is_aside()).collect();
    let aside: Vec<usize> =
        (0..parts.len()).filter(|at| parts[*at].waits() && parts[*at].is_aside()).collect();
    decide_group(app, parts, &aside, false, at);
    let over = is_over(parts);
    decide_group(app, parts, &group, !over, at);
    if is_over(parts) {
        // Charged before it was known that others refuse.
        parts.iter().for_each(|part| part.take_back(overrides, at));
    } else {
        for one in aside {
            decide_group(app, parts, &[one], true, at);
        }
    }
}

fn decide_group(app: &App, parts: &mut [Part<'_>], members: &[usize], charge: bool, at: Timestamp) {
    let asked: Vec<Asked<'_>> = members
        .iter()
        .filter_map(|member| match &parts[*member] {
            Part { under: Under::Policy(policy, _), key, units, .. } => {
                Some(Asked { policy, key, cost: cost(*units) })
            }
            _ => None,
        })
        .collect();
    let decisions = match (charge, &asked[..]) {
        (_, []) => return,
        (true, [one]) => vec![one.policy.check_at(one.key, one.cost, at)],
        (true, _) => app.limiter().check_all_at(&asked, at),
        (false, _) => app.limiter().foresee_all_at(&asked, at),
    };
    for (member, decision) in members.iter().zip(decisions) {
        let fits = decision.is_allowed();
        parts[*member].decided = Some(Decided { decision, fits });
    }
}

impl Part<'_> {
    /// What does not depend on the others: hits that are given back, and forced charges.
    fn outright(&self, at: Timestamp) -> Option<Decided> {
        let Under::Policy(handle, _) = &self.under else { return None };
        if self.gives_back {
            return Some(Decided { decision: handle.credit_at(&self.key, self.units, at), fits: true });
        }
        if self.charge() == Charge::Fits || self.units == Units::ZERO {
            return None;
        }
        let done = handle.penalize_at(&self.key, self.units, at);
        let fits = done.after.is_allowed() && done.cuts().iter().all(|cut| *cut == 0);
        Some(Decided { decision: done.after, fits })
    }

    /// Under figures that came with the request.
    fn brought(&self, store: &AdHocStore, at: Timestamp) -> Option<Decided> {
        let Under::Brought(limit) = &self.under else { return None };
        if self.gives_back {
            return Some(Decided { decision: store.credit(at, &self.key, limit, self.units), fits: true });
        }
        let decision = store.check(at, &self.key, limit, cost(self.units));
        Some(Decided { fits: decision.is_allowed(), decision })
    }

    /// Gives back what a request that is refused was charged under figures of its own.
    fn take_back(&self, store: &AdHocStore, at: Timestamp) {
        if let (Under::Brought(limit), Some(Decided { fits: true, .. }), false) =
            (&self.under, &self.decided, self.gives_back)
        {
            store.credit(at, &self.key, limit, self.units);
        }
    }

    fn charge(&self) -> Charge {
        match self.rule.map(|rule| &rule.effect) {
            Some(Effect::Limited { charge, .. }) => *charge,
            _ => Charge::Fits,
        }
    }

    fn waits(&self) -> bool {
        self.decided.is_none() && matches!(self.under, Under::Policy(..))
    }

    fn is_shadow(&self) -> bool {
        self.rule.is_some_and(|rule| rule.shadow)
    }

    fn is_quota(&self) -> bool {
        self.rule.is_some_and(|rule| rule.quota)
    }

    /// Whether its own refusal does not refuse the request.
    fn is_aside(&self) -> bool {
        self.is_shadow() || self.is_quota()
    }

    fn is_over(&self) -> bool {
        !self.is_shadow() && self.decided.as_ref().is_some_and(|decided| !decided.fits)
    }

    fn status(&self, version: Option<&Policy>) -> Status {
        let (decided, version) = match (&self.decided, version, &self.under) {
            (Some(decided), Some(version), _) => (decided, version),
            (_, _, Under::Nothing(status)) => return status.clone(),
            _ => return Status::UNMET,
        };
        let status = Status::of(version, &self.key, &decided.decision, self.is_over());
        // So the reference has it: a shadow that would refuse has nothing left.
        let spent = self.is_shadow() && !decided.fits;
        Status { remaining: if spent { 0 } else { status.remaining }, ..status }
    }

    /// The policy in the version that decided.
    fn version(&self) -> Option<Arc<Policy>> {
        match (&self.under, &self.decided) {
            (Under::Policy(handle, before), Some(Decided { decision, .. })) => {
                Some(decided_under(Arc::clone(before), handle.policy(), &self.key, decision))
            }
            (Under::Brought(limit), _) => Policy::single("override", *limit.limit()).ok().map(Arc::new),
            _ => None,
        }
    }
}

/// Whether one refuses whose word counts alone, or all those do whose word counts together.
fn is_over(parts: &[Part<'_>]) -> bool {
    let mut quotas = parts.iter().filter(|part| part.is_quota() && part.decided.is_some()).peekable();
    let exhausted = quotas.peek().is_some() && quotas.all(Part::is_over);
    exhausted || parts.iter().any(|part| !part.is_quota() && part.is_over())
}

fn answer(app: &App, parts: &[Part<'_>], at: Timestamp) -> Answer {
    let over = is_over(parts);
    let versions: Vec<Option<Arc<Policy>>> = parts.iter().map(Part::version).collect();
    let statuses =
        parts.iter().zip(&versions).map(|(part, version)| part.status(version.as_deref())).collect();
    let binding = parts.iter().zip(&versions).filter_map(|(part, version)| {
        let decided = part.decided.as_ref().filter(|_| !part.is_shadow() && (!over || part.is_over()))?;
        Some((part, version.as_ref()?, &decided.decision))
    });
    let binding = binding.min_by_key(|(_, _, decision)| tightness(over, decision));
    let mut answer = Answer { over, statuses, headers: http::HeaderMap::new(), body: String::new() };
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

fn count(app: &App, parts: &[Part<'_>], micros: u64) {
    for part in parts {
        let (Under::Policy(handle, _), Some(decided)) = (&part.under, &part.decided) else { continue };
        if !part.gives_back {
            app.metrics().decided(handle.policy().name(), decided.decision.outcome(), micros);
        }
    }
}

/// A cost goes as far as units do.
fn cost(units: Units) -> Cost {
    Cost::new(units.get()).unwrap_or(Cost::PEEK)
}
