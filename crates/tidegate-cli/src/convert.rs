//! `tidegate convert`: a configuration of ours from files written for envoyproxy/ratelimit.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use tidegate::PolicySet;
use tidegate_server::config::Severity;
use tidegate_server::config::ratelimit::{RatelimitFiles, to_yaml};

use crate::failure::{Failure, print};

const HELP: &str = "\
Examples:
  tidegate convert ratelimit/config > tidegate.yaml
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
    print(&to_yaml(&translated, &args.file.display().to_string()))
}
