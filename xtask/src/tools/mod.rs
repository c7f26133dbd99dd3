//! Programs that tests drive: found where the user says, found where an earlier run put them, else
//! installed. A test reads the path from the tool's variable; a missing program is never skipped.

mod debian;
mod load;
mod node;
mod proxies;
mod python;
mod redis;
mod servers;
mod unpacked;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A program from outside the Rust world.
pub struct Tool {
    pub name: &'static str,
    /// Says where the program is: set by us for the tests, or by the user for us.
    pub variable: &'static str,
    /// Looks where earlier runs put it (and, where any version will do, in PATH).
    pub find: fn(&Workspace) -> Option<PathBuf>,
    /// Installs it below `target/xtask` and says where. Its error tells what was tried.
    pub install: fn(&Workspace) -> Result<PathBuf>,
}

/// All that the tests need. A new one is a line here and a file that knows how to get it.
const TOOLS: [Tool; 14] = [
    python::SCHEMATHESIS,
    python::PYTHON,
    node::NODE,
    redis::REDIS_CLI,
    redis::REDIS_BENCHMARK,
    proxies::NGINX,
    proxies::HAPROXY,
    proxies::TRAEFIK,
    proxies::CADDY,
    proxies::ENVOY,
    servers::REDIS7,
    servers::REDIS8,
    servers::VALKEY8,
    servers::VALKEY9,
];

/// The variables that tell the tests where each tool is.
pub fn provide_all(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
    let mut variables = Vec::new();
    for tool in &TOOLS {
        let told = std::env::var_os(tool.variable).map(PathBuf::from);
        let path = provide(tool, workspace, told)?;
        println!("    {}={}", tool.variable, path.display());
        variables.push((tool.variable.to_owned(), path));
    }
    Ok(variables)
}

/// What the bench of this name drives, and whether it can do without.
fn of_bench(name: &str) -> &'static [(Tool, Needed)] {
    match name {
        "redis" => &[(servers::REDIS7, Needed::Yes)],
        "doors" => &[
            (servers::REDIS7, Needed::Yes),
            (redis::REDIS_BENCHMARK, Needed::Yes),
            (load::WRK, Needed::Yes),
            (load::H2LOAD, Needed::Yes),
            (load::THROTTLECRAB, Needed::No),
        ],
        _ => &[],
    }
}

/// Whether something is measured without a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Yes,
    /// What is compared with it is measured alone.
    No,
}

/// The variables that tell a bench where its tools are.
pub fn provide_for_bench(workspace: &Workspace, bench: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut variables = Vec::new();
    for (tool, needed) in of_bench(bench) {
        match provide(tool, workspace, std::env::var_os(tool.variable).map(PathBuf::from)) {
            Ok(path) => variables.push((tool.variable.to_owned(), path)),
            Err(error) if *needed == Needed::No => println!("    without {}: {error:#}", tool.name),
            Err(error) => return Err(error),
        }
    }
    Ok(variables)
}

fn provide(tool: &Tool, workspace: &Workspace, told: Option<PathBuf>) -> Result<PathBuf> {
    let (name, variable) = (tool.name, tool.variable);
    if let Some(path) = told {
        if !is_program(&path) {
            bail!("{variable}={}: no program is there: mend the path or unset it", path.display());
        }
        return Ok(path);
    }
    if let Some(path) = (tool.find)(workspace) {
        return Ok(path);
    }
    println!("    {name} is not here yet: installing it");
    (tool.install)(workspace).with_context(|| {
        format!(
            "the tests need {name}, and it could not be installed (install it and set {variable}=/its/path)"
        )
    })
}

/// A program of this name in PATH.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn workspace() -> Workspace {
        Workspace { root: "/w".into(), target: "/w/target".into(), packages: Vec::new() }
    }

    fn tool(find: fn(&Workspace) -> Option<PathBuf>) -> Tool {
        Tool { name: "thing", variable: "TIDEGATE_THING", find, install: |_| bail!("the registry is away") }
    }

    #[test]
    fn the_users_own_comes_first() {
        let tool = tool(|_| Some("/found".into()));
        assert_eq!(provide(&tool, &workspace(), Some("/bin/sh".into())).unwrap(), Path::new("/bin/sh"));
        assert_eq!(provide(&tool, &workspace(), None).unwrap(), Path::new("/found"));
    }

    #[test]
    fn a_wrong_path_is_refused_by_name_rather_than_passed_over() {
        for wrong in ["/no/such/program", "/etc/passwd", "/"] {
            let error =
                provide(&tool(|_| Some("/found".into())), &workspace(), Some(wrong.into())).unwrap_err();
            let expected = format!("TIDEGATE_THING={wrong}: no program is there: mend the path or unset it");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn missing_and_not_to_be_had_is_an_error_with_the_mend() {
        let error = provide(&tool(|_| None), &workspace(), None).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.contains("set TIDEGATE_THING=/its/path"), "{said}");
        assert!(said.ends_with("the registry is away"), "{said}");
    }
}
