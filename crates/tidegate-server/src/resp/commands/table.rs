//! All commands there are.

use super::{Context, Then};
use super::{client, connection, describe, info, keys, policy, throttle};
use crate::resp::parse::Args;
use crate::resp::session::Rank;

/// A command.
pub(super) struct Spec {
    /// In capitals.
    pub(super) name: &'static str,
    /// Words it takes, its name included: from, to.
    pub(super) words: (usize, usize),
    pub(super) rank: Rank,
    pub(super) keys: Keys,
    /// Whether it is a check, of those that are decided together.
    pub(super) joins: bool,
    pub(super) arguments: &'static str,
    pub(super) summary: &'static str,
    pub(super) run: fn(&mut Context<'_>, Args<'_>) -> Then,
}

/// Which of a command's words are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    /// The word at this place, the name being at 0.
    At(i64),
    /// All words from this place on.
    From(i64),
}

/// As many words as one likes.
const ANY: usize = usize::MAX;

const fn spec(
    name: &'static str,
    words: (usize, usize),
    arguments: &'static str,
    summary: &'static str,
    run: fn(&mut Context<'_>, Args<'_>) -> Then,
) -> Spec {
    Spec { name, words, rank: Rank::User, keys: Keys::None, joins: false, arguments, summary, run }
}

impl Spec {
    const fn keys(self, keys: Keys) -> Self {
        Spec { keys, ..self }
    }

    const fn joins(self) -> Self {
        Spec { joins: true, ..self }
    }

    const fn rank(self, rank: Rank) -> Self {
        Spec { rank, ..self }
    }
}

/// Every command, those that are in a hurry first.
pub(super) static COMMANDS: [Spec; 20] = [
    spec(
        "CL.THROTTLE",
        (5, 6),
        "key max_burst count period [quantity]",
        "Decides by GCRA under the figures given; quantity 0 looks, a negative one gives back",
        throttle::throttle,
    )
    .keys(Keys::At(1))
    .joins(),
    spec(
        "TG.CHECK",
        (3, 4),
        "policy key [cost]",
        "Decides under a policy, and charges if admitted",
        policy::check,
    )
    .keys(Keys::At(2))
    .joins(),
    spec("TG.PEEK", (3, 3), "policy key", "How a key stands under a policy, changing nothing", policy::peek)
        .keys(Keys::At(2))
        .joins(),
    spec("PING", (1, 2), "[message]", "Answers PONG, or the message", connection::ping),
    spec("TG.CREDIT", (4, 4), "policy key units", "Gives a key units back", policy::credit)
        .keys(Keys::At(2))
        .rank(Rank::Admin),
    spec("TG.RESET", (3, 3), "policy key", "Forgets a key of a policy", policy::reset)
        .keys(Keys::At(2))
        .rank(Rank::Admin),
    spec("DEL", (2, ANY), "key [key]", "Forgets keys of CL.THROTTLE", keys::delete)
        .keys(Keys::From(1))
        .rank(Rank::Admin),
    spec("UNLINK", (2, ANY), "key [key]", "Forgets keys of CL.THROTTLE", keys::delete)
        .keys(Keys::From(1))
        .rank(Rank::Admin),
    spec("DBSIZE", (1, 1), "", "Keys held, of policies and of CL.THROTTLE", keys::size),
    spec("ECHO", (2, 2), "message", "Answers the message", connection::echo),
    spec("TIME", (1, 1), "", "The time decisions are made at: seconds and microseconds", info::time),
    spec(
        "HELLO",
        (1, ANY),
        "[protover] [AUTH username password] [SETNAME name]",
        "Chooses the version of the protocol",
        connection::hello,
    )
    .rank(Rank::Stranger),
    spec("AUTH", (2, 3), "[username] password", "Shows the password, or the admin token", connection::auth)
        .rank(Rank::Stranger),
    spec("SELECT", (2, 2), "index", "Accepts database 0, which is the only one", connection::select),
    spec("QUIT", (1, ANY), "", "Closes the connection", connection::quit).rank(Rank::Stranger),
    spec("RESET", (1, 1), "", "Begins the session anew", connection::reset).rank(Rank::Stranger),
    spec("CLIENT", (2, ANY), "subcommand [argument]", "About this connection", client::client),
    spec("INFO", (1, ANY), "[section]", "About this server", info::info),
    spec("CONFIG", (2, ANY), "GET pattern", "A few settings that clients ask for", info::config),
    spec("COMMAND", (1, ANY), "[COUNT|DOCS|INFO|LIST] [command]", "These commands", describe::command),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_there_once_and_says_what_it_does() {
        for spec in &COMMANDS {
            let same = COMMANDS.iter().filter(|other| other.name == spec.name).count();
            assert_eq!((same, spec.name.to_ascii_uppercase().as_str()), (1, spec.name));
            assert!(!spec.summary.is_empty() && spec.words.0 <= spec.words.1);
        }
    }
}
