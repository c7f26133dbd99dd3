//! The command: files in, files out.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tidegate_server::config::Config;

use super::args::Format;
use super::{News, ReplayArgs, ReplayError, Replayer, Summary, replay, report};
use crate::failure::{Failure, print};
use crate::store;
use crate::trace::{Identity, OpenTrace, Trace, TracePath};

/// Runs `tidegate replay`.
///
/// # Errors
/// As its help says.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let replayer = replayer(args)?;
    let path = TracePath::new(&args.trace);
    let OpenTrace { input, progress } = path
        .open(replayer.pace())
        .map_err(|error| Failure::run(format_args!("cannot open {}: {error}", path.name())))?;
    let create = |out| Decisions::create(out, &path, args.config.as_deref());
    let mut decisions = args.decisions.as_deref().map(create).transpose()?;
    let mut trace = Trace::new(input, args.order(), |name| replayer.resolve(name)).strict(args.strict);
    let out = decisions.as_mut().map(|decisions| &mut *decisions.out as &mut dyn Write);
    let name = path.name();
    let replayed = replay(&mut trace, &replayer, out, &mut |news| match news {
        News::BadLine(bad) => progress.tell(&format!("{name}: {bad}")),
        News::Decided { lines, of } => progress.follow(lines, of),
    });
    progress.finish();
    let summary = replayed.map_err(|error| match (&error, &decisions) {
        (ReplayError::Decisions(cause), Some(decisions)) => decisions.failure(cause),
        _ => Failure::run(format_args!("{name}: {error}")),
    })?;
    if args.strict && summary.bad_lines > 0 {
        return Err(Failure::run(format_args!("{name}: stopped at the first bad line (--strict)")));
    }
    show(args, &name, &summary)
}

fn show(args: &ReplayArgs, name: &str, summary: &Summary) -> Result<(), Failure> {
    let text = match args.format {
        Format::Table => report(name, summary),
        Format::Json => serde_json::to_string_pretty(summary).map_err(Failure::run)? + "\n",
    };
    if args.decisions.as_deref().is_some_and(is_stdout) {
        // The decisions are what was asked for; if nobody can be told of their sum, they are no worse for it.
        let _ = io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    print(&text)
}

/// The policies of the file, or the built-in one, over the store that the flag names: what the file says of stores is
/// for servers.
fn replayer(args: &ReplayArgs) -> Result<Replayer, Failure> {
    let config = match &args.config {
        Some(file) => Config::load(file).map_err(Failure::usage)?,
        None => Config::default(),
    };
    let (policies, fallback) = (config.policies().clone(), args.policy.as_deref());
    let replayer = match store::apart(args.store.as_deref(), config.store())? {
        Some(store) => Replayer::shared(policies, fallback, store).map_err(|error| store::silent(&error))?,
        None => Replayer::new(policies, fallback),
    };
    replayer.map_err(|error| Failure::usage(format_args!("--policy: {error}")))
}

/// Where decisions go.
struct Decisions {
    out: Box<dyn Write>,
    /// The file's name; `None` for standard output.
    name: Option<String>,
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Decisions {
    const BUFFER_BYTES: usize = 256 << 10;

    fn create(path: &Path, trace: &TracePath, config: Option<&Path>) -> Result<Self, Failure> {
        if is_stdout(path) {
            let out = BufWriter::with_capacity(Self::BUFFER_BYTES, io::stdout());
            return Ok(Decisions { out: Box::new(out), name: None });
        }
        let name = path.display().to_string();
        let is_config = config.and_then(Identity::of).is_some_and(|it| Some(it) == Identity::of(path));
        let read = [(trace.is_same_file(path), "trace"), (is_config, "configuration")];
        if let Some((_, what)) = read.iter().find(|(is_same, _)| *is_same) {
            let rule = format!("is the {what} itself and would be overwritten (name another file)");
            return Err(Failure::usage(format_args!("--decisions: {name} {rule}")));
        }
        let file = File::create(path)
            .map_err(|error| Failure::run(format_args!("cannot write decisions to {name}: {error}")))?;
        let out = BufWriter::with_capacity(Self::BUFFER_BYTES, file);
        Ok(Decisions { out: Box::new(out), name: Some(name) })
    }

    fn failure(&self, cause: &io::Error) -> Failure {
        match &self.name {
            Some(name) => Failure::run(format_args!("cannot write decisions to {name}: {cause}")),
            None => Failure::of_stdout(cause),
        }
    }
}
