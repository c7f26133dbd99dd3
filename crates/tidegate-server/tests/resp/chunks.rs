//! Any bytes, in any pieces: never a panic, and the pieces change nothing.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate::clock::ManualClock;
use tidegate_server::AdminToken;
use tidegate_server::resp::{Conversation, Door, Next, Password};

use crate::server::{PASSWORD, POLICIES, TOKEN, app};
use crate::wire::command;

/// What a conversation answers to bytes that arrive at once; nothing after it has ended.
fn answered(conversation: &mut Conversation, bytes: &[u8]) -> (Vec<u8>, Next) {
    let mut replies = Vec::new();
    let mut rest = bytes;
    loop {
        let room = conversation.room();
        let now = room.len().min(rest.len());
        room[..now].copy_from_slice(&rest[..now]);
        rest = &rest[now..];
        conversation.received(now);
        let next = loop {
            let next = conversation.answer();
            replies.extend_from_slice(conversation.replies());
            conversation.written();
            if next != Next::Write {
                break next;
            }
        };
        if next == Next::Close || rest.is_empty() {
            return (replies, next);
        }
    }
}

/// The same as text.
pub fn told(conversation: &mut Conversation, bytes: &[u8]) -> String {
    String::from_utf8(answered(conversation, bytes).0).unwrap()
}

fn door(guarded: bool) -> Arc<Door> {
    let app = app(POLICIES, ManualClock::default()).with_admin_token(AdminToken::new(TOKEN).unwrap());
    let door = Door::new(Arc::new(app));
    Arc::new(if guarded { door.with_password(Password::new(PASSWORD).unwrap()) } else { door })
}

/// All that is answered to `chunks`, one after the other.
fn conversation(guarded: bool, chunks: &[&[u8]]) -> (Vec<u8>, Next) {
    let mut conversation = Conversation::of_nowhere(&door(guarded));
    let mut replies = Vec::new();
    for chunk in chunks {
        let (more, next) = answered(&mut conversation, chunk);
        replies.extend(more);
        assert!(conversation.heap_bytes() < 400_000, "{}", conversation.heap_bytes());
        if next == Next::Close {
            return (replies, next);
        }
    }
    (replies, Next::Read)
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    let names = [
        "CL.THROTTLE",
        "TG.CHECK",
        "TG.PEEK",
        "TG.CREDIT",
        "TG.RESET",
        "PING",
        "DEL",
        "HELLO",
        "AUTH",
        "SELECT",
        "CLIENT",
        "INFO",
        "COMMAND",
        "CONFIG",
        "TIME",
        "QUIT",
        "RESET",
        "DBSIZE",
        "ECHO",
        "nonsense",
    ];
    let others = [
        "api",
        "daily",
        "k",
        "15",
        "30",
        "60",
        "0",
        "-3",
        "3",
        "2",
        "GET",
        "save",
        "SETNAME",
        "ID",
        "REPLY",
        "SKIP",
        "OFF",
        "ON",
        "DOCS",
        PASSWORD,
        TOKEN,
        "default",
        "99999999999999999999",
        "",
    ];
    let other = prop_oneof![
        6 => proptest::sample::select(others.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    (proptest::sample::select(names.to_vec()), proptest::collection::vec(other, 0..6)).prop_map(
        |(name, others)| {
            let words: Vec<&[u8]> =
                std::iter::once(name.as_bytes()).chain(others.iter().map(Vec::as_slice)).collect();
            command(&words)
        },
    )
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => words(),
        1 => "(PING|ECHO|CL.THROTTLE k) [ a0-9\"']{0,9}\r?\n".prop_map(String::into_bytes),
        1 => "[*$:]-?[0-9]{0,3}\r\n".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn pieces_change_nothing(
        bytes in bytes(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        guarded: bool,
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = conversation(guarded, &[&bytes]);
        prop_assert_eq!(&conversation(guarded, &chunks), &whole);
        prop_assert_eq!(&conversation(guarded, &singly), &whole);
    }
}

#[test]
fn replies_do_not_pile_up() {
    let mut conversation = Conversation::of_nowhere(&door(false));
    let request = command(&[b"COMMAND", b"DOCS"]).repeat(500);
    let mut rest = &request[..];
    let mut written = 0;
    while !rest.is_empty() {
        let room = conversation.room();
        let now = room.len().min(rest.len());
        room[..now].copy_from_slice(&rest[..now]);
        rest = &rest[now..];
        conversation.received(now);
        loop {
            let next = conversation.answer();
            assert!(conversation.replies().len() < 80_000, "{}", conversation.replies().len());
            written += conversation.replies().len();
            conversation.written();
            if next == Next::Read {
                break;
            }
        }
    }
    assert!(written > 1_000_000, "{written}");
    assert!(conversation.heap_bytes() < 400_000, "{}", conversation.heap_bytes());
}
