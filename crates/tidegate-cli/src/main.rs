//! `tidegate`: serve, validate, replay, compare and convert rate limits.

mod environment;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tidegate_cli::{Failure, compare, convert, replay, serve, validate};

/// Each answer is made of many small pieces that live for microseconds, which this one is faster at than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
Examples:
  tidegate serve                                      decide over HTTP, on 127.0.0.1:8080
  tidegate validate tidegate.yaml                     what does this configuration mean?
  tidegate replay access.jsonl                        what would the built-in policy have denied?
  tidegate replay --config tidegate.yaml --decisions decisions.jsonl access.jsonl
  tidegate compare --scenario window-edge             which algorithm should it be?
  tidegate convert ratelimit/config                   from envoyproxy/ratelimit

`tidegate COMMAND --help` tells all about a command; `-h` is the short of it.

Exit codes:
  0  done
  1  it could not be done: something cannot be read, written, listened on or reached; for `validate`: the file is wrong
  2  wrong usage, or a configuration that is wrong or cannot be read";

/// Exact rate limits: decide, for each client and each request, whether the work may go ahead now
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_long_help = HELP)]
struct Tidegate {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Validate(validate::ValidateArgs),
    Replay(replay::ReplayArgs),
    Compare(compare::CompareArgs),
    Convert(convert::ConvertArgs),
}

fn main() -> ExitCode {
    let asked = match Tidegate::try_parse() {
        Ok(asked) => asked,
        Err(error) => {
            let _ = error.print();
            if let Some(hint) = environment::hint(&error, Tidegate::command()) {
                eprintln!("{hint}");
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let done: Result<(), Failure> = match asked.command {
        Command::Serve(args) => serve::run(&args),
        Command::Validate(args) => return validate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Convert(args) => convert::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
