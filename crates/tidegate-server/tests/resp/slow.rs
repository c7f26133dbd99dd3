//! Clients that do not read.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use crate::server::Server;
use crate::wire::{Reply, Wire, command};

const WORD: usize = 64 << 10;
const REQUESTS: usize = 2_000;

/// Sends requests until nobody takes any more; how many bytes went.
fn send_until_stuck(wire: &Wire, bytes: &[u8]) -> usize {
    let mut stream = wire.stream();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(more) => sent += more,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

#[test]
fn who_does_not_read_is_not_read_from_and_harms_nobody() {
    let server = Server::start();
    let mut slow = Wire::to(&server);
    let request = command(&[b"ECHO", &[b'x'; WORD]]);
    let heap = request.repeat(REQUESTS);
    let sent = send_until_stuck(&slow, &heap);
    // The system's buffers hold some megabytes each way, the server one command and its reply.
    assert!(sent < 64 << 20, "the server took {sent} bytes of which no reply was read");
    let mut other = Wire::to(&server);
    assert_eq!(other.ask("PING"), Reply::Word("PONG".into()));
    assert_eq!(other.ask("CL.THROTTLE k 4 1 60").array()[0], Reply::Integer(0));
    // Once it reads, it gets all it asked for.
    let whole = sent / request.len();
    for number in 0..whole {
        assert_eq!(slow.reply(), Reply::Bulk(vec![b'x'; WORD]), "reply {number} of {whole}");
    }
}
