//! Where a trace comes from, and how much of it is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// A bar on standard error, for how much of a trace has been decided.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
    /// The bytes of the file that have been read.
    read: Arc<AtomicU64>,
}

/// Where a trace is decided, and so how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// In memory.
    Memory,
    /// In a store that is asked over a connection.
    Store,
}

impl Pace {
    /// Files shorter than this are decided before a bar could be read.
    const fn long_bytes(self) -> u64 {
        match self {
            Pace::Memory => 16 << 20,
            Pace::Store => 1 << 20,
        }
    }
}

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

    /// Opens it, to be decided at this pace.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(&self, pace: Pace) -> io::Result<OpenTrace> {
        if self.is_stdin() {
            let mut input = BufReader::new(io::stdin());
            refuse_compressed(&mut input, "FILE")?;
            return Ok(OpenTrace { input: Box::new(input), progress: Progress::hidden() });
        }
        let file = File::open(&self.0)?;
        let about = file.metadata()?;
        let progress = match about.len() {
            bytes if about.is_file() && bytes >= pace.long_bytes() && io::stderr().is_terminal() => {
                Progress::of(bytes)
            }
            _ => Progress::hidden(),
        };
        let mut input =
            BufReader::with_capacity(BUFFER_BYTES, Counted { file, read: Arc::clone(&progress.read) });
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
        Progress { bar: ProgressBar::hidden(), read: Arc::default() }
    }

    fn of(bytes: u64) -> Self {
        let bar = ProgressBar::new(bytes);
        let template = "{wide_bar} {binary_bytes}/{binary_total_bytes} {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress { bar, read: Arc::default() }
    }

    /// Shows that so many lines have been decided of those that have been read. A trace may be read long before it is
    /// decided, to be put in order.
    pub fn follow(&self, decided: u64, lines_read: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_position(share(self.read.load(Ordering::Relaxed), decided, lines_read));
        }
    }

    /// Writes a line to standard error, out of the bar's way.
    pub fn tell(&self, line: &str) {
        self.bar.suspend(|| {
            // If nobody can be told, the exit code and the summary still tell.
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{line}\n"));
        });
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// About how many of `bytes` the lines take that have been decided.
fn share(bytes: u64, decided: u64, lines_read: u64) -> u64 {
    let bytes = u128::from(bytes) * u128::from(decided) / u128::from(lines_read.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A file that tells how much of it has been read.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_has_been_decided_not_what_has_been_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789\n".repeat(100)).unwrap();
        let OpenTrace { mut input, progress } = TracePath::new(file.path()).open(Pace::Store).unwrap();
        let shown = |decided, lines| share(progress.read.load(Ordering::Relaxed), decided, lines);
        assert_eq!(input.read_to_end(&mut Vec::new()).unwrap(), 1_100);
        assert_eq!([0, 1, 50, 100].map(|decided| shown(decided, 100)), [0, 11, 550, 1_100]);
        assert_eq!(share(0, 0, 0), 0);
        assert_eq!(share(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert!(progress.bar.is_hidden(), "no terminal, no bar");
    }
}
