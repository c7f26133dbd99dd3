//! Debian's packages, by apt-get.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{output, run, succeeds};

/// Installs `packages` for the whole machine, as root or by `sudo -n` (which never asks).
pub fn install(packages: &[&str]) -> Result<()> {
    if !succeeds(Command::new("apt-get").arg("--version")) {
        bail!("this machine has no apt-get: install {} in its own way", packages.join(" "));
    }
    let become_root = become_root(packages)?;
    let apt = |words: &[&str]| {
        let mut line: Vec<&str> = become_root.to_vec();
        line.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        line.extend(words);
        let mut command = Command::new(line[0]);
        command.args(&line[1..]);
        command
    };
    run(&mut apt(&["update", "-qq"]))?;
    // Somebody else may be installing: a fresh machine often is.
    let wait = "DPkg::Lock::Timeout=300";
    run(apt(&["install", "-y", "-qq", "--no-install-recommends", "-o", wait]).args(packages))
}

/// Unpacks `package` and the libraries it needs into `folder`, without installing them, and makes the starter of
/// its `program` that finds them: `folder/program`.
pub fn unpack(folder: &Path, package: &str, libraries: &[&str], program: &str) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let packages = folder.join("packages");
    fs::create_dir_all(&packages).with_context(|| format!("cannot make {}", packages.display()))?;
    run(Command::new("apt-get").args(["download", "-qq", package]).args(libraries).current_dir(&packages))
        .with_context(|| {
            format!("apt-get cannot download {package}: do its lists know it (apt-get update)?")
        })?;
    let root = folder.join("root");
    for package in fs::read_dir(&packages).context("cannot read what was downloaded")? {
        let package = package.context("cannot read what was downloaded")?.path();
        run(Command::new("dpkg").arg("-x").arg(package).arg(&root))?;
    }
    let starter = folder.join("program");
    let lines = format!(
        "#!/bin/sh\nroot=\"$(dirname \"$0\")/root\"\n\
         export LD_LIBRARY_PATH=\"$(echo \"$root\"/usr/lib/*-linux-gnu):$(echo \"$root\"/lib/*-linux-gnu)\"\n\
         exec \"$root/{program}\" \"$@\"\n"
    );
    fs::write(&starter, lines).with_context(|| format!("cannot write {}", starter.display()))?;
    super::unpacked::make_executable(&starter)?;
    Ok(starter)
}

/// The words before a command that give it root's rights: none for root itself.
fn become_root(packages: &[&str]) -> Result<&'static [&'static str]> {
    if output(Command::new("id").arg("-u"))?.trim() == "0" {
        return Ok(&[]);
    }
    if succeeds(Command::new("sudo").args(["-n", "true"])) {
        return Ok(&["sudo", "-n"]);
    }
    bail!("not root, and sudo asks for a password: run `sudo apt-get install {}`", packages.join(" "))
}
