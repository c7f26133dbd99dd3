//! What docs/algorithms.md shows is what the program prints and draws.
//!
//! `UPDATE_DOCS=1 cargo test -p tidegate-cli --test docs` writes both anew; look at the pictures before they are
//! committed.
#![allow(clippy::unwrap_used)]

mod program;

use std::path::Path;

use program::{Files, command, repository};

const PAGE: &str = "docs/algorithms.md";
const PROMPT: &str = "```console\n$ tidegate ";

/// Runs a command line in the repository's root, its picture drawn elsewhere; returns what it prints.
fn run(line: &str, pictures: &Path) -> String {
    let drawn = |word: &str| match word.strip_prefix("docs/images/") {
        Some(picture) => pictures.join(picture).display().to_string(),
        None => word.to_owned(),
    };
    let words: Vec<String> = line.split_whitespace().map(drawn).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = command(&words).current_dir(repository(".")).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The page with each command's output as it is.
fn with_outputs(page: &str, pictures: &Path) -> String {
    let mut parts = page.split(PROMPT);
    let mut fresh = parts.next().unwrap().to_owned();
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let line = block.lines().next().unwrap();
        fresh += &format!("{PROMPT}{line}\n{}```{rest}", run(line, pictures));
    }
    fresh
}

#[test]
fn the_page_shows_what_the_program_prints_and_draws() {
    let files = Files::new();
    let pictures = Path::new(&files.path("")).to_owned();
    let shown = std::fs::read_to_string(repository(PAGE)).unwrap();
    let fresh = with_outputs(&shown, &pictures);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(repository(PAGE), &fresh).unwrap();
        for picture in pictures.read_dir().unwrap().map(|entry| entry.unwrap()) {
            std::fs::copy(picture.path(), repository("docs/images").join(picture.file_name())).unwrap();
        }
        return;
    }
    for (shown, fresh) in shown.lines().zip(fresh.lines()) {
        assert_eq!(shown, fresh, "docs/algorithms.md is out of date (UPDATE_DOCS=1 writes it anew)");
    }
    assert_eq!(shown.lines().count(), fresh.lines().count(), "docs/algorithms.md is out of date");
    let drawn = pictures.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let drawn: Vec<String> = drawn.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(drawn.len(), 5, "{drawn:?}");
    for picture in drawn {
        let shown = std::fs::read_to_string(repository("docs/images").join(&picture)).unwrap();
        assert!(
            shown == files.read(&picture),
            "docs/images/{picture} is out of date (UPDATE_DOCS=1 draws it anew)"
        );
    }
}

#[test]
fn the_page_speaks_of_every_algorithm_and_its_pictures_exist() {
    let page = std::fs::read_to_string(repository(PAGE)).unwrap();
    for algorithm in tidegate::Algorithm::ALL {
        assert!(page.contains(&format!("\n## `{algorithm}`\n")), "{algorithm}");
    }
    let pictures = page.split("](images/").skip(1).map(|rest| rest.split(')').next().unwrap());
    for picture in pictures {
        assert!(repository("docs/images").join(picture).is_file(), "{picture}");
    }
}

#[test]
fn the_page_configures_limits_that_can_be_configured() {
    let page = std::fs::read_to_string(repository(PAGE)).unwrap();
    let limits: Vec<&str> = page.lines().filter(|line| line.starts_with("- {algorithm: ")).collect();
    assert_eq!(limits.len(), 6);
    for limit in limits {
        let file = format!("policies:\n  api:\n    limits:\n      {limit}\n");
        tidegate_server::config::Config::parse(&file, "page").unwrap();
    }
}
