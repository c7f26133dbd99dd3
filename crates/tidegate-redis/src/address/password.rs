//! Passwords, which nobody gets to see by accident.

use std::fmt;
use std::path::PathBuf;

use super::percent;

/// Who we say we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: Password,
}

/// Where the password is.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) enum Password {
    /// None is asked for.
    #[default]
    None,
    /// In the address.
    Given(String),
    /// In a variable of the environment.
    Variable(String),
    /// In a file, of which a last line end is not part.
    File(PathBuf),
}

impl Password {
    /// The password as it is now: a file may change between two connections. In the address the settings that say
    /// where it is begin with `whose`.
    pub(crate) fn read(&self, whose: &str) -> Result<Option<String>, String> {
        match self {
            Self::None => Ok(None),
            Self::Given(password) => Ok(Some(password.clone())),
            Self::Variable(name) => match std::env::var(name) {
                Ok(password) => Ok(Some(password)),
                Err(_) => {
                    Err(format!("{whose}password_env={name}: no such variable, or not UTF-8 (set {name})"))
                }
            },
            Self::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => match text.trim_end_matches(['\r', '\n']) {
                    "" => Err(format!(
                        "{whose}password_file={}: the file is empty (write the password into it)",
                        path.display()
                    )),
                    password => Ok(Some(password.to_owned())),
                },
                Err(error) => {
                    Err(format!("{whose}password_file={}: {error} (make it readable)", path.display()))
                }
            },
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Given(_) => f.write_str("Given(***)"),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl fmt::Display for Credentials {
    /// What stands before the hosts, `user:***@`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_deref().map(percent::encode).unwrap_or_default();
        match &self.password {
            Password::Given(_) => write!(f, "{user}:***@"),
            _ if self.user.is_some() => write!(f, "{user}@"),
            _ => Ok(()),
        }
    }
}

impl Credentials {
    /// What stands in the query, by these names: of the user, of the variable, of the file.
    pub(super) fn query(&self, names: [&'static str; 3]) -> Vec<(&'static str, String)> {
        let [user, variable, file] = names;
        let user = self.user.clone().filter(|_| !user.is_empty()).map(|name| (user, name));
        let password = match &self.password {
            Password::None | Password::Given(_) => None,
            Password::Variable(name) => Some((variable, name.clone())),
            Password::File(path) => Some((file, path.to_string_lossy().into_owned())),
        };
        user.into_iter().chain(password).collect()
    }
}
