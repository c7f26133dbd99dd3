//! The password of this door.

use std::fmt;

use crate::admin_token::same;

/// What clients have to show by `AUTH` before they may give commands: 1 to 512 bytes.
///
/// ```
/// use tidegate_server::resp::Password;
/// let password = Password::new("hunter2")?;
/// assert_eq!(format!("{password:?}"), "Password(..)");
/// assert!(Password::new("").is_err());
/// # Ok::<(), tidegate_server::resp::PasswordError>(())
/// ```
#[derive(Clone)]
pub struct Password(Box<[u8]>);

/// Why a text is no password. The text itself is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the RESP password has {bytes} bytes: it has to have 1 to {MOST_BYTES}")]
pub struct PasswordError {
    bytes: usize,
}

const MOST_BYTES: usize = 512;

impl Password {
    /// A password of this text, as it is.
    ///
    /// # Errors
    /// An empty one, or one of more than 512 bytes.
    pub fn new(text: &str) -> Result<Self, PasswordError> {
        match text.len() {
            1..=MOST_BYTES => Ok(Password(text.as_bytes().into())),
            bytes => Err(PasswordError { bytes }),
        }
    }

    /// Whether `shown` is the password. How long that takes tells only whether the length was right.
    pub(super) fn matches(&self, shown: &[u8]) -> bool {
        same(&self.0, shown)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}
