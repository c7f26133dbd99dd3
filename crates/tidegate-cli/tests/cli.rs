//! What the program says of itself.
#![allow(clippy::unwrap_used)]

mod program;

use program::tidegate;

const COMMANDS: [&str; 4] = ["serve", "validate", "replay", "compare"];

#[test]
fn help_teaches_each_command_by_examples_and_tells_its_exit_codes() {
    for command in COMMANDS {
        let help = tidegate(&[command, "--help"], b"").fine().out;
        for part in ["Examples:", &format!("tidegate {command}"), "Exit codes:", "  0  ", "  1  ", "  2  "] {
            assert!(help.contains(part), "`tidegate {command} --help` does not say {part:?}:\n{help}");
        }
        let short = tidegate(&[command, "-h"], b"").fine().out;
        assert!(short.lines().count() < help.lines().count(), "{short}");
    }
    let help = tidegate(&["--help"], b"").fine().out;
    for command in COMMANDS {
        assert!(help.contains(&format!("tidegate {command}")), "{help}");
    }
}

#[test]
fn the_help_is_not_torn_where_it_is_too_wide() {
    for command in COMMANDS {
        let help = tidegate(&[command, "--help"], b"").fine().out;
        // What is wider than 100 is broken by the argument parser: the rest of the line stands alone.
        let text = help.split("Print help").nth(1).unwrap();
        let torn = text
            .lines()
            .filter(|line| !line.is_empty() && !line.contains(' ') && !line.ends_with(':'))
            .collect::<Vec<_>>();
        assert!(torn.is_empty(), "{command}: {torn:#?}");
    }
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    tidegate(&[], b"").failed(2, "Usage:");
    tidegate(&["sevre"], b"").failed(2, "unrecognized subcommand");
    for command in COMMANDS {
        tidegate(&[command, "--no-such-flag"], b"").failed(2, "--no-such-flag");
    }
}

#[test]
fn the_version_is_the_packages() {
    let version = tidegate(&["--version"], b"").fine().out;
    assert_eq!(version, format!("tidegate {}\n", env!("CARGO_PKG_VERSION")));
}
