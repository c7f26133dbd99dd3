//! Node with the clients from npm, of pinned versions: `target/xtask/npm`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Tool, debian};
use crate::process::{run, succeeds};
use crate::workspace::Workspace;

/// Runs a script in which `require` finds node-redis, ioredis and iovalkey.
pub const NODE: Tool = Tool {
    name: "node with the Redis clients",
    variable: "TIDEGATE_NODE",
    find: |workspace| ready(&folder(workspace)),
    install: |workspace| install(&folder(workspace)),
};

const PACKAGE: &str = include_str!("npm/package.json");
/// Every package with its version and checksum, those that ours pull in too.
const LOCK: &str = include_str!("npm/package-lock.json");

/// What the clients need of Node.
const SUITABLE: &str = "process.exitCode = parseInt(process.versions.node) < 20 ? 1 : 0";

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.own_target().join("npm")
}

/// Node, started so that it finds the packages wherever the script is.
fn program(folder: &Path) -> PathBuf {
    folder.join("node")
}

fn stamp(folder: &Path) -> PathBuf {
    folder.join("installed-package-lock.json")
}

/// The program, if the folder holds exactly the pinned versions.
fn ready(folder: &Path) -> Option<PathBuf> {
    let installed = fs::read_to_string(stamp(folder)).ok()?;
    let program = program(folder);
    (installed == LOCK && succeeds(Command::new(&program).args(["-e", SUITABLE]))).then_some(program)
}

fn install(folder: &Path) -> Result<PathBuf> {
    provide_node()?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write(&folder.join("package.json"), PACKAGE)?;
    write(&folder.join("package-lock.json"), LOCK)?;
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder))
        .context("npm could not install: is its registry reachable (npm config get registry)?")?;
    write_program(folder)?;
    // The stamp comes last, so an interrupted install is not taken for a whole one.
    write(&stamp(folder), LOCK)?;
    ready(folder).with_context(|| format!("{} was installed but does not run", program(folder).display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(unix)]
fn write_program(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let path = program(folder);
    write(&path, "#!/bin/sh\nNODE_PATH=\"$(dirname \"$0\")/node_modules\" exec node \"$@\"\n")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} a program", path.display()))
}

#[cfg(not(unix))]
fn write_program(_: &Path) -> Result<()> {
    bail!("the program is a shell script: set TIDEGATE_NODE to a node that finds the packages")
}

/// Makes sure that PATH has a Node the clients run on, and npm; Debian's are installed where there is none.
fn provide_node() -> Result<()> {
    let suitable = || succeeds(Command::new("node").args(["-e", SUITABLE]));
    let npm = || succeeds(Command::new("npm").arg("--version"));
    if suitable() && npm() {
        return Ok(());
    }
    debian::install(&["nodejs", "npm"]).context("no Node 20 or newer with npm in PATH, nor Debian's")?;
    if !(suitable() && npm()) {
        bail!("Debian's Node is older than 20: put a newer node and npm first in PATH");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_pinned_and_locked() {
        for client in ["ioredis", "iovalkey", "redis"] {
            let line = PACKAGE.lines().find(|line| line.contains(&format!("\"{client}\":")));
            assert!(line.is_some_and(|line| !line.contains(['^', '~', '*', '>'])), "{client}: {line:?}");
            assert!(LOCK.contains(&format!("\"node_modules/{client}\"")), "{client} is not locked");
        }
    }
}
