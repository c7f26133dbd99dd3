//! The command: a trace or scenario in, a table and a picture out.

use std::path::Path;

use super::{CompareArgs, Comparison, Nominal, Scenario, json, plot, report};
use crate::failure::{Failure, print};
use crate::replay::Format;
use crate::trace::{Entry, OpenTrace, Order, Trace, TracePath};

/// Runs `tidegate compare`.
///
/// # Errors
/// As its help says.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let nominal = Nominal::new(args.rate, args.burst, args.window).map_err(Failure::usage)?;
    let picture = args.plot.as_deref().map(checked_picture).transpose()?;
    let comparison = Comparison::new(nominal).map_err(Failure::usage)?;
    let (traffic, scenario, comparison) = match &args.trace {
        Some(trace) => {
            let path = TracePath::new(trace);
            if picture.is_some_and(|picture| path.is_same_file(picture)) {
                return Err(Failure::usage("--plot: would overwrite the trace (name another file)"));
            }
            (path.name(), None, of_trace(&path, comparison)?)
        }
        None => {
            let scenario = args.scenario.unwrap_or(Scenario::WindowEdge);
            let comparison = Comparison::of(scenario, nominal).map_err(Failure::usage)?;
            (scenario.name().to_owned(), Some(scenario), comparison)
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

fn of_trace(path: &TracePath, mut comparison: Comparison) -> Result<Comparison, Failure> {
    let name = path.name();
    let OpenTrace { input, progress } =
        path.open().map_err(|error| Failure::run(format_args!("cannot open {name}: {error}")))?;
    let mut trace = Trace::new(input, Order::default(), |_| Ok(0));
    while let Some(entry) = trace.next() {
        trace.complaints().for_each(|bad| progress.tell(&format!("{name}: {bad}")));
        let entry =
            entry.map_err(|error| Failure::run(format_args!("{name}: cannot read the trace: {error}")))?;
        if let Entry::Check(check) = entry {
            comparison.decide(check);
        }
    }
    progress.finish();
    let bad = trace.counts().bad;
    if bad > 0 {
        progress.tell(&format!("{name}: {bad} bad lines were passed over"));
    }
    Ok(comparison)
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
