//! What `tidegate compare` can be asked.

use std::path::PathBuf;

use clap::Args;
use tidegate::{Period, Rate, Units};
use tidegate_server::config::{Fault, parse_period, parse_rate, parse_units};

use super::Scenario;
use crate::replay::Format;

const HELP: &str = "\
All six algorithms get the same nominal limit: --rate in the long run, --burst at once. The buckets
(token_bucket, gcra, leaky_bucket) take it as it is; the windows take as many per window as the rate
earns in it. The window is --window, else the time in which the burst is earned.

The picture has a panel for each algorithm: what was asked for, what was admitted by when, and for
the leaky bucket when the admitted work may begin. Every other window is shaded.

A TRACE is read as by `tidegate replay` and put into the order of its stamps within ten minutes; its
keys and costs count, its policies do not. docs/algorithms.md explains the six with such pictures.

Examples:
  tidegate compare --scenario window-edge
  tidegate compare --rate 100/min --burst 20 --scenario burst-after-idle --plot burst.svg
  tidegate compare --rate 10/s --window 1min access.jsonl --plot access.svg
  tidegate compare --scenario steady --format json | jq '.algorithms[] | {algorithm, admitted}'

Exit codes:
  0  done; also if whoever reads the output closes it
  1  the trace cannot be read, the output not be written, or the store does not answer
  2  wrong usage, or figures that make no limit";

/// Put one trace, or a built-in scenario, to all six algorithms
#[derive(Debug, Clone, Args)]
#[command(after_long_help = HELP)]
pub struct CompareArgs {
    /// What is admitted in the long run
    #[arg(long, value_name = "N/DURATION", default_value = "10/s", value_parser = rate)]
    pub rate: Rate,
    /// What is admitted at once [default: what the window holds, or else the rate's N]
    #[arg(long, value_name = "N", value_parser = units)]
    pub burst: Option<Units>,
    /// The window of the window algorithms [default: the time in which the burst is earned]
    #[arg(long, value_name = "DURATION", value_parser = period)]
    pub window: Option<Period>,
    /// A built-in trace [default, unless there is a TRACE: window-edge]
    #[arg(long, value_enum, conflicts_with = "trace")]
    pub scenario: Option<Scenario>,
    /// Decide in the Redis or Valkey at this address, under a prefix of its own, and leave nothing there, also when
    /// interrupted [default: memory]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Write the picture here, as SVG
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<PathBuf>,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// A trace, JSON Lines; `-` is standard input
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
}

fn rate(text: &str) -> Result<Rate, Fault> {
    parse_rate(text)
}

fn units(text: &str) -> Result<Units, Fault> {
    parse_units(text)
}

fn period(text: &str) -> Result<Period, Fault> {
    parse_period(text)
}
