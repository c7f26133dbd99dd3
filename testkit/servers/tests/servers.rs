//! The servers that other tests stand on do what is said of them.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_testkit_servers::{Cluster, Mischief, Program, Proxy, Reply, Sentinel, Server};

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

#[test]
fn every_program_starts_forgets_and_starts_again() {
    for program in Program::ALL {
        let mut server = Server::start(program);
        assert_eq!(server.command(&["SET", "a", "1"]), text("OK"), "{program:?}");
        assert_eq!(server.command(&["EVAL", "return redis.call('INCR', KEYS[1])", "1", "a"]).integer(), 2);
        server.restart();
        assert_eq!(server.command(&["GET", "a"]), Reply::Nil, "{program:?}");
        server.kill();
        assert!(TcpStream::connect(server.address()).is_err());
    }
}

#[test]
fn a_frozen_server_answers_when_it_is_thawed() {
    let server = Server::start(Program::Redis7);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    server.freeze();
    stream.write_all(b"PING\r\n").unwrap();
    assert!(stream.read(&mut [0; 7]).is_err());
    server.thaw();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_password_is_asked_for() {
    let server = Server::setup(Program::Valkey8).password("secret").start();
    assert_eq!(server.command(&["PING"]), text("PONG"));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"-NOAUTH");
}

#[test]
fn a_cluster_serves_all_slots_and_fails_over() {
    for program in [Program::Redis7, Program::Valkey9] {
        let mut cluster = Cluster::start(program, 3, 1);
        assert!(cluster.node(2).command(&["SET", "{a}", "1"]) == text("OK"), "slot 15495 is the third's");
        assert!(
            matches!(cluster.node(0).command(&["GET", "{a}"]), Reply::Error(moved) if moved.starts_with("MOVED 15495"))
        );
        cluster.fail_over_to(5);
        assert_eq!(cluster.node(5).command(&["GET", "{a}"]), text("1"));
        cluster.node_mut(0).kill();
        cluster.wait_until_master(3);
    }
}

#[test]
fn sentinels_replace_a_master_when_told_and_when_it_is_gone() {
    let mut watching = Sentinel::start(Program::Redis7, 3);
    let first = watching.server(0).port();
    assert_eq!(watching.master_port(), first);
    watching.fail_over();
    let second = watching.server(1).port();
    assert_eq!(watching.master_port(), second);
    watching.server_mut(1).kill();
    watching.wait_until_replaced(second);
    assert_eq!(watching.master_port(), first);
}

#[test]
fn mischief_does_what_it_says() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let ask = |stream: &mut TcpStream| {
        let mut answer = [0; 4];
        stream.write_all(b"INCR a\r\n").and_then(|()| stream.read_exact(&mut answer)).map(|()| answer)
    };
    let waits = |stream: &TcpStream, millis| {
        stream.set_read_timeout(Some(Duration::from_millis(millis))).unwrap();
    };
    // Where an answer comes, or the end, a busy machine has the time it takes.
    let connect = || {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        waits(&stream, 30_000);
        stream
    };
    let mut stream = connect();
    assert_eq!(&ask(&mut stream).unwrap(), b":1\r\n");

    proxy.set(Mischief::LoseNextReply);
    assert!(ask(&mut stream).is_err());
    assert_eq!((server.command(&["GET", "a"]), proxy.mischief()), (text("2"), Mischief::None));

    let mut stream = connect();
    waits(&stream, 200);
    proxy.set(Mischief::BlackHole);
    assert!(ask(&mut stream).is_err());
    proxy.set(Mischief::None);
    assert!(ask(&mut stream).is_err(), "a stream with a gap goes on");
    assert_eq!(server.command(&["GET", "a"]), text("2"));

    let mut stream = connect();
    proxy.set(Mischief::Delay(Duration::from_millis(20)));
    assert_eq!(&ask(&mut stream).unwrap(), b":3\r\n");
    proxy.set(Mischief::None);
    proxy.cut();
    assert!(ask(&mut stream).is_err());
    proxy.set(Mischief::Refuse);
    assert!(ask(&mut connect()).is_err());
    assert_eq!((server.command(&["GET", "a"]), proxy.accepted()), (text("3"), 4));
}
