//! Who may do what.

use tidegate::clock::ManualClock;

use crate::server::{PASSWORD, Server, TOKEN};
use crate::wire::{Reply, Wire, command};

const NOAUTH: &str = "NOAUTH Authentication required.";
const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn a_stranger_says_hello_shows_a_password_or_goes() {
    let server = Server::start_guarded();
    let mut wire = Wire::to(&server);
    for words in [
        "PING",
        "CL.THROTTLE k 4 1 60",
        "TG.CHECK api k",
        "INFO",
        "CLIENT ID",
        "DEL k",
        "NONSENSE",
        "TG.CHECK",
    ] {
        assert_eq!(wire.ask(words), Reply::error(NOAUTH), "{words}");
    }
    let hello = wire.ask("HELLO 3").text();
    assert!(
        hello.starts_with("NOAUTH HELLO must be called with the client already authenticated"),
        "{hello}"
    );
    assert_eq!(wire.ask("AUTH wrong"), Reply::error(WRONGPASS));
    assert_eq!(wire.ask_bytes(&[b"AUTH", b"nobody", PASSWORD.as_bytes()]), Reply::error(WRONGPASS));
    assert_eq!(wire.ask_bytes(&[b"AUTH", PASSWORD.as_bytes()]), Reply::ok());
    assert_eq!(wire.ask("TG.CHECK api k").array()[0], Reply::Integer(1));
    // A wrong one later takes nothing away; a reset does.
    assert_eq!(wire.ask("AUTH wrong"), Reply::error(WRONGPASS));
    assert_eq!(wire.ask("PING"), Reply::Word("PONG".into()));
    assert_eq!(wire.ask("RESET"), Reply::Word("RESET".into()));
    assert_eq!(wire.ask("PING"), Reply::error(NOAUTH));
    assert_eq!(wire.ask("QUIT"), Reply::ok());
    assert!(wire.is_closed());
}

#[test]
fn hello_shows_passwords_too() {
    let server = Server::start_guarded();
    let mut wire = Wire::to(&server);
    let hello =
        |user: &str, secret: &str| command(&[b"HELLO", b"3", b"AUTH", user.as_bytes(), secret.as_bytes()]);
    wire.send(hello("default", "wrong"));
    assert_eq!(wire.reply(), Reply::error(WRONGPASS));
    // The version has not changed with it.
    wire.send(hello("default", PASSWORD));
    assert!(matches!(wire.reply(), Reply::Map(pairs) if pairs.len() == 7));
    assert_eq!(wire.ask("CLIENT GETNAME"), Reply::Null);
}

#[test]
fn changing_keys_by_hand_takes_the_admin_token() {
    let server = Server::start_guarded();
    let mut wire = Wire::to(&server);
    wire.ask_bytes(&[b"AUTH", b"default", PASSWORD.as_bytes()]);
    for words in ["TG.CREDIT api k 1", "TG.RESET api k", "DEL k", "UNLINK k"] {
        let said = wire.ask(words).text();
        let name = words.split(' ').next().unwrap();
        assert_eq!(
            said,
            format!("NOPERM {name} changes keys by hand: show the admin token first (AUTH admin TOKEN)")
        );
    }
    assert_eq!(wire.ask_bytes(&[b"AUTH", b"admin", PASSWORD.as_bytes()]), Reply::error(WRONGPASS));
    for shown in [format!("AUTH admin {TOKEN}"), format!("AUTH default {TOKEN}"), format!("AUTH {TOKEN}")] {
        let mut wire = Wire::to(&server);
        assert_eq!(wire.ask(&shown), Reply::ok());
        assert_eq!(wire.ask("DEL k"), Reply::Integer(0));
        assert!(wire.ask("CLIENT INFO").text().contains(" user=admin "));
    }
}

#[test]
fn without_any_secret_there_is_nothing_to_show_and_nothing_to_change() {
    use std::sync::Arc;
    use tidegate_server::resp::{Conversation, Door};
    let app = crate::server::app(crate::server::POLICIES, ManualClock::default());
    let mut conversation = Conversation::of_nowhere(&Arc::new(Door::new(Arc::new(app))));
    let said = crate::chunks::told(&mut conversation, b"AUTH x\nAUTH default x\nDEL k\nPING\n");
    let lines: Vec<&str> = said.split("\r\n").collect();
    assert!(lines[0].starts_with("-ERR AUTH <password> called without any password configured"), "{lines:?}");
    assert_eq!(lines[0], lines[1]);
    assert!(lines[2].starts_with("-NOPERM DEL changes keys by hand, which is switched off"), "{lines:?}");
    assert_eq!(lines[3], "+PONG");
}

#[test]
fn strangers_are_held_to_small_requests() {
    let server = Server::start_guarded();
    let mut wire = Wire::to(&server);
    wire.send("*11\r\n");
    wire.breaks("unauthenticated multibulk length");
    let mut wire = Wire::to(&server);
    wire.send("*2\r\n$4\r\nAUTH\r\n$16385\r\n");
    wire.breaks("unauthenticated bulk length");
    // With the password in the same write what follows it is a client's.
    let mut wire = Wire::to(&server);
    let long = vec![b'x'; 20_000];
    wire.send([command(&[b"AUTH", PASSWORD.as_bytes()]), command(&[b"ECHO", &long])].concat());
    assert_eq!(wire.reply(), Reply::ok());
    assert_eq!(wire.reply(), Reply::Bulk(long));
}
