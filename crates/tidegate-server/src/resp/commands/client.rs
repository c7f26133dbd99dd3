//! `CLIENT`: about this connection.

use super::units::amount;
use super::{Context, Then, shown, unknown_subcommand, wrong_number};
use crate::resp::parse::Args;
use crate::resp::reply::Reply;
use crate::resp::session::{Hears, Rank};

/// `CLIENT subcommand [argument ...]`.
pub(super) fn client(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let subcommand = args.get(1).unwrap_or_default();
    let argument = args.get(2);
    let mut word = [0; 16];
    match (upper(subcommand, &mut word), args.len()) {
        (b"ID", 2) => context.reply.integer(amount(context.session.id)),
        (b"GETNAME", 2) => match context.session.name.as_str() {
            "" => context.reply.null(),
            name => context.reply.bulk(name.as_bytes()),
        },
        (b"SETNAME", 3) => {
            if set_name(context, argument.unwrap_or_default()) {
                context.reply.ok();
            }
        }
        (b"SETINFO", 4) => set_info(context, argument.unwrap_or_default(), args.get(3).unwrap_or_default()),
        (b"INFO", 2) | (b"LIST", 2..) => {
            let line = line(context);
            context.reply.text(&line);
        }
        (b"REPLY", 3) => hear(context, argument.unwrap_or_default()),
        (b"NO-EVICT" | b"NO-TOUCH", 3) => switch(&mut context.reply, argument.unwrap_or_default(), true),
        (b"TRACKING", 3..) => switch(&mut context.reply, argument.unwrap_or_default(), false),
        (b"HELP", 2) => help(&mut context.reply),
        (
            known @ (b"ID" | b"GETNAME" | b"SETNAME" | b"SETINFO" | b"INFO" | b"LIST" | b"REPLY"
            | b"NO-EVICT" | b"NO-TOUCH" | b"TRACKING" | b"HELP"),
            _,
        ) => {
            let name = String::from_utf8_lossy(known).to_ascii_lowercase();
            wrong_number(&mut context.reply, &format!("client|{name}"));
        }
        _ => unknown_subcommand(&mut context.reply, "CLIENT", subcommand),
    }
    Then::GoOn
}

/// A word in capitals; one too long for that is none we know.
pub(super) fn upper<'a>(word: &[u8], room: &'a mut [u8; 16]) -> &'a [u8] {
    let Some(room) = room.get_mut(..word.len()) else { return b"" };
    room.copy_from_slice(word);
    room.make_ascii_uppercase();
    room
}

/// The longest name of a client or its library, in bytes.
const MOST_TEXT: usize = 256;

/// Whether a text may be shown in a list of clients: visible ASCII, and not long.
pub(super) fn valid_text(text: &[u8]) -> bool {
    text.len() <= MOST_TEXT && text.iter().all(u8::is_ascii_graphic)
}

pub(super) fn bad_text(reply: &mut Reply<'_>, what: &str) {
    reply.error(format_args!(
        "ERR {what} cannot contain spaces, newlines or special characters, nor more than {MOST_TEXT} bytes."
    ));
}

/// Names this client; if it cannot be, that is told.
pub(super) fn set_name(context: &mut Context<'_>, name: &[u8]) -> bool {
    match valid_text(name) {
        true => context.session.name = String::from_utf8_lossy(name).into_owned(),
        false => bad_text(&mut context.reply, "Client names"),
    }
    valid_text(name)
}

fn set_info(context: &mut Context<'_>, what: &[u8], value: &[u8]) {
    let session = &mut *context.session;
    let (place, name) = if what.eq_ignore_ascii_case(b"LIB-NAME") {
        (&mut session.library, "lib-name")
    } else if what.eq_ignore_ascii_case(b"LIB-VER") {
        (&mut session.library_version, "lib-ver")
    } else {
        let what = shown(what);
        return context.reply.error(format_args!("ERR Unrecognized option '{what}'"));
    };
    if !valid_text(value) {
        return bad_text(&mut context.reply, name);
    }
    *place = String::from_utf8_lossy(value).into_owned();
    context.reply.ok();
}

fn hear(context: &mut Context<'_>, what: &[u8]) {
    let mut word = [0; 16];
    context.session.hears = match upper(what, &mut word) {
        b"ON" => Hears::Everything,
        b"OFF" => Hears::Nothing,
        b"SKIP" => Hears::NotTheNext,
        _ => return syntax_error(&mut context.reply),
    };
    if context.session.hears == Hears::Everything {
        context.reply.ok();
    }
}

/// Something that can be off without a loss, and on only if that is `fine`.
fn switch(reply: &mut Reply<'_>, what: &[u8], fine: bool) {
    let mut word = [0; 16];
    match upper(what, &mut word) {
        b"OFF" => reply.ok(),
        b"ON" if fine => reply.ok(),
        b"ON" => reply.error(format_args!("ERR there is nothing to track: keys hold decisions, not values")),
        _ => syntax_error(reply),
    }
}

fn syntax_error(reply: &mut Reply<'_>) {
    reply.error(format_args!("ERR syntax error"));
}

/// This client, as Redis lists clients.
fn line(context: &Context<'_>) -> String {
    let session = &*context.session;
    let age = context.now.micros_since(session.origin.since) / 1_000_000;
    let user = if session.rank == Rank::Admin { "admin" } else { "default" };
    format!(
        "id={} addr={} laddr={} name={} age={age} idle=0 flags=N db=0 sub=0 psub=0 multi=-1 cmd=client user={user} \
         redir=-1 resp={} lib-name={} lib-ver={}\n",
        session.id,
        session.origin.peer,
        session.origin.local,
        session.name,
        session.protocol.number(),
        session.library,
        session.library_version,
    )
}

fn help(reply: &mut Reply<'_>) {
    const LINES: [&str; 9] = [
        "CLIENT <subcommand> [<arg> ...]. Subcommands are:",
        "ID, INFO, LIST -- this connection (others are not listed)",
        "GETNAME, SETNAME <name>",
        "SETINFO <LIB-NAME|LIB-VER> <value>",
        "REPLY <ON|OFF|SKIP> -- whether replies are sent",
        "NO-EVICT, NO-TOUCH <ON|OFF> -- accepted, without effect",
        "TRACKING OFF -- accepted, without effect",
        "HELP",
        "    Print this help.",
    ];
    reply.array(LINES.len());
    LINES.iter().for_each(|line| reply.word(line));
}
