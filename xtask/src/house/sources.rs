//! Rules for single Rust files: how long, which names, no leftovers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Lines of one file, its inline tests not counted.
const MOST_LINES: usize = 500;

/// Names that say nothing about what is inside and so collect everything.
const VAGUE_NAMES: [&str; 7] = ["common", "util", "utils", "helper", "helpers", "manager", "managers"];

/// Leftovers, put together here so that this file does not find itself.
const LEFTOVERS: [&str; 3] = [concat!("to", "do!("), concat!("unimpl", "emented!("), concat!("db", "g!(")];

/// Every Rust file of the repository, in order of path; nothing built, hidden or recorded.
pub fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !["target", "corpus", "artifacts"].contains(&name.as_ref()) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What is wrong with one file, `path` being its place in the repository.
pub fn broken(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let mut broken = Vec::new();
    if !is_test_file(path) {
        let lines = lines_without_tests(text);
        if lines > MOST_LINES {
            broken.push(format!("{shown}: {lines} lines, at most {MOST_LINES} outside tests: split it"));
        }
    }
    if let Some(name) = vague_name(path) {
        broken.push(format!("{shown}: a module named {name:?} collects everything: name what it holds"));
    }
    for (index, line) in text.lines().enumerate() {
        let (code, number) = (line.trim_start(), index + 1);
        if let Some(name) = inline_module(code).filter(|name| VAGUE_NAMES.contains(name)) {
            broken.push(format!(
                "{shown}:{number}: a module named {name:?} collects everything: name what it holds"
            ));
        }
        if let Some(leftover) = LEFTOVERS.iter().find(|it| !code.starts_with("//") && code.contains(**it)) {
            broken.push(format!("{shown}:{number}: {leftover}...) must not stay"));
        }
    }
    broken
}

fn is_test_file(path: &Path) -> bool {
    let in_tests = path.components().any(|part| part.as_os_str() == "tests");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    in_tests || stem == "tests" || stem.ends_with("_tests")
}

/// The file's lines but for the blocks `#[cfg(test)] mod x { ... }` at its margin, which rustfmt
/// ends with a brace at the margin.
fn lines_without_tests(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        count += 1;
        let opens = |next: &&str| inline_module(next).is_some() && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.next_if(opens).is_some() {
            count -= 1;
            lines.by_ref().find(|line| *line == "}");
        }
    }
    count
}

/// The name in `mod name` or `pub(crate) mod name`.
fn inline_module(line: &str) -> Option<&str> {
    let declaration = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
    let name = declaration.strip_prefix("mod ")?;
    Some(name.trim_end_matches([' ', '{', ';', '}']))
}

fn vague_name(path: &Path) -> Option<String> {
    let parts = path.with_extension("");
    let names = parts.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    names.into_iter().find(|name| VAGUE_NAMES.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        broken(Path::new(path), text)
    }

    #[test]
    fn a_file_may_have_500_lines_and_tests_of_any_length() {
        let code = "fn f() {}\n".repeat(500);
        let inline = format!("{code}#[cfg(test)]\nmod tests {{\n{}}}\n", "    // a case\n".repeat(900));
        assert_eq!(found("crates/a/src/a.rs", &inline), Vec::<String>::new());
        let long = format!("{inline}fn after() {{}}\n");
        assert_eq!(
            found("crates/a/src/a.rs", &long),
            ["crates/a/src/a.rs: 501 lines, at most 500 outside tests: split it"]
        );
        for tests in ["crates/a/tests/b.rs", "crates/a/src/tests.rs", "crates/a/src/b/bucket_tests.rs"] {
            assert_eq!(found(tests, &long), Vec::<String>::new());
        }
    }

    #[test]
    fn a_test_module_in_its_own_file_does_not_hide_what_follows() {
        let text = format!("#[cfg(test)]\nmod tests;\n{}", "fn f() {}\n".repeat(499));
        assert_eq!(lines_without_tests(&text), 501);
    }

    #[test]
    fn vague_names_are_found_as_files_folders_and_inline() {
        assert_eq!(found("crates/a/src/utils.rs", "").len(), 1);
        assert_eq!(found("crates/a/tests/common/mod.rs", "").len(), 1);
        let inline = found("crates/a/src/a.rs", "use b;\npub(crate) mod helpers {\n}\n");
        assert!(inline[0].starts_with("crates/a/src/a.rs:2: a module named \"helpers\""), "{inline:?}");
        assert_eq!(found("crates/a/src/manager_of_none.rs", "mod common_case;\n"), Vec::<String>::new());
    }

    #[test]
    fn leftovers_are_found_in_code_only() {
        for leftover in LEFTOVERS {
            let text = format!("// {leftover})\nfn f() {{\n    {leftover})\n}}\n");
            let found = found("crates/a/src/a.rs", &text);
            assert_eq!(found, [format!("crates/a/src/a.rs:3: {leftover}...) must not stay")]);
        }
    }

    #[test]
    fn this_repository_is_walked_without_what_is_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let files = rust_files(root).unwrap();
        assert!(files.contains(&root.join("xtask/src/house/sources.rs")));
        assert!(files.iter().all(|file| !file.starts_with(root.join("target"))));
    }
}
