//! `cargo xtask test`: gets what the tests need, then runs all of them.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{cargo, run_watched, succeeds};
use crate::steps::Steps;
use crate::tools;
use crate::totals::{Totals, cargo_test_line, nextest_line};
use crate::workspace::Workspace;

/// Runs every test whose name contains one of `filters` (all without filters). `None` when no
/// test could be started.
pub fn run(workspace: &Workspace, steps: &mut Steps, filters: &[String]) -> Option<Totals> {
    // A test that finds its program missing would fail less plainly than this step, so stop here.
    let variables = steps.run("programs the tests need", || tools::provide_all(workspace))?;
    let runs =
        [("unit and integration tests", unit_and_integration(filters)), ("doctests", doctests(filters))];
    let mut sum = Totals::default();
    for (name, (mut command, read_line)) in runs {
        command.current_dir(&workspace.root).envs(variables.iter().cloned());
        steps.run(name, || {
            let (totals, verdict) = tests_of(&mut command, read_line)?;
            sum += totals;
            // A filter may well name unit tests only; a whole run without a test is broken.
            if totals.executed() == 0 && filters.is_empty() {
                bail!("not one test ran");
            }
            verdict
        });
    }
    if sum.executed() == 0 {
        steps.run("at least one test", || -> Result<()> { bail!("not one test ran: see above") });
        return None;
    }
    Some(sum)
}

type ReadLine = fn(&str) -> Option<Totals>;

fn unit_and_integration(filters: &[String]) -> (Command, ReadLine) {
    let mut command = cargo();
    if succeeds(cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"]).args(filters);
        return (command, nextest_line);
    }
    // Not --all-targets: that would run benches too. Doctests are a run of their own in either case.
    command.args(["test", "--workspace", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"]);
    (with_filters(command, filters), cargo_test_line)
}

fn doctests(filters: &[String]) -> (Command, ReadLine) {
    let mut command = cargo();
    command.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    (with_filters(command, filters), cargo_test_line)
}

/// libtest takes several filters only after `--`.
fn with_filters(mut command: Command, filters: &[String]) -> Command {
    if !filters.is_empty() {
        command.arg("--").args(filters);
    }
    command
}

/// The totals of one run and its verdict. An error when it ended before saying any totals.
fn tests_of(command: &mut Command, read_line: ReadLine) -> Result<(Totals, Result<()>)> {
    let mut totals: Option<Totals> = None;
    let status = run_watched(command, |line| {
        if let Some(more) = read_line(line) {
            *totals.get_or_insert_default() += more;
        }
    })?;
    let Some(totals) = totals else {
        bail!("the runner ended ({status}) without a closing line: see its output above");
    };
    Ok((totals, verdict(totals, status.success())))
}

fn verdict(totals: Totals, success: bool) -> Result<()> {
    match (totals.failed, success) {
        (0, true) => Ok(()),
        (0, false) => bail!("no test failed, but the runner did: see its output above"),
        (failed, _) => bail!("{failed} of {} tests failed", totals.executed()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn saying(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const TWO: &str = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
    const BAD: &str = "echo 'test result: FAILED. 1 passed; 3 failed; 0 ignored'";

    #[test]
    fn closing_lines_of_several_binaries_are_added() {
        let (totals, verdict) = tests_of(&mut saying(&format!("{TWO}; {TWO}")), cargo_test_line).unwrap();
        assert_eq!(totals, Totals { passed: 4, failed: 0 });
        verdict.unwrap();
    }

    #[test]
    fn failures_are_counted_and_fail_whatever_the_exit_status() {
        for status in [0, 101] {
            let script = format!("{TWO}; {BAD}; exit {status}");
            let (totals, verdict) = tests_of(&mut saying(&script), cargo_test_line).unwrap();
            assert_eq!(totals, Totals { passed: 3, failed: 3 });
            assert_eq!(verdict.unwrap_err().to_string(), "3 of 6 tests failed");
        }
    }

    #[test]
    fn a_run_that_breaks_off_is_an_error_though_no_test_failed() {
        assert!(tests_of(&mut saying("echo could not compile; exit 101"), cargo_test_line).is_err());
        assert!(tests_of(&mut saying("true"), nextest_line).is_err());
        let (_, verdict) = tests_of(&mut saying(&format!("{TWO}; exit 101")), cargo_test_line).unwrap();
        assert!(verdict.is_err());
    }

    #[test]
    fn filters_stand_behind_the_dashes_for_libtest() {
        let (command, _) = doctests(&["edge".to_owned()]);
        let words: Vec<_> = command.get_args().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(words, ["test", "--workspace", "--doc", "--no-fail-fast", "--", "edge"]);
    }
}
