//! Where a trace comes from, and how much of it is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

/// Where a trace comes from: a file, or `-` for standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePath(PathBuf);

/// A trace opened, and the bar that follows its reading, hidden unless it is worth looking at.
pub struct OpenTrace {
    /// What to read.
    pub input: Box<dyn BufRead>,
    /// How far it has been read.
    pub progress: Progress,
}

/// A bar on standard error.
#[derive(Debug, Clone)]
pub struct Progress(ProgressBar);

/// Files shorter than this are decided before a bar could be read.
const LONG_BYTES: u64 = 16 << 20;
const BUFFER_BYTES: usize = 256 << 10;

impl TracePath {
    /// From what the command line says.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        TracePath(path.into())
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        if self.is_stdin() { "standard input".to_owned() } else { self.0.display().to_string() }
    }

    /// Whether writing to `out` would overwrite the trace, under whatever name.
    pub fn is_same_file(&self, out: &Path) -> bool {
        let trace = if self.is_stdin() { Identity::of_stdin() } else { Identity::of(&self.0) };
        trace.is_some() && trace == Identity::of(out)
    }

    /// Opens it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(&self) -> io::Result<OpenTrace> {
        if self.is_stdin() {
            let mut input = BufReader::new(io::stdin());
            refuse_compressed(&mut input, "FILE")?;
            return Ok(OpenTrace { input: Box::new(input), progress: Progress::hidden() });
        }
        let file = File::open(&self.0)?;
        let about = file.metadata()?;
        let progress = match about.len() {
            bytes if about.is_file() && bytes >= LONG_BYTES && io::stderr().is_terminal() => {
                Progress::of(bytes)
            }
            _ => Progress::hidden(),
        };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, progress.0.wrap_read(file));
        refuse_compressed(&mut input, &self.name())?;
        Ok(OpenTrace { input: Box::new(input), progress })
    }

    fn is_stdin(&self) -> bool {
        self.0.as_os_str() == "-"
    }
}

/// Logs are often kept compressed: better told at once than as millions of bad lines.
fn refuse_compressed(input: &mut impl BufRead, name: &str) -> io::Result<()> {
    // What cannot be read is told when it is to be read.
    let Ok(began) = input.fill_buf() else { return Ok(()) };
    let formats: [(&[u8], &str, &str); 4] = [
        (&[0x1f, 0x8b], "gzip", "zcat"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstdcat"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "xz", "xzcat"),
        (b"BZh", "bzip2", "bzcat"),
    ];
    match formats.iter().find(|(magic, ..)| began.starts_with(magic)) {
        Some((_, format, cat)) => {
            Err(io::Error::other(format!("it is compressed by {format} ({cat} {name} | tidegate ... -)")))
        }
        None => Ok(()),
    }
}

/// Which file it is: one file may have many names, by links of both kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(WhichFile);

#[cfg(unix)]
type WhichFile = (u64, u64);
#[cfg(not(unix))]
type WhichFile = PathBuf;

#[cfg(unix)]
impl Identity {
    /// Of the plain file at `path`; `None` if there is none.
    pub fn of(path: &Path) -> Option<Self> {
        Self::of_file(&std::fs::metadata(path).ok()?)
    }

    fn of_stdin() -> Option<Self> {
        use std::os::fd::AsFd;
        let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
        Self::of_file(&File::from(stdin).metadata().ok()?)
    }

    fn of_file(about: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        about.is_file().then(|| Identity((about.dev(), about.ino())))
    }
}

#[cfg(not(unix))]
impl Identity {
    /// Of the plain file at `path`; `None` if there is none.
    pub fn of(path: &Path) -> Option<Self> {
        path.canonicalize().ok().filter(|path| path.is_file()).map(Identity)
    }

    fn of_stdin() -> Option<Self> {
        None
    }
}

impl Progress {
    fn hidden() -> Self {
        Progress(ProgressBar::hidden())
    }

    fn of(bytes: u64) -> Self {
        let bar = ProgressBar::new(bytes);
        let template = "{wide_bar} {binary_bytes}/{binary_total_bytes} {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress(bar)
    }

    /// Writes a line to standard error, out of the bar's way.
    pub fn tell(&self, line: &str) {
        self.0.suspend(|| {
            // If nobody can be told, the exit code and the summary still tell.
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{line}\n"));
        });
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
