//! `cargo xtask ci`: everything that must hold before a change lands, then the tests.

use std::process::Command;

use anyhow::{Result, bail};

use crate::house;
use crate::process::{cargo, run as run_command};
use crate::steps::Steps;
use crate::test;
use crate::totals::Totals;
use crate::workspace::{Package, Workspace};

/// Runs all checks (a failed one does not hide the next) and returns the tests' totals.
pub fn run(workspace: &Workspace, steps: &mut Steps) -> Option<Totals> {
    steps.run("house rules", || house_rules(workspace));
    for (name, mut command) in checks(workspace) {
        steps.run(&name, || run_command(command.current_dir(&workspace.root)));
    }
    if workspace.root.join("fuzz/Cargo.toml").exists() {
        steps.run("fuzz targets compile", || run_command(fuzz_check().current_dir(&workspace.root)));
    }
    test::run(workspace, steps, &[])
}

fn house_rules(workspace: &Workspace) -> Result<()> {
    let broken = house::broken_rules(workspace)?;
    for line in &broken {
        println!("    {line}");
    }
    match broken.len() {
        0 => Ok(()),
        count => bail!("{count} places break a house rule, listed above"),
    }
}

fn checks(workspace: &Workspace) -> Vec<(String, Command)> {
    let named = |name: &str, words: &str| {
        let mut command = cargo();
        command.args(words.split_whitespace());
        (name.to_owned(), command)
    };
    let mut checks = vec![
        named("formatting", "fmt --all --check"),
        named("clippy", "clippy --workspace --all-targets -- -D warnings"),
    ];
    // One at a time: together, a crate would get the features that another asks it for.
    for Package { name, .. } in workspace.packages.iter().filter(|it| !it.default_features.is_empty()) {
        let words = format!("clippy -p {name} --no-default-features -- -D warnings");
        checks.push(named(&format!("{name} without default features"), &words));
    }
    let mut docs = named("documentation", "doc --workspace --lib --no-deps --all-features");
    docs.1.env("RUSTDOCFLAGS", "-D warnings");
    checks.push(docs);
    checks
}

/// The fuzz crate is a workspace of its own; in our target directory it shares what is built.
fn fuzz_check() -> Command {
    let mut command = cargo();
    command.args(["check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target"]);
    command
}
