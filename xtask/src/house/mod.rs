//! The house rules that a machine can check cheaply: file length, names, leftovers, layering.

mod layering;
mod sources;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Every place that breaks a rule, as `path:line: what is wrong and what to do`.
pub fn broken_rules(workspace: &Workspace) -> Result<Vec<String>> {
    let mut broken = layering::broken(&workspace.root, &workspace.packages);
    for path in sources::rust_files(&workspace.root)? {
        let text = read(&path)?;
        let shown = path.strip_prefix(&workspace.root).unwrap_or(&path);
        broken.extend(sources::broken(shown, &text));
    }
    broken.extend(core_is_no_std(&workspace.root)?);
    Ok(broken)
}

/// No target without std can be fetched everywhere, but an attribute and no dependencies (see
/// `layering`) leave the compiler nothing of std to link.
fn core_is_no_std(root: &Path) -> Result<Option<String>> {
    let path = "crates/tidegate-core/src/lib.rs";
    let text = read(&root.join(path))?;
    let declared =
        text.lines().any(|line| matches!(line.trim(), "#![no_std]" | "#![cfg_attr(not(test), no_std)]"));
    Ok((!declared).then(|| format!("{path}: the core must stay #![no_std]")))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
