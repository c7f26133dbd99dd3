//! `cargo xtask bench [NAME [ARG]...]`: the programs of benches/, built as packages are.

use anyhow::{Context, Result, bail};

use crate::process::{cargo, run as run_command};
use crate::steps::Steps;
use crate::tools;
use crate::workspace::{Package, Workspace};

const PACKAGE: &str = "tidegate-benches";
/// The bench that measures our own program.
const SERVES: &str = "doors";

/// Runs the named bench with the words after its name, or all of them.
pub fn run(workspace: &Workspace, steps: &mut Steps, words: &[String]) -> Result<()> {
    let benches = workspace.package(PACKAGE).with_context(|| {
        format!("the workspace has no package {PACKAGE}: add one, a program per bench, in src/bin/")
    })?;
    let (names, arguments) = chosen(benches, words)?;
    println!("Benches: {}", benches.programs.join(", "));
    for name in names {
        steps.run(&name, || {
            let mut variables = tools::provide_for_bench(workspace, &name)?;
            if name == SERVES {
                let build = ["build", "--profile", "dist", "-p", "tidegate-cli"];
                run_command(cargo().current_dir(&workspace.root).args(build))?;
                variables.push(("TIDEGATE_PROGRAM".to_owned(), workspace.target.join("dist/tidegate")));
            }
            let program = ["run", "--profile", "dist", "-p", PACKAGE, "--bin", &name, "--"];
            let mut command = cargo();
            run_command(command.current_dir(&workspace.root).envs(variables).args(program).args(arguments))
        });
    }
    Ok(())
}

/// The benches to run and the arguments for them.
fn chosen<'a>(benches: &Package, words: &'a [String]) -> Result<(Vec<String>, &'a [String])> {
    let Some((name, arguments)) = words.split_first() else {
        if benches.programs.is_empty() {
            bail!("{PACKAGE} has no programs: put one into {}/src/bin/", benches.folder.display());
        }
        return Ok((benches.programs.clone(), &[]));
    };
    if !benches.programs.contains(name) {
        bail!("no bench {name:?}: there are {}", benches.programs.join(", "));
    }
    Ok((vec![name.clone()], arguments))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn benches(programs: &[&str]) -> Package {
        Package {
            name: PACKAGE.to_owned(),
            folder: "/w/benches".into(),
            dependencies: Vec::new(),
            default_features: Vec::new(),
            programs: programs.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    #[test]
    fn without_a_name_all_run() {
        let (names, arguments) = chosen(&benches(&["memory", "waiting"]), &[]).unwrap();
        assert_eq!(names, ["memory", "waiting"]);
        assert!(arguments.is_empty());
        assert!(chosen(&benches(&[]), &[]).is_err());
    }

    #[test]
    fn a_name_picks_one_and_keeps_its_arguments() {
        let words = ["memory".to_owned(), "--keys".to_owned(), "10".to_owned()];
        let (names, arguments) = chosen(&benches(&["memory", "waiting"]), &words).unwrap();
        assert_eq!((names.as_slice(), arguments), (&words[..1], &words[1..]));
        let error = chosen(&benches(&["memory"]), &["memroy".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "no bench \"memroy\": there are memory");
    }
}
