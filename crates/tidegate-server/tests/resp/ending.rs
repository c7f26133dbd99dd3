//! The end of a server, and of the room in it.

use std::net::TcpStream;
use std::time::Duration;

use tidegate::Timestamp;
use tidegate::clock::ManualClock;
use tidegate_server::Stopped;

use crate::server::{POLICIES, Server};
use crate::wire::{Reply, Wire, command};

/// Until the clock has somebody waiting for `ms`.
fn somebody_sleeps_until(clock: &ManualClock, ms: u64) {
    while clock.next_wake().map(Timestamp::as_micros) != Some(ms * 1_000) {
        std::thread::yield_now();
    }
}

#[test]
fn idle_connections_hold_nothing_up() {
    let mut server = Server::start();
    let mut idle = Wire::to(&server);
    assert_eq!(idle.ask("PING"), Reply::Word("PONG".into()));
    let mut half = Wire::to(&server);
    half.send("*1\r\n$4\r\nPI");
    server.stop();
    let address = server.address;
    assert_eq!(server.stopped(), Stopped::Drained);
    assert!(idle.is_closed() && half.is_closed());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn the_drain_has_an_end() {
    let mut server = Server::start();
    let slow = Wire::to(&server);
    // Its replies fill every buffer between it and the server, which cannot finish writing them.
    let mut stream = slow.stream();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let request = command(&[b"ECHO", &[b'x'; 1 << 19]]);
    while std::io::Write::write_all(&mut stream, &request).is_ok() {}
    server.stop();
    somebody_sleeps_until(&server.clock, 10_000);
    server.at_ms(10_000);
    assert_eq!(server.stopped(), Stopped::Cut { connections: 1 });
}

#[test]
fn there_is_room_for_so_many_clients() {
    let server = Server::start_with(POLICIES, |door| door.with_most_clients(2));
    let mut first = Wire::to(&server);
    let mut second = Wire::to(&server);
    assert_eq!(first.ask("PING"), second.ask("PING"));
    let mut third = Wire::to(&server);
    assert_eq!(third.reply(), Reply::error("ERR max number of clients reached"));
    assert!(third.is_closed());
    assert_eq!(first.ask("QUIT"), Reply::ok());
    assert!(first.is_closed());
    // Its place is free as soon as its task has ended, which is a moment after the connection has.
    while second.ask("INFO clients").text() != "# Clients\r\nconnected_clients:1\r\n" {}
    assert_eq!(Wire::to(&server).ask("PING"), Reply::Word("PONG".into()));
}
