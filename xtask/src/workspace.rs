//! What `cargo metadata` knows of this workspace: where it lies, its packages, who depends on whom.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{cargo, output};

/// This workspace.
pub struct Workspace {
    pub root: PathBuf,
    /// Cargo's target directory; ours is `xtask/` in it.
    pub target: PathBuf,
    pub packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Clone, Debug)]
pub struct Package {
    pub name: String,
    /// The folder of its Cargo.toml.
    pub folder: PathBuf,
    pub dependencies: Vec<Dependency>,
    /// The features one gets without asking.
    pub default_features: Vec<String>,
    /// The names of its programs.
    pub programs: Vec<String>,
}

/// One line of a package's dependencies.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub name: String,
    /// Only for tests, examples and benches.
    pub dev: bool,
}

impl Workspace {
    /// Asks cargo. Resolves nothing and so needs no network.
    pub fn load() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let json =
            output(cargo().current_dir(here).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Value = serde_json::from_str(&json).context("`cargo metadata` printed no JSON")?;
        Self::from_metadata(&metadata).context("`cargo metadata` lacks a field that xtask reads")
    }

    /// Where xtask keeps what it fetched: tools, the Python environment.
    pub fn own_target(&self) -> PathBuf {
        self.target.join("xtask")
    }

    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    fn from_metadata(metadata: &Value) -> Option<Self> {
        let packages = metadata["packages"].as_array()?;
        Some(Self {
            root: metadata["workspace_root"].as_str()?.into(),
            target: metadata["target_directory"].as_str()?.into(),
            packages: packages.iter().map(Package::from_metadata).collect::<Option<_>>()?,
        })
    }
}

impl Package {
    fn from_metadata(package: &Value) -> Option<Self> {
        let mut dependencies = Vec::new();
        for dependency in package["dependencies"].as_array()? {
            let name = dependency["name"].as_str()?.to_owned();
            dependencies.push(Dependency { name, dev: dependency["kind"] == "dev" });
        }
        let mut programs = Vec::new();
        for target in package["targets"].as_array()? {
            if target["kind"].as_array()?.iter().any(|kind| kind == "bin") {
                programs.push(target["name"].as_str()?.to_owned());
            }
        }
        programs.sort();
        let default = package["features"]["default"].as_array().into_iter().flatten();
        let default_features = default.map(|it| Some(it.as_str()?.to_owned())).collect::<Option<_>>()?;
        Some(Self {
            name: package["name"].as_str()?.to_owned(),
            folder: Path::new(package["manifest_path"].as_str()?).parent()?.to_owned(),
            dependencies,
            default_features,
            programs,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn this_workspace_is_read() {
        let workspace = Workspace::load().unwrap();
        let xtask = workspace.package("xtask").unwrap();
        assert_eq!(xtask.folder, workspace.root.join("xtask"));
        assert_eq!(xtask.programs, ["xtask"]);
        assert!(xtask.dependencies.iter().any(|it| it.name == "anyhow" && !it.dev));
        assert!(xtask.default_features.is_empty());
        assert_eq!(workspace.package("tidegate").unwrap().default_features, ["tokio"]);
        assert!(workspace.package("no-such-package").is_none());
    }

    #[test]
    fn a_missing_field_is_noticed() {
        let metadata = serde_json::json!({"workspace_root": "/w", "packages": []});
        assert!(Workspace::from_metadata(&metadata).is_none());
    }
}
