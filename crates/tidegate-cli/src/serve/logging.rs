//! The log, on standard error: standard output is for what programs read.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Starts the log. Once a process.
pub(super) fn start(format: LogFormat, filter: &str) -> Result<(), Failure> {
    let filter = parse(filter)
        .map_err(|error| Failure::usage(format_args!("--log {filter}: {error} (write e.g. info)")))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let log = log.with_ansi(io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => log.with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::run(format_args!("the log cannot be started: {error}")))
}

/// Reads a filter. The library takes a word that is no level for the name of a target, so that a level with a
/// typing error would silence everything, refused reloads too.
fn parse(filter: &str) -> Result<EnvFilter, String> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    match filter.split(',').map(str::trim).find(|it| !it.contains(['=', '[']) && !is_level(it)) {
        Some("") => Err("empty".to_owned()),
        Some(word) => Err(format!(
            "{word:?} is neither a level (off, error, warn, info, debug, trace) nor TARGET=LEVEL"
        )),
        None => EnvFilter::try_new(filter).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_level_with_a_typing_error_silences_nothing() {
        for right in ["info", "WARN", "off", "tidegate_server=debug", "warn,tidegate=info"] {
            assert!(parse(right).is_ok(), "{right}");
        }
        for (wrong, said) in [
            ("inof", "\"inof\" is neither a level"),
            ("", "empty"),
            ("info,", "empty"),
            ("hyper", "\"hyper\" is neither"),
            ("warn,tidegate:info", "\"tidegate:info\" is neither"),
            ("tidegate=loud", "expected one of"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
