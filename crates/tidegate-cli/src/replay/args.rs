//! What `tidegate replay` can be asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_server::config::parse_period;

use crate::trace::Order;

const HELP: &str = "\
A line of TRACE is one check:
  {\"at_us\": 1700000000000000, \"key\": \"user:42\", \"cost\": 1, \"policy\": \"api\"}
  at_us    microseconds since 1970; or at, RFC 3339, as in \"2023-11-14T22:13:20.5Z\"
  key      whom it is about; or key_b64, base64, for keys that are not UTF-8
  cost     units asked for, 1 if left out; 0 looks without taking
  policy   if left out, --policy, else the file's only one, else `default`
Other fields are passed over; a field that is null counts as left out. Every other line is bad, an
empty one and one of more than 1 MiB too. The first ten are told with their numbers, all count.

A line of OUT has the fields of the HTTP answer, durations in whole microseconds (retry_after_us,
reset_after_us, delay_us; null stands for never), and at_us, key (or key_b64) and cost. For a bad
line it is {\"line\": 7, \"error\": \"...\"}. There is one for each line of TRACE, in the order decided;
a bad one stands behind the line it followed.

Stamps that go back: logs are often written when a request ends and stamped when it began. So lines
are put into the order of their stamps, as far as --reorder and --reorder-lines reach. A line later
than that is decided where it stands; its stamp then counts as the newest its key was charged at.

Keys are never forgotten, whatever max_keys the file says, so two runs decide alike. Memory is
needed for the keys and for the lines held to be reordered, not for the trace.

Examples:
  tidegate replay access.jsonl                        what would the built-in policy have done?
  tidegate replay --config tidegate.yaml --decisions out.jsonl access.jsonl
  zcat access.jsonl.gz | tidegate replay --config tidegate.yaml --policy api -
  tidegate replay --decisions - access.jsonl | jq 'select(.allowed | not)'
  tidegate replay --format json access.jsonl | jq .most_denied
  tidegate replay --store redis://localhost:6379 access.jsonl   the same decisions, made there

Exit codes:
  0  every line was decided or counted as bad; also if whoever reads the output closes it
  1  the trace cannot be read, the output not be written, the store does not answer, or --strict met a bad line
  2  wrong usage, or a configuration that is wrong or cannot be read";

/// Decide a recorded trace in its own time: a month in seconds
#[derive(Debug, Clone, Args)]
#[command(after_long_help = HELP)]
pub struct ReplayArgs {
    /// The policies [default: one named `default`, a token bucket of 100 refilled at 10/s]
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    pub config: Option<PathBuf>,
    /// The policy of lines that name none
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Decide in the Redis or Valkey at this address, under a prefix of its own, and leave nothing there, also when
    /// interrupted [default: memory]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Write every decision here, a line of JSON each; `-` is standard output, and the summary then goes to
    /// standard error
    #[arg(long, value_name = "OUT")]
    pub decisions: Option<PathBuf>,
    /// Decide lines as they stand, whatever their stamps
    #[arg(long, conflicts_with_all = ["reorder", "reorder_lines"])]
    pub keep_order: bool,
    /// How far a stamp may lie behind the newest one and still be put in its place
    #[arg(long, value_name = "DURATION", default_value = "10min", value_parser = duration)]
    pub reorder: Duration,
    /// How many lines at most are held for that
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub reorder_lines: usize,
    /// Stop at the first bad line
    #[arg(long)]
    pub strict: bool,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// The trace, JSON Lines; `-` is standard input
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

impl ReplayArgs {
    /// The order in which the trace is to be decided.
    pub fn order(&self) -> Order {
        if self.keep_order {
            return Order::Kept;
        }
        Order::ByStamp { window: self.reorder, lines: self.reorder_lines }
    }
}

/// A duration as the configuration writes it.
fn duration(text: &str) -> Result<Duration, tidegate_server::config::Fault> {
    parse_period(text).map(|period| Duration::from_micros(period.as_micros()))
}
