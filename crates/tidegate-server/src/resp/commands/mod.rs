//! From a command's words to its reply.

mod client;
mod connection;
mod describe;
mod info;
mod keys;
mod policy;
mod table;
mod throttle;
mod units;

use tidegate::Timestamp;

use super::door::Door;
use super::parse::Args;
use super::reply::Reply;
use super::run::Run;
use super::session::{Rank, Session};
use crate::store::{Later, LaterEach};
pub(super) use connection::rank_at_first;
pub(super) use policy::tell;
use table::{COMMANDS, Spec};
pub(super) use throttle::answer as tell_throttle;

/// What a command may look at and change.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) door: &'a Door,
    pub(super) session: &'a mut Session,
    pub(super) reply: Reply<'a>,
    /// The instant of the batch that the command is in.
    pub(super) now: Timestamp,
    pub(super) batch: &'a mut Batch,
    /// Checks that are not decided yet.
    pub(super) run: &'a mut Run,
    /// Whether the client hears the reply to a check.
    pub(super) is_heard: bool,
}

/// What was done since the last read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Commands begun.
    pub(super) commands: u64,
    /// Decisions made, looks not among them.
    pub(super) decisions: u64,
}

/// What becomes of the connection after a command.
pub(super) enum Then {
    GoOn,
    Close,
    /// Nothing was done: first the run of checks has to be decided, for what comes now is no part of it.
    AfterRun,
    /// The store is at work.
    Wait(Awaited),
}

/// What the store has yet to answer.
pub(super) enum Awaited {
    /// The run, which it is to be told of.
    Run(LaterEach),
    /// How many keys it forgot, and whether the client hears it.
    Count(Later<u64>, bool),
}

/// Carries out one command.
pub(super) fn carry_out(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some(name) = args.get(0) else { return Then::GoOn };
    let spec = COMMANDS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name));
    let rank = context.session.rank;
    let fits = |spec: &&Spec| spec.rank <= rank && (spec.words.0..=spec.words.1).contains(&args.len());
    if !context.run.is_empty() && !spec.filter(fits).is_some_and(|spec| spec.joins) {
        return Then::AfterRun;
    }
    match spec {
        // Whoever is no more than that is not told what there is.
        _ if rank == Rank::Stranger && spec.is_none_or(|spec| spec.rank > rank) => {
            context.reply.error(format_args!("NOAUTH Authentication required."));
        }
        None => unknown(&mut context.reply, name, args),
        Some(spec) if !(spec.words.0..=spec.words.1).contains(&args.len()) => {
            wrong_number(&mut context.reply, &spec.name.to_ascii_lowercase());
        }
        Some(spec) if spec.rank > rank => not_admin(context, spec),
        Some(spec) => return (spec.run)(context, args),
    }
    Then::GoOn
}

/// Tells what is wrong with a check, in its turn.
fn after_run(context: &mut Context<'_>, tell: impl FnOnce(&mut Context<'_>)) -> Then {
    if !context.run.is_empty() {
        return Then::AfterRun;
    }
    tell(context);
    Then::GoOn
}

/// The longest text of a client's that an error repeats, in bytes.
const MOST_REPEATED: usize = 128;

/// A client's bytes as an error repeats them.
fn shown(bytes: &[u8]) -> impl std::fmt::Display + '_ {
    bytes[..bytes.len().min(MOST_REPEATED)].escape_ascii()
}

fn unknown(reply: &mut Reply<'_>, name: &[u8], args: Args<'_>) {
    let mut beginning = String::new();
    for word in args.from(1) {
        if beginning.len() >= MOST_REPEATED {
            break;
        }
        beginning.push_str(&format!("'{}' ", shown(word)));
    }
    let name = shown(name);
    reply.error(format_args!("ERR unknown command '{name}', with args beginning with: {beginning}"));
}

/// Of a command, or of `command|subcommand`.
fn wrong_number(reply: &mut Reply<'_>, of: &str) {
    reply.error(format_args!("ERR wrong number of arguments for '{of}' command"));
}

fn unknown_subcommand(reply: &mut Reply<'_>, command: &str, subcommand: &[u8]) {
    let subcommand = shown(subcommand);
    reply.error(format_args!("ERR unknown subcommand '{subcommand}'. Try {command} HELP."));
}

fn not_admin(context: &mut Context<'_>, spec: &Spec) {
    let name = spec.name;
    match context.door.app().admin_token() {
        Some(_) => context.reply.error(format_args!(
            "NOPERM {name} changes keys by hand: show the admin token first (AUTH admin TOKEN)"
        )),
        None => context.reply.error(format_args!(
            "NOPERM {name} changes keys by hand, which is switched off: start the server with an admin token"
        )),
    }
}
