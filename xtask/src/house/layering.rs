//! Who may depend on whom: core <- tidegate <- {stream, fields} <- {redis, tower, server} <- cli.

use std::path::Path;

use crate::workspace::Package;

/// The layer of each published crate. A crate depends only on lower layers, never on its own.
const LAYERS: [(&str, u8); 8] = [
    ("tidegate-core", 0),
    ("tidegate", 1),
    ("tidegate-fields", 2),
    ("tidegate-stream", 2),
    ("tidegate-redis", 3),
    ("tidegate-tower", 3),
    ("tidegate-server", 3),
    ("tidegate-cli", 4),
];

/// Holds the oracle and the conformance suite. It uses nothing of ours, so that a mistake in our crates
/// cannot be made twice.
const JUDGE: &str = "tidegate-testkit";

/// Every dependency that points the wrong way, and every crate without a layer.
/// Dev-dependencies are free: a crate's tests may use the testkit, which stands on the crate.
pub fn broken(root: &Path, packages: &[Package]) -> Vec<String> {
    let mut broken = Vec::new();
    for package in packages {
        let manifest = manifest_of(root, package);
        match layer(&package.name) {
            Some(own) => broken.extend(wrong_ways(&manifest, package, own, packages)),
            None if package.folder.starts_with(root.join("crates")) => broken.push(format!(
                "{manifest}: {} has no layer: give it one in xtask/src/house/layering.rs",
                package.name
            )),
            None if package.name == JUDGE => broken.extend(stands_on_the_judged(&manifest, package)),
            None => {} // xtask, benches: they stand on everything, nothing stands on them.
        }
    }
    broken
}

fn wrong_ways(manifest: &str, package: &Package, own: u8, packages: &[Package]) -> Vec<String> {
    let mut broken = Vec::new();
    for dependency in package.dependencies.iter().filter(|dependency| !dependency.dev) {
        let (name, on) = (&package.name, &dependency.name);
        let of_ours = packages.iter().any(|other| other.name == *on);
        match layer(on) {
            _ if own == 0 => broken.push(format!("{manifest}: {name} must have no dependencies, has {on}")),
            Some(other) if other >= own => broken
                .push(format!("{manifest}: {name} (layer {own}) must not depend on {on} (layer {other})")),
            None if of_ours => {
                broken.push(format!("{manifest}: {name} may use {on} only as a dev-dependency"));
            }
            _ => {}
        }
    }
    broken
}

fn stands_on_the_judged(manifest: &str, judge: &Package) -> Vec<String> {
    let judged = judge.dependencies.iter().filter(|it| !it.dev && layer(&it.name).is_some());
    judged.map(|it| format!("{manifest}: {JUDGE} must not depend on {}, which it judges", it.name)).collect()
}

fn manifest_of(root: &Path, package: &Package) -> String {
    let folder = package.folder.strip_prefix(root).unwrap_or(&package.folder);
    folder.join("Cargo.toml").display().to_string()
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(of, _)| *of == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, folder: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependency = |&(name, dev): &(&str, bool)| Dependency { name: name.to_owned(), dev };
        Package {
            name: name.to_owned(),
            folder: Path::new("/w").join(folder),
            dependencies: dependencies.iter().map(dependency).collect(),
            default_features: Vec::new(),
            programs: Vec::new(),
        }
    }

    fn found(packages: &[Package]) -> Vec<String> {
        broken(Path::new("/w"), packages)
    }

    #[test]
    fn downward_and_dev_dependencies_are_fine() {
        let packages = [
            package(
                "tidegate-core",
                "crates/tidegate-core",
                &[("tidegate-testkit", true), ("proptest", true)],
            ),
            package("tidegate", "crates/tidegate", &[("tidegate-core", false), ("arc-swap", false)]),
            package(
                "tidegate-cli",
                "crates/tidegate-cli",
                &[("tidegate-server", false), ("tidegate", false)],
            ),
            package("tidegate-testkit", "testkit", &[("num-rational", false), ("tidegate", true)]),
            package("tidegate-benches", "benches", &[("tidegate", false), ("tidegate-testkit", false)]),
        ];
        assert_eq!(found(&packages), Vec::<String>::new());
    }

    #[test]
    fn the_core_has_no_dependencies_at_all() {
        let packages = [package("tidegate-core", "crates/tidegate-core", &[("serde", false)])];
        let expected = "crates/tidegate-core/Cargo.toml: tidegate-core must have no dependencies, has serde";
        assert_eq!(found(&packages), [expected]);
    }

    #[test]
    fn upward_and_sideways_dependencies_are_named() {
        let packages = [
            package("tidegate", "crates/tidegate", &[("tidegate-server", false)]),
            package("tidegate-server", "crates/tidegate-server", &[("tidegate-redis", false)]),
        ];
        let expected = [
            "crates/tidegate/Cargo.toml: tidegate (layer 1) must not depend on tidegate-server (layer 3)",
            "crates/tidegate-server/Cargo.toml: tidegate-server (layer 3) must not depend on tidegate-redis (layer 3)",
        ];
        assert_eq!(found(&packages), expected);
    }

    #[test]
    fn the_testkit_judges_from_outside() {
        let packages = [package("tidegate-testkit", "testkit", &[("tidegate-core", false)])];
        let expected =
            "testkit/Cargo.toml: tidegate-testkit must not depend on tidegate-core, which it judges";
        assert_eq!(found(&packages), [expected]);
    }

    #[test]
    fn a_published_crate_stands_on_no_tooling_and_a_new_crate_needs_a_layer() {
        let packages = [
            package("tidegate", "crates/tidegate", &[("tidegate-testkit", false)]),
            package("tidegate-testkit", "testkit", &[]),
            package("tidegate-new", "crates/tidegate-new", &[]),
        ];
        let found = found(&packages);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("tidegate-testkit only as a dev-dependency"), "{found:?}");
        assert!(found[1].contains("tidegate-new has no layer"), "{found:?}");
    }
}
