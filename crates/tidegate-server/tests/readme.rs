//! What the README says of connecting things is what the pages say, from which the tests run it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_lines_of_each_row_are_on_its_page() {
    let readme = read("README.md");
    let (_, table) = readme.split_once("## Into what you run").unwrap();
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.starts_with('|')).skip(2).collect();
    let rows: Vec<&str> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for row in rows {
        let (lines, page) = row.rsplit_once("| [").unwrap();
        let page = page.split_once('(').unwrap().1.split_once(')').unwrap().0;
        let shown = read(page);
        let code: Vec<&str> = lines.split('`').skip(1).step_by(2).collect();
        assert!(!code.is_empty(), "{row}");
        for line in code {
            assert!(shown.contains(line), "{page} does not show {line}");
        }
    }
}
