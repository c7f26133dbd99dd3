//! What clients send that need more than a package to run: as recorded of them, byte by byte in the same writes.

use crate::server::{PASSWORD, Server};
use crate::wire::{Reply, Wire, command};

fn sent(commands: &[&str]) -> Vec<u8> {
    let words = |line: &&str| command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    commands.iter().flat_map(words).collect()
}

/// go-redis 9.22: `HELLO 3`, then a pipeline whose errors do not matter.
#[test]
fn go_redis() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.send(sent(&["hello 3"]));
    assert!(matches!(wire.reply(), Reply::Map(_)));
    wire.send(sent(&[
        "client setname worker",
        "client maint_notifications on moving-endpoint-type internal-fqdn",
        "client setinfo LIB-NAME go-redis(,go1.25)",
        "client setinfo LIB-VER 9.22.0",
    ]));
    assert_eq!(wire.reply(), Reply::ok());
    assert!(matches!(wire.reply(), Reply::Error(_)));
    assert_eq!([wire.reply(), wire.reply()], [Reply::ok(), Reply::ok()]);
    assert_eq!(wire.ask("cl.throttle k 15 30 60"), Reply::integers([0, 16, 15, -1, 2]));
}

/// The same with a password.
#[test]
fn go_redis_with_a_password() {
    let server = Server::start_guarded();
    let mut wire = Wire::to(&server);
    let hello: [&[u8]; 7] = [b"hello", b"3", b"auth", b"default", PASSWORD.as_bytes(), b"setname", b"worker"];
    assert!(matches!(wire.ask_bytes(&hello), Reply::Map(_)));
    assert_eq!(wire.ask("client getname"), Reply::bulk("worker"));
}

/// fred 10.1.
#[test]
fn fred() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    assert_eq!(wire.ask("PING"), Reply::Word("PONG".into()));
    assert!(matches!(wire.ask("CLIENT ID"), Reply::Integer(1..)));
    assert!(wire.ask("INFO server").text().contains("redis_version:7.2.0"));
}

/// valkey-py 6.2, which speaks RESP2 by itself.
#[test]
fn valkey_py() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.send(sent(&["CLIENT SETINFO LIB-NAME valkey-py", "CLIENT SETINFO LIB-VER 6.2.0"]));
    assert_eq!([wire.reply(), wire.reply()], [Reply::ok(), Reply::ok()]);
}
