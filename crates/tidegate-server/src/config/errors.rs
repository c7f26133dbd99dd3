//! What is wrong with a file: all of it, each with its line.

use std::fmt;

/// Errors kept of one file; the rest is only counted.
const MOST_ERRORS: usize = 1_000;

/// Where in the file; lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Place {
    pub(super) const START: Place = Place { line: 1, column: 1 };
}

/// One thing wrong: where it stands, what was written, the rule it breaks and how to mend it.
///
/// Shown without the file's name and line: `policies.api.limits[0].limit: 1.7: not a whole number (write 1 or
/// 2)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    place: Place,
    path: String,
    value: Option<String>,
    fault: Fault,
}

/// The rule broken and the mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub(super) rule: String,
    pub(super) mend: String,
}

impl Fault {
    /// A rule that was broken, and what to write instead.
    pub fn new(rule: impl Into<String>, mend: impl Into<String>) -> Self {
        Fault { rule: rule.into(), mend: mend.into() }
    }

    /// The rule that was broken.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What to write instead.
    pub fn mend(&self) -> &str {
        &self.mend
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule, self.mend)
    }
}

impl std::error::Error for Fault {}

impl ConfigError {
    /// Where it stands.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The way from the file's top to the value, as in `policies.api.limits[0].refill`; empty for the file
    /// as a whole.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value as it is written, if it is one that fits a line.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The rule that was broken.
    pub fn rule(&self) -> &str {
        &self.fault.rule
    }

    /// What to write instead.
    pub fn mend(&self) -> &str {
        &self.fault.mend
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value}: ")?;
        }
        self.fault.fmt(f)
    }
}

/// Everything wrong with one file, in the file's order: never empty.
///
/// Shown a line each: `tidegate.yaml:7: policies.api.limits[0].refill: "10/sek": unknown unit "sek" (use us,
/// ms, s, min, h, d, w)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    file: String,
    errors: Vec<ConfigError>,
    more: usize,
}

impl ConfigErrors {
    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The errors, the first thousand if there are more.
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// How many there are in all.
    pub fn count(&self) -> usize {
        self.errors.len() + self.more
    }

    /// A file that cannot be read as a tree at all.
    pub(super) fn broken(file: &str, place: Place, fault: Fault) -> Self {
        let error = ConfigError { place, path: String::new(), value: None, fault };
        ConfigErrors { file: file.to_owned(), errors: vec![error], more: 0 }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            write!(f, "{newline}{}:{}: {error}", self.file, error.place.line)?;
        }
        if self.more > 0 {
            write!(f, "\n{}: and {} more", self.file, self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Where a value stands and how it reads, kept beside it for what is found wrong later.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub place: Place,
    pub path: String,
    pub written: Option<String>,
}

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    errors: Vec<ConfigError>,
    more: usize,
}

impl Problems {
    pub fn add(&mut self, site: &Site, fault: Fault) {
        if self.only_count() {
            return;
        }
        let Site { place, path, written } = site.clone();
        self.errors.push(ConfigError { place, path, value: written, fault });
    }

    /// Counts one that need not be composed, if enough are kept; `false` if it has to be added.
    pub fn only_count(&mut self) -> bool {
        let full = self.errors.len() == MOST_ERRORS;
        self.more += usize::from(full);
        full
    }

    pub fn none(&self) -> bool {
        self.errors.is_empty()
    }

    /// All of them as one error, in the order of the file.
    pub fn into_errors(mut self, file: &str) -> ConfigErrors {
        self.errors.sort_by_key(ConfigError::place);
        ConfigErrors { file: file.to_owned(), errors: self.errors, more: self.more }
    }
}

/// Characters of a value shown in an error, and of a sentence.
const MOST_OF_A_VALUE: usize = 60;
const MOST_OF_A_SENTENCE: usize = 200;

/// `text` as it stands, control characters escaped, cut where it would fill the line.
pub(super) fn shortened(text: &str) -> String {
    printable(text, MOST_OF_A_VALUE)
}

/// A sentence that others wrote, made fit for one line.
pub(super) fn sentence(text: &str) -> String {
    printable(text, MOST_OF_A_SENTENCE)
}

/// `text` in quotes, cut where it would fill the line.
pub(super) fn quoted(text: &str) -> String {
    let (text, dots) = cut(text, MOST_OF_A_VALUE);
    format!("{text:?}{dots}")
}

fn printable(text: &str, most: usize) -> String {
    let (text, dots) = cut(text, most);
    let mut shown = String::with_capacity(text.len() + dots.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown + dots
}

fn cut(text: &str, most: usize) -> (&str, &'static str) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], "..."),
        None => (text, ""),
    }
}
