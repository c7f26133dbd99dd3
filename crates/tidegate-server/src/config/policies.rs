//! From policies as typed to policies as meant.

use tidegate::{KeyPattern, Limit, MAX_LIMITS, Policy, PolicyBuilder};

use super::errors::{Fault, Problems, Site};
use super::leaf::name_fault;
use super::limits::Complete;
use super::raw::{Named, RawFigures, RawLimit, RawPolicy};
use super::reader::{At, Field};
use super::suggest::did_you_mean;

/// A limit whose name and figures are known to be right.
struct Known {
    name: String,
    figures: Complete,
}

/// The policy meant by `raw`; `None` if something is wrong with it, which is told.
pub(super) fn policy(name: &At<String>, raw: &RawPolicy, problems: &mut Problems) -> Option<Policy> {
    if let Some(fault) = name_fault(&name.value) {
        problems.add(&name.site, fault);
    }
    let limits = raw.limits.given().map(|limits| &*limits.value).unwrap_or_default();
    let (site, known) = match &raw.limits {
        Field::Given(limits) => (&limits.site, (1..=MAX_LIMITS).contains(&limits.value.len())),
        Field::Absent => (&raw.site, false),
        Field::Wrong => (&raw.site, true),
    };
    if !known {
        let rule = format!("a policy has one to {MAX_LIMITS} limits, this has {}", limits.len());
        let mend = if limits.is_empty() { "give limits: [...]" } else { "split the policy" };
        problems.add(site, Fault::new(rule, mend));
    }
    // With more than that, comparing each with each would take too long, and is beside the point.
    let few = limits.len() <= MAX_LIMITS;
    if few {
        refuse_twins(limits, problems);
    }
    let mut builder = Policy::builder(&*name.value);
    let mut known = Vec::with_capacity(limits.len());
    for raw in limits {
        let checked = limit(raw, problems);
        if let Some((limit, built)) = checked {
            builder = builder.limit(&*limit.name, built);
            known.push(limit);
        }
    }
    if few {
        builder = overrides(builder, &raw.overrides, limits, &known, problems);
    }
    if !problems.none() {
        return None;
    }
    builder
        .build()
        .map_err(|error| problems.add(&raw.site, Fault::new(error.to_string(), "mend the policy")))
        .ok()
}

fn limit(raw: &RawLimit, problems: &mut Problems) -> Option<(Known, Limit)> {
    if raw.algorithm.is_absent() {
        problems.add(&raw.site, Fault::new("algorithm is missing", "write e.g. algorithm: token_bucket"));
    }
    let algorithm = raw.algorithm.value()?;
    let figures = Complete::new(algorithm, &raw.figures, &raw.site, problems)?;
    let limit = figures.limit(&raw.figures, &raw.site, problems)?;
    Some((Known { name: name(raw)?.to_owned(), figures }, limit))
}

/// The limit's name: the one given, else its algorithm's. `None` if that is not known.
fn name(raw: &RawLimit) -> Option<&str> {
    match &raw.name {
        Field::Given(name) => Some(&name.value.0),
        Field::Absent => Some(raw.algorithm.value()?.name()),
        Field::Wrong => None,
    }
}

fn refuse_twins(limits: &[RawLimit], problems: &mut Problems) {
    for (index, raw) in limits.iter().enumerate() {
        let Some(own) = name(raw) else { continue };
        if limits[..index].iter().any(|other| name(other) == Some(own)) {
            let site = raw.name.given().map_or(&raw.site, |name| &name.site);
            let mend = if raw.name.is_absent() { "give each a name: ..." } else { "rename one" };
            problems.add(site, Fault::new(format!("two limits are named {own:?}"), mend));
        }
    }
}

/// Adds the overrides: each limit's figures are the policy's own but for those given.
fn overrides(
    mut builder: PolicyBuilder,
    overrides: &Named<Named<RawFigures>>,
    limits: &[RawLimit],
    known: &[Known],
    problems: &mut Problems,
) -> PolicyBuilder {
    for (pattern, figures) in overrides {
        let mut changed = Vec::with_capacity(figures.len());
        for (limit, raw) in figures {
            match known.iter().find(|known| known.name == limit.value) {
                Some(known) => {
                    let figures = known.figures.with(raw, problems);
                    let limit = figures.limit(raw, &limit.site, problems);
                    changed.extend(limit.map(|limit| (known.name.clone(), limit)));
                }
                None => refuse_unknown_limit(&limit.site, &limit.value, limits, problems),
            }
        }
        builder = builder.override_for(KeyPattern::parse(&pattern.value), changed);
    }
    builder
}

fn refuse_unknown_limit(site: &Site, limit: &str, limits: &[RawLimit], problems: &mut Problems) {
    let names: Vec<&str> = limits.iter().filter_map(name).collect();
    // A limit that is there but wrong is told of where it stands.
    let unknown = !names.contains(&limit) && names.len() == limits.len();
    if unknown {
        problems.add(site, Fault::new("the policy has no limit of this name", did_you_mean(limit, &names)));
    }
}
