//! The files of a folder, read in the order of their names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tidegate::PolicySet;

use super::super::super::checked::{LoadError, MAX_FILE_BYTES, text_of};
use super::super::super::errors::{ConfigErrors, Problems};
use super::super::super::reader::Cursor;
use super::super::super::yaml;
use super::Translated;
use super::check::Translation;
use super::names::Names;
use super::raw::RawFile;

/// Where files written for envoyproxy/ratelimit are, and how they are put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatelimitFiles {
    path: PathBuf,
    merge: bool,
}

impl RatelimitFiles {
    /// The `.yaml` and `.yml` files of the folder at `path`, or the file there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        RatelimitFiles { path: path.into(), merge: false }
    }

    /// Lets several files have one domain, as `MERGE_DOMAIN_CONFIG` does.
    #[must_use]
    pub fn merged(self, merge: bool) -> Self {
        RatelimitFiles { merge, ..self }
    }

    /// The folder, or the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and checks all of them. Policies are named other than those there are `besides`.
    ///
    /// # Errors
    /// A folder without such files, one that cannot be read, and all that is wrong with the first that is.
    pub fn load(&self, besides: &PolicySet) -> Result<Translated, LoadError> {
        let names = Names::besides(besides.iter().map(|policy| policy.name()));
        let mut translation = Translation::new(names);
        for path in self.files()? {
            let file = path.display().to_string();
            let unreadable = |source| LoadError::Unreadable { file: file.clone(), source };
            let mut bytes = Vec::new();
            // One byte past what is allowed is enough to know that it is too much.
            let most = MAX_FILE_BYTES as u64 + 1;
            File::open(&path)
                .and_then(|content| content.take(most).read_to_end(&mut bytes))
                .map_err(unreadable)?;
            read(&mut translation, &bytes, &file, self.merge)?;
        }
        Ok(translation.done())
    }

    fn files(&self) -> Result<Vec<PathBuf>, LoadError> {
        let unreadable = |source| LoadError::Unreadable { file: self.path.display().to_string(), source };
        if !self.path.is_dir() {
            return Ok(vec![self.path.clone()]);
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            // A mounted ConfigMap keeps its versions in folders that begin with a dot.
            if is_yaml(&path) && path.is_file() {
                files.push(path);
            }
        }
        if files.is_empty() {
            let rule = "no .yaml file is in this folder (name the folder that holds them)";
            return Err(unreadable(io::Error::other(rule)));
        }
        files.sort();
        Ok(files)
    }
}

fn is_yaml(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !hidden && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Reads one file, any bytes: the entry for fuzzing.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(bytes: &[u8], file: &str) -> Result<Translated, ConfigErrors> {
    let mut translation = Translation::new(Names::default());
    read(&mut translation, bytes, file, false)?;
    Ok(translation.done())
}

fn read(translation: &mut Translation, bytes: &[u8], file: &str, merge: bool) -> Result<(), ConfigErrors> {
    let text = text_of(bytes, file)?;
    let root = yaml::parse(text).map_err(|broken| ConfigErrors::broken(file, broken.place, broken.fault))?;
    let mut problems = Problems::default();
    let root = Cursor::root(&root);
    if let Some(raw) = RawFile::read(&root, &mut problems) {
        translation.add(&raw, file, merge, &mut problems);
    }
    match problems.none() {
        true => Ok(()),
        false => Err(problems.into_errors(file)),
    }
}
