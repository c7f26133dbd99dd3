//! Names for policies that have none.

use std::collections::HashSet;

/// Longest name of a policy.
const MOST_BYTES: usize = 128;

/// The names in use.
#[derive(Debug, Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// Takes these as in use.
    pub fn besides<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Names(names.map(str::to_owned).collect())
    }

    /// A name as near as can be to these parts joined by dots, that no other policy has: `edge.tenant_acme.path`, as the
    /// other program names its metrics.
    pub fn make(&mut self, parts: &[String]) -> String {
        let wish = shown(&parts.join("."));
        let mut name = cut(&wish, MOST_BYTES).to_owned();
        let mut count = 1_usize;
        while self.0.contains(&name) {
            count += 1;
            let suffix = format!("~{count}");
            name = format!("{}{suffix}", cut(&wish, MOST_BYTES - suffix.len()));
        }
        self.0.insert(name.clone());
        name
    }
}

/// The name as it can be shown in a header; `None` if it cannot.
pub fn of_limit(name: &str) -> Option<&str> {
    (shown(name) == name && (1..=MOST_BYTES).contains(&name.len())).then_some(name)
}

fn shown(text: &str) -> String {
    text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '_' }).collect()
}

/// All of it is ASCII.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.len().min(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_apart_and_fit_a_header() {
        let mut names = Names::besides(["a.b"].into_iter());
        let mut make =
            |parts: &[&str]| names.make(&parts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(make(&["a", "b"]), "a.b~2");
        assert_eq!(make(&["a", "b"]), "a.b~3");
        assert_eq!(make(&["a", "b~2"]), "a.b~2~2");
        assert_eq!(make(&["é\n", "x"]), "__.x");
        let long = "x".repeat(300);
        assert_eq!(make(&[&long]), "x".repeat(128));
        assert_eq!(make(&[&long]), format!("{}~2", "x".repeat(126)));
        assert_eq!((of_limit("my limit"), of_limit("é"), of_limit("")), (Some("my limit"), None, None));
    }
}
