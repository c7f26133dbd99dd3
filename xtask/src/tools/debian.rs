//! Debian's packages, by apt-get.

use std::process::Command;

use anyhow::{Result, bail};

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
