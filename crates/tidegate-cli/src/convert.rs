//! `tidegate convert`: a configuration of ours from files written for envoyproxy/ratelimit.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use tidegate::PolicySet;
use tidegate_redis::Address;
use tidegate_server::config::ratelimit::{RatelimitFiles, to_yaml};
use tidegate_server::config::{Severity, StoreKind, StoreSettings};

use crate::failure::{Failure, print};
use crate::store;

const HELP: &str = "\
Examples:
  tidegate convert ratelimit/config > tidegate.yaml
  tidegate convert --store redis://cache:6379 ratelimit/config > tidegate.yaml
  tidegate serve --envoy-config ratelimit/config      uses them as they are

Exit codes:
  0  written to standard output; what has no effect here is told on standard error
  2  wrong usage, or a file that is wrong or cannot be read";

/// Write files made for envoyproxy/ratelimit as a configuration file
#[derive(Debug, Clone, Args)]
#[command(after_long_help = HELP)]
pub struct ConvertArgs {
    /// A file, or the folder they are in
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Let several files have one domain, as MERGE_DOMAIN_CONFIG does
    #[arg(long)]
    pub envoy_merge_domains: bool,
    /// Where state is to be kept: `memory`, or the address of a Redis or Valkey that several instances share; written
    /// down as it is, a password too
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
}

/// Converts, and writes to standard output.
///
/// # Errors
/// A file that is wrong or cannot be read.
pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let files = RatelimitFiles::at(&args.file).merged(args.envoy_merge_domains);
    let translated = files.load(&PolicySet::default()).map_err(Failure::usage)?;
    for remark in translated.remarks.iter().filter(|remark| remark.severity() == Severity::Warning) {
        // If nobody can be told, the file is right all the same.
        let _ = writeln!(io::stderr(), "{remark}");
    }
    let store = match args.store.as_deref() {
        Some(flag) => lines_of(&store::place(Some(flag), &StoreSettings::default())?),
        None => String::new(),
    };
    let yaml = to_yaml(&translated, &args.file.display().to_string());
    // Behind the first line, which says where the file comes from.
    let (first, rest) = yaml.split_once('\n').unwrap_or((&yaml, ""));
    print(&format!("{first}\n{store}{rest}"))
}

/// The lines that say where state is kept.
fn lines_of(kind: &StoreKind) -> String {
    let StoreKind::Shared(address) = kind else { return "store: memory\n".to_owned() };
    // In single quotes YAML knows no escapes but the quote itself.
    let mut lines = format!("store: '{}'\n", address.replace('\'', "''"));
    if address.parse().is_ok_and(|address: Address| address.is_cluster()) {
        lines +=
            "# All descriptors of a request are decided as one, which a cluster does for keys in one slot.\n";
        lines += "redis: {partition: envoy}\n";
    }
    lines
}
