//! `COMMAND`: what there is to ask for, for clients that complete and for those that route.

use super::client::upper;
use super::table::{COMMANDS, Keys, Spec};
use super::units::amount;
use super::{Context, Then, unknown_subcommand};
use crate::resp::parse::Args;
use crate::resp::reply::Reply;
use crate::resp::session::Rank;

/// `COMMAND [COUNT | LIST | DOCS [name ...] | INFO [name ...]]`.
pub(super) fn command(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let reply = &mut context.reply;
    let Some(subcommand) = args.get(1) else {
        reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|spec| entry(reply, spec));
        return Then::GoOn;
    };
    let mut word = [0; 16];
    match upper(subcommand, &mut word) {
        b"COUNT" => reply.integer(amount(COMMANDS.len() as u64)),
        b"LIST" => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| name(reply, spec));
        }
        b"DOCS" => {
            let asked = |spec: &&Spec| args.len() == 2 || args.from(2).any(|word| is(word, spec));
            let found = || COMMANDS.iter().filter(asked);
            reply.map(found().count());
            found().for_each(|spec| docs(reply, spec));
        }
        b"INFO" if args.len() == 2 => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| entry(reply, spec));
        }
        b"INFO" => {
            reply.array(args.len() - 2);
            for word in args.from(2) {
                match COMMANDS.iter().find(|spec| is(word, spec)) {
                    Some(spec) => entry(reply, spec),
                    None => reply.null(),
                }
            }
        }
        _ => unknown_subcommand(reply, "COMMAND", subcommand),
    }
    Then::GoOn
}

fn is(word: &[u8], spec: &Spec) -> bool {
    word.eq_ignore_ascii_case(spec.name.as_bytes())
}

fn name(reply: &mut Reply<'_>, spec: &Spec) {
    reply.bulk(spec.name.to_ascii_lowercase().as_bytes());
}

/// The ten fields of a command as Redis tells them.
fn entry(reply: &mut Reply<'_>, spec: &Spec) {
    let (least, most) = spec.words;
    let least = amount(least as u64);
    let (first, last, step) = match spec.keys {
        Keys::None => (0, 0, 0),
        Keys::At(place) => (place, place, 1),
        Keys::From(place) => (place, -1, 1),
    };
    reply.array(10);
    name(reply, spec);
    reply.integer(if spec.words.0 == most { least } else { -least });
    match spec.keys {
        Keys::None => reply.array(0),
        _ => {
            reply.array(2);
            reply.word("write");
            reply.word("fast");
        }
    }
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    // Categories, tips, key specifications, subcommands.
    (0..4).for_each(|_| reply.array(0));
}

fn docs(reply: &mut Reply<'_>, spec: &Spec) {
    let group = match (spec.keys, spec.rank) {
        (Keys::None, Rank::Stranger) => "connection",
        (Keys::None, _) => "server",
        _ => "rate-limit",
    };
    name(reply, spec);
    reply.map(4);
    for (field, value) in [("summary", spec.summary), ("since", "0.1.0"), ("group", group)] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"arguments");
    let arguments = || arguments(spec.arguments);
    reply.array(arguments().count());
    for argument in arguments() {
        let optional = argument.starts_with('[');
        reply.map(if optional { 3 } else { 2 });
        for (field, value) in [("name", argument.trim_matches(['[', ']'])), ("type", "string")] {
            reply.bulk(field.as_bytes());
            reply.bulk(value.as_bytes());
        }
        if optional {
            reply.bulk(b"flags");
            reply.array(1);
            reply.word("optional");
        }
    }
}

/// The arguments of a syntax, each optional one with its brackets.
fn arguments(syntax: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = syntax;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let end = match rest.starts_with('[') {
            true => rest.find(']').map_or(rest.len(), |at| at + 1),
            false => rest.find(' ').unwrap_or(rest.len()),
        };
        let (argument, behind) = rest.split_at(end);
        rest = behind;
        Some(argument).filter(|argument| !argument.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_is_taken_apart() {
        let all: Vec<_> = arguments("key max_burst [quantity] [AUTH user pass]").collect();
        assert_eq!(all, ["key", "max_burst", "[quantity]", "[AUTH user pass]"]);
        assert_eq!(arguments("").count(), 0);
    }
}
