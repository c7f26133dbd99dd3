//! Requests in pieces, in heaps, and in no shape at all.

use crate::server::Server;
use crate::wire::{Reply, Wire, command};

#[test]
fn byte_by_byte() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    for byte in [command(&[b"ECHO", b"a\r\nb"]), b"echo 'c d'\r\n".to_vec()].concat() {
        wire.send([byte]);
    }
    assert_eq!([wire.reply(), wire.reply()], [Reply::bulk("a\r\nb"), Reply::bulk("c d")]);
}

#[test]
fn a_pipeline_of_ten_thousand_is_answered_in_order() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    let mut heap = Vec::new();
    for number in 0..10_000_u32 {
        heap.extend(command(&[b"ECHO", number.to_string().as_bytes()]));
        heap.extend(command(&[b"CL.THROTTLE", b"k", b"9999", b"1", b"60"]));
    }
    let mut reading = Wire::to(&server);
    std::mem::swap(&mut reading, &mut wire);
    let mut writing = reading.stream().try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| std::io::Write::write_all(&mut writing, &heap).unwrap());
        for number in 0..10_000_i64 {
            assert_eq!(reading.reply(), Reply::bulk(&number.to_string()));
            assert_eq!(reading.reply().array()[2], Reply::Integer(9_999 - number));
        }
    });
}

#[test]
fn what_asks_for_nothing_gets_nothing() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.send("\r\n\n*0\r\n*-1\r\n   \r\nPING\n");
    assert_eq!(wire.reply(), Reply::Word("PONG".into()));
}

#[test]
fn what_cannot_be_understood_is_told_and_ends_the_connection() {
    let server = Server::start();
    for (bytes, said) in [
        ("*2\r\n$4\r\nPING\r\n:5\r\n", "expected '$', got ':'"),
        ("*abc\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("*1\r\n$4\r\nPINGPONG\r\n", "expected a line end behind a bulk string"),
        ("ECHO \"a\r\n", "unbalanced quotes in request"),
    ] {
        let mut wire = Wire::to(&server);
        // What was asked before is answered before.
        wire.send(format!("PING\r\n{bytes}PING\r\n"));
        assert_eq!(wire.reply(), Reply::Word("PONG".into()));
        wire.breaks(said);
    }
    let mut wire = Wire::to(&server);
    wire.send("x".repeat(70_000));
    wire.breaks("too big inline request");
}

#[test]
fn declared_lengths_take_nothing() {
    let server = Server::start();
    let mut other = Wire::to(&server);
    // A million words, each of five bytes at least, are more than a connection may hold: refused at once.
    let mut wire = Wire::to(&server);
    wire.send("*1000000\r\n");
    wire.breaks("too big a command, it may have up to 1048576 bytes");
    let mut wire = Wire::to(&server);
    wire.send("*1\r\n$536870912\r\n");
    wire.breaks("too big a command, it may have up to 1048576 bytes");
    // Sent nevertheless, it is read and dropped until the client has heard.
    let mut wire = Wire::to(&server);
    wire.send([b"*1000000\r\n".to_vec(), b"$1\r\na\r\n".repeat(300_000)].concat());
    wire.breaks("too big a command, it may have up to 1048576 bytes");
    // As many as may be, of which none comes: nobody else notices.
    let waiting: Vec<Wire> = (0..50)
        .map(|_| {
            let mut wire = Wire::to(&server);
            wire.send("*170000\r\n$3\r\nDEL\r\n");
            wire
        })
        .collect();
    while !other.ask("INFO clients").text().contains("connected_clients:51\r\n") {}
    assert_eq!(other.ask("PING"), Reply::Word("PONG".into()));
    drop(waiting);
}

#[test]
fn http_is_hung_up_on_without_a_word() {
    let server = Server::start();
    for request in ["POST / HTTP/1.1\r\nHost: x\r\n\r\nDEL k\r\n", "Host: x\r\nDEL k\r\n"] {
        let mut wire = Wire::to(&server);
        wire.send(request);
        assert!(wire.is_closed(), "{request}");
    }
    // A GET is an unknown command, and its Host the end.
    let mut wire = Wire::to(&server);
    wire.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(wire.reply().text().starts_with("ERR unknown command 'GET'"));
    assert!(wire.is_closed());
}

#[test]
fn quit_ends_before_what_follows() {
    let server = Server::start();
    let mut wire = Wire::to(&server);
    wire.send("PING\nQUIT\nPING\n");
    assert_eq!([wire.reply(), wire.reply()], [Reply::Word("PONG".into()), Reply::ok()]);
    assert!(wire.is_closed());
}
