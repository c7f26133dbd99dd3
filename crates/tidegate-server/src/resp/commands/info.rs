//! About this server.

use std::fmt::Write;

use tidegate::{AdHocStore, MemoryStore};

use super::client::upper;
use super::connection::REDIS_VERSION;
use super::{Context, Then, unknown_subcommand, wrong_number};
use crate::resp::parse::Args;

/// `TIME`.
pub(super) fn time(context: &mut Context<'_>, _: Args<'_>) -> Then {
    let micros = context.now.as_micros();
    context.reply.array(2);
    context.reply.bulk_number(micros / 1_000_000);
    context.reply.bulk_number(micros % 1_000_000);
    Then::GoOn
}

/// A section's name and what writes it.
type Section = (&'static str, fn(&Context<'_>) -> String);

/// The sections of `INFO`.
const SECTIONS: [Section; 7] = [
    ("Server", server),
    ("Clients", clients),
    ("Persistence", |_| "loading:0\n".to_owned()),
    ("Stats", stats),
    ("Replication", |_| "role:master\nconnected_slaves:0\n".to_owned()),
    ("Cluster", |_| "cluster_enabled:0\n".to_owned()),
    ("Keyspace", keyspace),
];

/// `INFO [section ...]`.
pub(super) fn info(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let all = args.len() == 1
        || args.from(1).any(|word| ["all", "default", "everything"].iter().any(|it| is(word, it)));
    let mut text = String::new();
    for (name, write) in SECTIONS {
        if all || args.from(1).any(|word| is(word, name)) {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{gap}# {name}\r\n{}", write(context).replace('\n', "\r\n"));
        }
    }
    context.reply.text(&text);
    Then::GoOn
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

fn server(context: &Context<'_>) -> String {
    let uptime = context.now.micros_since(context.door.opened()) / 1_000_000;
    let own = env!("CARGO_PKG_VERSION");
    let (process, port) = (std::process::id(), context.session.origin.local.port());
    format!(
        "redis_version:{REDIS_VERSION}\ntidegate_version:{own}\nredis_mode:standalone\narch_bits:64\n\
         process_id:{process}\ntcp_port:{port}\nuptime_in_seconds:{uptime}\nuptime_in_days:{}\n",
        uptime / 86_400
    )
}

fn clients(context: &Context<'_>) -> String {
    format!("connected_clients:{}\n", context.door.clients())
}

fn stats(context: &Context<'_>) -> String {
    format!(
        "total_connections_received:{}\ntotal_commands_processed:{}\n",
        context.door.clients_ever(),
        context.door.commands() + context.batch.commands
    )
}

fn keyspace(context: &Context<'_>) -> String {
    let of_throttle = context.door.keys().map(AdHocStore::stats).unwrap_or_default();
    let memory = context.door.app().limiter().store().memory();
    let of_policies = memory.map(MemoryStore::stats).unwrap_or_default();
    format!(
        "db0:keys={},expires=0,avg_ttl=0\nthrottle_keys:{}\nthrottle_bytes:{}\npolicy_keys:{}\npolicy_bytes:{}\n",
        of_throttle.keys + of_policies.keys,
        of_throttle.keys,
        of_throttle.bytes,
        of_policies.keys,
        of_policies.bytes
    )
}

/// Settings that clients look for, as they are here.
const SETTINGS: [(&str, &str); 4] =
    [("save", ""), ("appendonly", "no"), ("databases", "1"), ("timeout", "0")];

/// `CONFIG GET pattern ...`.
pub(super) fn config(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let subcommand = args.get(1).unwrap_or_default();
    let mut word = [0; 16];
    match (upper(subcommand, &mut word), args.len()) {
        (b"GET", 3..) => {
            let asked = |name: &str| args.from(2).any(|pattern| pattern == b"*" || is(pattern, name));
            let found = || SETTINGS.iter().filter(|(name, _)| asked(name));
            context.reply.map(found().count());
            for (name, value) in found() {
                context.reply.bulk(name.as_bytes());
                context.reply.bulk(value.as_bytes());
            }
        }
        (b"GET", _) => wrong_number(&mut context.reply, "config|get"),
        _ => unknown_subcommand(&mut context.reply, "CONFIG", subcommand),
    }
    Then::GoOn
}
