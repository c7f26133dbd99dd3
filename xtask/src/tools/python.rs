//! Programs from PyPI, in one virtual environment of pinned versions: `target/xtask/venv`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Tool, debian};
use crate::process::{run, succeeds};
use crate::workspace::Workspace;

/// Drives the HTTP server by its OpenAPI document.
pub const SCHEMATHESIS: Tool = Tool {
    name: "schemathesis",
    variable: "TIDEGATE_SCHEMATHESIS",
    find: |workspace| ready(workspace, "schemathesis"),
    install: |workspace| install(workspace, "schemathesis"),
};

/// Python with the clients that the tests drive from it: redis-py, and Envoy's protocols over gRPC.
pub const PYTHON: Tool = Tool {
    name: "Python with redis-py and xds-protos",
    variable: "TIDEGATE_PYTHON",
    find: |workspace| ready(workspace, "python"),
    install: |workspace| install(workspace, "python"),
};

/// Every package of the environment with its version, those that ours pull in too.
const REQUIREMENTS: &str = include_str!("python-requirements.txt");

/// The pythons to try, in order. PATH's may be a version manager's shim or too old.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// What a python must be able to do: be new enough for the pinned packages and make an environment.
const SUITABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// The program, if the environment holds exactly the pinned versions.
fn ready(workspace: &Workspace, program: &str) -> Option<PathBuf> {
    let venv = venv(workspace);
    let installed = fs::read_to_string(stamp(&venv)).ok()?;
    let path = venv.join("bin").join(program);
    // Run, for the python it was made with may be gone.
    (installed == REQUIREMENTS && succeeds(Command::new(&path).arg("--version"))).then_some(path)
}

fn install(workspace: &Workspace, program: &str) -> Result<PathBuf> {
    let venv = venv(workspace);
    let python = suitable_python()?;
    // Anew: half an environment, or one of another python, is not worth mending.
    if venv.exists() {
        fs::remove_dir_all(&venv).with_context(|| format!("cannot remove {}", venv.display()))?;
    }
    run(Command::new(python).args(["-m", "venv"]).arg(&venv))?;
    let list = venv.join("requirements.txt");
    fs::write(&list, REQUIREMENTS).with_context(|| format!("cannot write {}", list.display()))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(venv.join("bin/python")).args(pip).arg(&list))
        .context("pip could not install from PyPI: is it reachable (PIP_INDEX_URL, HTTPS_PROXY)?")?;
    // The stamp comes last, so an interrupted install is not taken for a whole one.
    fs::rename(&list, stamp(&venv)).context("cannot write the stamp of the Python environment")?;
    ready(workspace, program).with_context(|| {
        format!("{} was installed but does not run", venv.join("bin").join(program).display())
    })
}

/// The environment's python, which has pip.
pub(super) fn interpreter(workspace: &Workspace) -> Result<PathBuf> {
    ready(workspace, "python").map_or_else(|| install(workspace, "python"), Ok)
}

/// A python that can make the environment; Debian's is installed where there is none.
fn suitable_python() -> Result<&'static str> {
    if let Some(found) = find_python() {
        return Ok(found);
    }
    let tried = PYTHONS.join(", ");
    println!("    no Python 3.10 or newer with venv and ensurepip (tried {tried})");
    debian::install(&["python3", "python3-venv"]).with_context(|| {
        format!(
            "no Python 3.10 or newer with venv and ensurepip (tried {tried}), nor could Debian's be installed"
        )
    })?;
    match find_python() {
        Some(found) => Ok(found),
        None => bail!("Debian's python3 cannot make one either: put a newer python3 first in PATH"),
    }
}

fn find_python() -> Option<&'static str> {
    PYTHONS.into_iter().find(|python| succeeds(Command::new(python).args(["-c", SUITABLE])))
}

fn venv(workspace: &Workspace) -> PathBuf {
    workspace.own_target().join("venv")
}

fn stamp(venv: &Path) -> PathBuf {
    venv.join("installed-requirements.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_pinned() {
        let lines = REQUIREMENTS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for line in lines.clone() {
            assert!(line.contains("=="), "{line}");
        }
        assert!(lines.clone().any(|line| line.starts_with("schemathesis==")));
    }
}
