//! Where a configuration comes from: a file of ours, files of another program, or both.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::checked::{Config, LoadError};
use super::envoy::ratelimit::RatelimitFiles;
use super::remote::AddressRule;

/// The files that are read at the start, and again at each reload.
///
/// ```
/// use tidegate_server::config::Source;
/// let built_in = Source::default();
/// assert!(built_in.is_built_in());
/// assert_eq!(built_in.load().unwrap().policies().len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Source {
    file: Option<PathBuf>,
    ratelimit: Option<RatelimitFiles>,
    addresses: Option<AddressRule>,
}

impl Source {
    /// The configuration file; without one, what is built in.
    pub fn file(file: Option<PathBuf>) -> Self {
        Source { file, ..Source::default() }
    }

    /// And files written for envoyproxy/ratelimit.
    #[must_use]
    pub fn with_ratelimit(self, files: Option<RatelimitFiles>) -> Self {
        Source { ratelimit: files, ..self }
    }

    /// With a closer look at the address of the store that the configuration file names.
    #[must_use]
    pub fn with_addresses(self, addresses: AddressRule) -> Self {
        Source { addresses: Some(addresses), ..self }
    }

    /// Whether no file is read at all.
    pub fn is_built_in(&self) -> bool {
        self.file.is_none() && self.ratelimit.is_none()
    }

    /// Reads and checks all files.
    ///
    /// # Errors
    /// What cannot be read or is wrong, and a domain that both have.
    pub fn load(&self) -> Result<Config, LoadError> {
        let config = match &self.file {
            Some(file) => match self.addresses {
                Some(addresses) => Config::load_with(file, addresses)?,
                None => Config::load(file)?,
            },
            None => Config::default(),
        };
        let Some(files) = &self.ratelimit else { return Ok(config) };
        let translated = files.load(config.policies())?;
        let clash = |reason| LoadError::Clash { file: files.path().display().to_string(), reason };
        config.with_ratelimit(translated).map_err(clash)
    }

    /// Whether they can be read again. A pipe gives its content once, and whoever opens it again waits, perhaps for
    /// ever, and all reloads after.
    ///
    /// # Errors
    /// One that cannot.
    pub(crate) fn require_plain_files(&self) -> Result<(), LoadError> {
        for path in self.paths() {
            let refused = |source| LoadError::Unreadable { file: path.display().to_string(), source };
            let kind = std::fs::metadata(path).map_err(refused)?;
            let folder = Some(path) != self.file.as_deref() && kind.is_dir();
            if !kind.is_file() && !folder {
                let reason = "not a plain file: it cannot be read again (name one)";
                return Err(refused(io::Error::other(reason)));
            }
        }
        Ok(())
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.file.as_deref().into_iter().chain(self.ratelimit.iter().map(RatelimitFiles::path))
    }
}

/// A configuration file.
impl<P: AsRef<Path> + ?Sized> From<&P> for Source {
    fn from(file: &P) -> Self {
        Source::file(Some(file.as_ref().to_owned()))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.paths().enumerate() {
            let and = if index > 0 { " and " } else { "" };
            write!(f, "{and}{}", path.display())?;
        }
        Ok(())
    }
}
