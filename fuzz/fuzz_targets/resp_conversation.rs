//! What Redis clients send, any bytes, answered: never a panic, the same replies however the bytes arrive, and no
//! more memory than a connection may hold.
//!
//! The first byte says how long the pieces are, and whether there is a password.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tidegate_server::config::Config;
use tidegate_server::resp::{Conversation, Door, Next, Password};
use tidegate_server::{AdminToken, AnyStore, App};

const CONFIG: &str = "policies: {api: {limits: [{algorithm: token_bucket, capacity: 5, refill: 0/s}]}}";

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, sent)) = bytes.split_first() else { return };
    let guarded = size % 2 == 1;
    let whole = replies(guarded, sent.chunks(sent.len().max(1)));
    let pieces = replies(guarded, sent.chunks(usize::from(size).max(1)));
    assert_eq!(whole.escape_ascii().to_string(), pieces.escape_ascii().to_string());
});

fn replies<'a>(guarded: bool, arriving: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut conversation = Conversation::of_nowhere(&door(guarded));
    let (mut replies, mut arrived) = (Vec::new(), 0);
    for piece in arriving {
        arrived += piece.len();
        if answer(&mut conversation, piece, &mut replies) == Next::Close {
            break;
        }
        let most = 4 * arrived + (256 << 10);
        assert!(conversation.heap_bytes() <= most, "{} bytes for {arrived}", conversation.heap_bytes());
    }
    replies
}

fn answer(conversation: &mut Conversation, piece: &[u8], replies: &mut Vec<u8>) -> Next {
    let mut rest = piece;
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
            return next;
        }
    }
}

/// A door whose clock stands still, so that it tells the same time twice.
fn door(guarded: bool) -> Arc<Door> {
    let config = Config::parse(CONFIG, "fuzz").expect("it is right");
    let clock = tidegate::clock::ManualClock::default();
    let limiter = tidegate::Limiter::builder(config.policies().clone());
    let limiter = limiter.store(AnyStore::default()).clock(clock).build();
    let app = App::new(limiter).with_admin_token(AdminToken::new("token").expect("it is a token"));
    let door = Door::new(Arc::new(app));
    Arc::new(if guarded { door.with_password(Password::new("pw").expect("it is one")) } else { door })
}
