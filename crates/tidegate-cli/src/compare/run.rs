//! The command: a trace or scenario in, a table and a picture out.

use std::path::Path;

use tidegate_server::config::StoreSettings;

use super::{CompareArgs, Comparison, Nominal, Scenario, SetupError, json, plot, report};
use crate::failure::{Failure, print};
use crate::replay::Format;
use crate::store;
use crate::trace::{Entry, OpenTrace, Order, Trace, TracePath};

/// Runs `tidegate compare`.
///
/// # Errors
/// As its help says.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let nominal = Nominal::new(args.rate, args.burst, args.window).map_err(Failure::usage)?;
    let picture = args.plot.as_deref().map(checked_picture).transpose()?;
    let trace = args.trace.as_ref().map(TracePath::new);
    if let (Some(picture), Some(path)) = (picture, &trace)
        && path.is_same_file(picture)
    {
        return Err(Failure::usage("--plot: would overwrite the trace (name another file)"));
    }
    let store = store::apart(args.store.as_deref(), &StoreSettings::default())?;
    let mut comparison = Comparison::new(nominal, store).map_err(|error| match error {
        SetupError::Store(error) => store::silent(&error),
        error => Failure::usage(error),
    })?;
    let (traffic, scenario) = match &trace {
        Some(path) => {
            decide_trace(path, &mut comparison)?;
            (path.name(), None)
        }
        None => {
            let scenario = args.scenario.unwrap_or(Scenario::WindowEdge);
            comparison.decide_scenario(scenario).map_err(|error| store::silent(&error))?;
            (scenario.name().to_owned(), Some(scenario))
        }
    };
    if let Some(picture) = picture {
        std::fs::write(picture, plot(&traffic, &comparison))
            .map_err(|error| Failure::run(format_args!("cannot write {}: {error}", picture.display())))?;
    }
    match args.format {
        Format::Table => print(&report(&traffic, scenario, &comparison)),
        Format::Json => print(&json(&traffic, &comparison).map_err(Failure::run)?),
    }
}

fn decide_trace(path: &TracePath, comparison: &mut Comparison) -> Result<(), Failure> {
    let name = path.name();
    let OpenTrace { input, progress } = path
        .open(comparison.pace())
        .map_err(|error| Failure::run(format_args!("cannot open {name}: {error}")))?;
    let mut trace = Trace::new(input, Order::default(), |_| Ok(0));
    let (at_once, mut checks, mut lines) = (comparison.at_once(), Vec::new(), 0);
    while let Some(entry) = trace.next() {
        trace.complaints().for_each(|bad| progress.tell(&format!("{name}: {bad}")));
        let entry =
            entry.map_err(|error| Failure::run(format_args!("{name}: cannot read the trace: {error}")))?;
        lines += 1;
        if let Entry::Check(check) = entry {
            checks.push(check);
        }
        if checks.len() == at_once {
            comparison.decide(&checks).map_err(|error| store::silent(&error))?;
            checks.clear();
            progress.follow(lines, trace.counts().lines);
        }
    }
    comparison.decide(&checks).map_err(|error| store::silent(&error))?;
    progress.finish();
    let bad = trace.counts().bad;
    if bad > 0 {
        progress.tell(&format!("{name}: {bad} bad lines were passed over"));
    }
    Ok(())
}

/// Only what can be written is taken, before anything is computed.
fn checked_picture(picture: &Path) -> Result<&Path, Failure> {
    if picture.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return Ok(picture);
    }
    let (shown, mend) =
        (picture.display(), "name a file that ends in .svg; rsvg-convert or a browser makes a PNG of it");
    Err(Failure::usage(format_args!("--plot: {shown}: pictures are written as SVG ({mend})")))
}
