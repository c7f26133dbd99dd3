//! A proxy's process and its files.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running proxy in a folder of its own; it ends with its test.
pub struct Process {
    child: Child,
    folder: TempDir,
}

impl Process {
    /// Runs the program that `variable` names, in `folder`.
    pub fn start(variable: &str, arguments: &[&str], folder: TempDir) -> Self {
        let program = std::env::var_os(variable).map(PathBuf::from).unwrap_or_else(|| {
            panic!("{variable} names no program: run `cargo xtask test proxies`, which gets and names it")
        });
        let log = || File::options().create(true).append(true).open(folder.path().join("said")).unwrap();
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap();
        Process { child, folder }
    }

    /// What it printed so far.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The files that a page of docs/gateways shows: the blocks that have a name behind their language.
pub fn files(page: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateways").join(page);
    let page = fs::read_to_string(path).unwrap();
    let mut files = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (info, text) = block.split_once('\n').unwrap();
        if let Some((_, name)) = info.split_once(' ') {
            files.push((name.to_owned(), format!("{text}\n")));
        }
    }
    files
}
