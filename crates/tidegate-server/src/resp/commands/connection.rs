//! Who speaks, and how.

use super::client::{set_name, valid_text};
use super::units::{integer, not_an_integer};
use super::{Context, Then, shown};
use crate::resp::door::Door;
use crate::resp::parse::Args;
use crate::resp::reply::Protocol;
use crate::resp::session::{Hears, Rank};

/// What the replies to `HELLO` and `INFO` say we are, for clients that tell servers apart by it.
pub(super) const REDIS_VERSION: &str = "7.2.0";

/// `PING [message]`.
pub(super) fn ping(context: &mut Context<'_>, args: Args<'_>) -> Then {
    match args.get(1) {
        None => context.reply.word("PONG"),
        Some(message) => context.reply.bulk(message),
    }
    Then::GoOn
}

/// `ECHO message`.
pub(super) fn echo(context: &mut Context<'_>, args: Args<'_>) -> Then {
    context.reply.bulk(args.get(1).unwrap_or_default());
    Then::GoOn
}

/// `SELECT index`.
pub(super) fn select(context: &mut Context<'_>, args: Args<'_>) -> Then {
    match args.get(1).and_then(integer) {
        Some(0) => context.reply.ok(),
        Some(_) => context.reply.error(format_args!("ERR DB index is out of range")),
        None => not_an_integer(&mut context.reply),
    }
    Then::GoOn
}

/// `QUIT`.
pub(super) fn quit(context: &mut Context<'_>, _: Args<'_>) -> Then {
    context.reply.ok();
    Then::Close
}

/// `RESET`.
pub(super) fn reset(context: &mut Context<'_>, _: Args<'_>) -> Then {
    let session = &mut *context.session;
    session.rank = rank_at_first(context.door);
    session.protocol = Protocol::Resp2;
    session.hears = Hears::Everything;
    session.name.clear();
    context.reply.speak(Protocol::Resp2);
    context.reply.word("RESET");
    Then::GoOn
}

/// What a client may do that has shown nothing.
pub(in crate::resp) fn rank_at_first(door: &Door) -> Rank {
    if door.password().is_some() { Rank::Stranger } else { Rank::User }
}

/// `AUTH [username] password`.
pub(super) fn auth(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let shown = match (args.get(1), args.get(2)) {
        (Some(user), Some(secret)) => Shown { user: Some(user), secret },
        (secret, _) => Shown { user: None, secret: secret.unwrap_or_default() },
    };
    if let Some(rank) = identify(context, shown) {
        context.session.rank = rank;
        context.reply.ok();
    }
    Then::GoOn
}

/// What a client shows.
#[derive(Clone, Copy)]
struct Shown<'a> {
    user: Option<&'a [u8]>,
    secret: &'a [u8],
}

/// Who a client is. If nobody, that is told.
fn identify(context: &mut Context<'_>, shown: Shown<'_>) -> Option<Rank> {
    let Context { door, reply, .. } = context;
    let (password, token) = (door.password(), door.app().admin_token());
    if password.is_none() && token.is_none() {
        reply.error(format_args!(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?"
        ));
        return None;
    }
    let (as_default, as_admin) = match shown.user {
        None => (true, true),
        Some(user) => (user == b"default", user == b"default" || user == b"admin"),
    };
    if as_admin && token.is_some_and(|token| token.matches(shown.secret)) {
        return Some(Rank::Admin);
    }
    if as_default && password.is_some_and(|password| password.matches(shown.secret)) {
        return Some(Rank::User);
    }
    reply.error(format_args!("WRONGPASS invalid username-password pair or user is disabled."));
    None
}

/// `HELLO [protover [AUTH username password] [SETNAME name]]`.
pub(super) fn hello(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some(protocol) = protocol(context, args.get(1)) else { return Then::GoOn };
    let Some(wishes) = wishes(context, args) else { return Then::GoOn };
    let rank = match wishes.shown {
        Some(shown) => match identify(context, shown) {
            Some(rank) => rank,
            None => return Then::GoOn,
        },
        None => context.session.rank,
    };
    if rank == Rank::Stranger {
        context.reply.error(format_args!(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
             the same time"
        ));
        return Then::GoOn;
    }
    if let Some(name) = wishes.name
        && !set_name(context, name)
    {
        return Then::GoOn;
    }
    context.session.rank = rank;
    context.session.protocol = protocol;
    context.reply.speak(protocol);
    welcome(context);
    Then::GoOn
}

/// The version asked for, or the one spoken.
fn protocol(context: &mut Context<'_>, asked: Option<&[u8]>) -> Option<Protocol> {
    let Some(asked) = asked else { return Some(context.session.protocol) };
    match integer(asked) {
        Some(2) => return Some(Protocol::Resp2),
        Some(3) => return Some(Protocol::Resp3),
        Some(_) => context.reply.error(format_args!("NOPROTO unsupported protocol version")),
        None => context.reply.error(format_args!("ERR Protocol version is not an integer or out of range")),
    }
    None
}

/// What a `HELLO` asks for besides a version.
#[derive(Default)]
struct Wishes<'a> {
    shown: Option<Shown<'a>>,
    name: Option<&'a [u8]>,
}

fn wishes<'a>(context: &mut Context<'_>, args: Args<'a>) -> Option<Wishes<'a>> {
    let mut wishes = Wishes::default();
    let mut at = 2;
    while let Some(option) = args.get(at) {
        match (args.get(at + 1), args.get(at + 2)) {
            (Some(user), Some(secret)) if option.eq_ignore_ascii_case(b"AUTH") => {
                wishes.shown = Some(Shown { user: Some(user), secret });
                at += 3;
            }
            (Some(name), _) if option.eq_ignore_ascii_case(b"SETNAME") && valid_text(name) => {
                wishes.name = Some(name);
                at += 2;
            }
            (Some(_), _) if option.eq_ignore_ascii_case(b"SETNAME") => {
                super::client::bad_text(&mut context.reply, "Client names");
                return None;
            }
            _ => {
                let option = shown(option);
                context.reply.error(format_args!("ERR Syntax error in HELLO option '{option}'"));
                return None;
            }
        }
    }
    Some(wishes)
}

fn welcome(context: &mut Context<'_>) {
    let reply = &mut context.reply;
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(context.session.protocol.number());
    reply.bulk(b"id");
    reply.integer(super::units::amount(context.session.id));
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}
