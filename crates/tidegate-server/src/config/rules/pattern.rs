//! Texts with a `*` at an end.

/// A text to compare with, or what it begins with, ends in or contains: `/v1/*`, `*.png`, `*admin*`; `*` is
/// anything.
///
/// ```
/// use tidegate_server::config::Pattern;
/// assert!(Pattern::new("/v1/*").fits(b"/v1/orders"));
/// assert!(!Pattern::new("/v1/*").fits(b"/v1"));
/// assert!(Pattern::new("*.example.com").fits(b"api.example.com"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    open_start: bool,
    open_end: bool,
}

impl Pattern {
    /// The pattern that `text` writes. A `*` anywhere but at its ends stands for itself.
    pub fn new(text: &str) -> Self {
        let (open_start, rest) = text.strip_prefix('*').map_or((false, text), |rest| (true, rest));
        // A single star is both.
        let (open_end, rest) = match rest.strip_suffix('*') {
            Some(rest) => (true, rest),
            None => (text == "*", rest),
        };
        Pattern { text: rest.to_owned(), open_start, open_end }
    }

    /// Whether `value` is one of those meant.
    pub fn fits(&self, value: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match (self.open_start, self.open_end) {
            (false, false) => value == text,
            (false, true) => value.starts_with(text),
            (true, false) => value.ends_with(text),
            (true, true) => memchr::memmem::find(value, text).is_some(),
        }
    }

    /// What stands between the stars.
    pub(super) fn fixed(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let star = |open: bool| if open { "*" } else { "" };
        let end = star(self.open_end && !(self.open_start && self.text.is_empty()));
        write!(f, "{}{}{end}", star(self.open_start), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_open_at_its_end() {
        for (pattern, fitting, others) in [
            ("/v1/*", &["/v1/", "/v1/a", "/v1/a/b"][..], &["/v1", "/v10", "/a/v1/"][..]),
            ("/v1", &["/v1"], &["/v1/", "/v", "/V1"]),
            ("*.png", &[".png", "/a.png"], &["/a.png/b", "/png"]),
            ("*admin*", &["admin", "/admin/x", "/x/admin"], &["/adm/in"]),
            ("*", &["", "/"], &[]),
            ("**", &["", "/"], &[]),
            ("/a*b", &["/a*b"], &["/ab", "/axb"]),
        ] {
            for value in fitting {
                assert!(Pattern::new(pattern).fits(value.as_bytes()), "{pattern} {value}");
            }
            for value in others {
                assert!(!Pattern::new(pattern).fits(value.as_bytes()), "{pattern} {value}");
            }
        }
        for pattern in ["/v1/*", "/v1", "*.png", "*admin*", "*"] {
            assert_eq!(Pattern::new(pattern).to_string(), pattern);
        }
    }
}
