//! Bytes as a client might send them, for better or worse.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

use crate::server::{FIVE, Server};

/// A connection on which a test writes what it likes.
pub struct Wire(BufStream<TcpStream>);

/// A response as it came.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn remaining(&self) -> u64 {
        serde_json::from_str::<serde_json::Value>(&self.body).unwrap()["remaining"].as_u64().unwrap()
    }
}

impl Wire {
    pub async fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Wire::over(stream)
    }

    pub fn over(stream: TcpStream) -> Self {
        Wire(BufStream::new(stream))
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// The next response.
    pub async fn reply(&mut self) -> Reply {
        let line = self.line().await;
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?} is no status line"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut reply = Reply { status, headers, body: String::new() };
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        reply.body = String::from_utf8(body).unwrap();
        reply
    }

    /// Whether the server has nothing more to say and hangs up.
    pub async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest).await {
            Ok(_) => rest.is_empty(),
            // It hung up with bytes of ours unread.
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }
}

/// A check as text, of HTTP/1.1 unless said otherwise in `head`.
pub fn check(body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

const CHUNKED: &str = "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";

/// Waits until somebody in the server sleeps until `ms`.
pub async fn somebody_sleeps_until(server: &Server, ms: u64) {
    while server.clock.next_wake().map(|at| at.as_micros()) != Some(ms * 1_000) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order() {
    let server = Server::start(&FIVE.replace("capacity: 5", "capacity: 1000")).await;
    let mut wire = Wire::to(&server).await;
    // More than is read ahead, and all sent before one answer is read.
    wire.send(check(r#"{"key":"k"}"#).repeat(1_000)).await;
    for remaining in (0..1_000).rev() {
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.remaining()), (200, remaining));
    }
}

#[tokio::test]
async fn an_answer_does_not_wait_for_the_next_request() {
    let server = Server::start(FIVE).await;
    let mut wire = Wire::to(&server).await;
    let whole = check(r#"{"key":"k"}"#);
    wire.send(whole.clone() + &whole[..20]).await;
    assert_eq!(wire.reply().await.remaining(), 4);
    wire.send(&whole[20..]).await;
    assert_eq!(wire.reply().await.remaining(), 3);
}

#[tokio::test]
async fn a_body_may_come_byte_by_byte() {
    let server = Server::start(FIVE).await;
    let mut wire = Wire::to(&server).await;
    for byte in check(r#"{"key":"k"}"#).bytes() {
        wire.send([byte]).await;
    }
    assert_eq!(wire.reply().await.remaining(), 4);
    wire.send(CHUNKED).await;
    for byte in br#"{"key":"k"}"# {
        wire.send(format!("1\r\n{}\r\n", char::from(*byte))).await;
    }
    wire.send("0\r\n\r\n").await;
    assert_eq!(wire.reply().await.remaining(), 3);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = Server::start(FIVE).await;
    let mut wire = Wire::to(&server).await;
    let whole = check(r#"{"key":"k"}"#);
    wire.send(&whole[..whole.len() - 1]).await;
    somebody_sleeps_until(&server, 30_000).await;
    server.advance(Duration::from_secs(30));
    let reply = wire.reply().await;
    assert_eq!(reply.status, 408, "{}", reply.body);
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn a_length_is_not_believed_but_bounded() {
    let server = Server::start(FIVE).await;
    for length in ["65537", "4294967296", "9223372036854775807"] {
        let mut wire = Wire::to(&server).await;
        let head = check("").replace("content-length: 0", &format!("content-length: {length}"));
        wire.send(head).await;
        // No byte of it was sent, so the length alone was enough.
        assert_eq!(wire.reply().await.status, 413, "{length}");
    }
    let mut wire = Wire::to(&server).await;
    wire.send(CHUNKED).await;
    for _ in 0..17 {
        wire.send(format!("1000\r\n{}\r\n", " ".repeat(0x1000))).await;
    }
    assert_eq!(wire.reply().await.status, 413);
}

#[tokio::test]
async fn half_a_request_harms_nobody() {
    let server = Server::start(FIVE).await;
    let whole = check(r#"{"key":"k"}"#);
    for cut in [1, 20, 60, whole.len() - 1] {
        let mut wire = Wire::to(&server).await;
        wire.send(&whole[..cut]).await;
        drop(wire);
    }
    assert_eq!(server.check("k", 0).await.json()["remaining"], 5);
}

#[tokio::test]
async fn http_1_0_is_spoken() {
    let server = Server::start(FIVE).await;
    let mut wire = Wire::to(&server).await;
    let old = check(r#"{"key":"k"}"#).replace("HTTP/1.1\r\nhost: x", "HTTP/1.0");
    wire.send(&old).await;
    assert_eq!(wire.reply().await.remaining(), 4);
    assert!(wire.is_closed().await);
    let mut wire = Wire::to(&server).await;
    for remaining in [3, 2] {
        wire.send(old.replace("HTTP/1.0", "HTTP/1.0\r\nconnection: keep-alive")).await;
        assert_eq!(wire.reply().await.remaining(), remaining);
    }
}

#[tokio::test]
async fn who_asks_first_is_told_to_go_on() {
    let server = Server::start(FIVE).await;
    let mut wire = Wire::to(&server).await;
    let whole = check(r#"{"key":"k"}"#).replace("host: x", "host: x\r\nexpect: 100-continue");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    wire.send(format!("{head}\r\n\r\n")).await;
    assert_eq!(wire.reply().await.status, 100);
    wire.send(body).await;
    assert_eq!(wire.reply().await.remaining(), 4);
    // And who asks to send too much is not.
    let mut wire = Wire::to(&server).await;
    wire.send(format!("{head}\r\n\r\n").replace("content-length: 11", "content-length: 99999")).await;
    assert_eq!(wire.reply().await.status, 413);
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let server = Server::start(FIVE).await;
    let huge = format!("GET /livez HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    for (bytes, status) in [
        ("GET / HTTP/9.9\r\n\r\n", 400),
        ("*1\r\n$4\r\nPING\r\n", 400),
        ("POST /v1/check HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        ("POST /v1/check HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (&huge, 431),
    ] {
        let mut wire = Wire::to(&server).await;
        println!("{bytes:.60}");
        wire.send(bytes).await;
        assert_eq!(wire.reply().await.status, status);
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn a_refused_body_does_not_confuse_the_next_request() {
    let server = Server::start(FIVE).await;
    let mut wire = Wire::to(&server).await;
    let plain = check("POST /v1/reset HTTP/1.1").replace("application/json", "text/plain");
    wire.send(plain + &check(r#"{"key":"k"}"#)).await;
    assert_eq!(wire.reply().await.status, 415);
    assert_eq!(wire.reply().await.remaining(), 4);
}
