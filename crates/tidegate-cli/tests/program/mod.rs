//! The program, run as its users run it.
#![allow(clippy::unwrap_used, dead_code, reason = "each test program uses its part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Standard output as one JSON object.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }

    /// The output must have the code 0 and no complaint.
    #[track_caller]
    pub fn fine(self) -> Self {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self
    }

    /// It must have failed so, and said this.
    #[track_caller]
    pub fn failed(self, code: i32, said: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(said), "{said:?} is not in {self:?}");
    }
}

/// Runs the program with `input` on standard input.
pub fn tidegate(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    // Whoever refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    Ran::of(child.wait_with_output().unwrap())
}

/// The program about to run, its outputs caught and no setting of the user's in its way.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TIDEGATE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A directory with files in it, gone with the value.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Self {
        Files(tempfile::tempdir().unwrap())
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
