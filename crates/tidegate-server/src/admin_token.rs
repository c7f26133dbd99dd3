//! The token that switches the admin routes on.

use std::fmt;
use std::hint::black_box;

/// A secret that whoever changes keys' states by hand has to show: 1 to 4096 visible ASCII characters.
///
/// ```
/// use tidegate_server::AdminToken;
/// let token = AdminToken::new("s3cret\n")?;
/// assert!(token.matches(b"s3cret"));
/// assert!(!token.matches(b"s3cre7"));
/// assert_eq!(format!("{token:?}"), "AdminToken(..)");
/// # Ok::<(), tidegate_server::AdminTokenError>(())
/// ```
#[derive(Clone)]
pub struct AdminToken(Box<[u8]>);

/// Why a text is no admin token. The text itself is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminTokenError {
    /// Nothing is left of it without the spaces around it.
    #[error("the admin token is empty (write one line, e.g. from `openssl rand -hex 32`)")]
    Empty,
    /// It could not be sent in a header, or is not one line.
    #[error(
        "the admin token has spaces, line breaks or other than ASCII in it (write one line of visible ASCII)"
    )]
    Unsendable,
    /// Too long to be meant.
    #[error("the admin token is longer than 4096 characters (write a shorter one)")]
    TooLong,
}

impl AdminToken {
    /// A token of this text; spaces and line ends around it do not count.
    ///
    /// # Errors
    /// A text that could not be shown as `Authorization: Bearer TEXT`.
    pub fn new(text: &str) -> Result<Self, AdminTokenError> {
        let text = text.trim();
        match text.len() {
            0 => Err(AdminTokenError::Empty),
            4_097.. => Err(AdminTokenError::TooLong),
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => Err(AdminTokenError::Unsendable),
            _ => Ok(AdminToken(text.as_bytes().into())),
        }
    }

    /// Whether `shown` is the token. How long that takes tells only whether the length was right.
    pub fn matches(&self, shown: &[u8]) -> bool {
        same(&self.0, shown)
    }
}

/// Whether a secret is what is shown. How long that takes tells only whether the length was right.
pub(crate) fn same(secret: &[u8], shown: &[u8]) -> bool {
    let differing = |sum: u8, (a, b): (&u8, &u8)| black_box(sum | (a ^ b));
    secret.len() == shown.len() && secret.iter().zip(shown).fold(0, differing) == 0
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_refused() {
        assert_eq!(AdminToken::new(" \n").unwrap_err(), AdminTokenError::Empty);
        assert_eq!(AdminToken::new("two words").unwrap_err(), AdminTokenError::Unsendable);
        assert_eq!(AdminToken::new("tok\u{e9}n").unwrap_err(), AdminTokenError::Unsendable);
        assert_eq!(AdminToken::new(&"x".repeat(4_097)).unwrap_err(), AdminTokenError::TooLong);
    }

    #[test]
    fn every_byte_counts() {
        let token = AdminToken::new("abcd").unwrap();
        for wrong in ["", "abc", "abcde", "bbcd", "abcD", "ABCD"] {
            assert!(!token.matches(wrong.as_bytes()), "{wrong}");
        }
        assert!(token.matches(b"abcd"));
    }
}
