//! A client that sends and reads bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::server::Server;

/// No answer for so long is a failure and not a hang.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Wire {
    stream: TcpStream,
    held: Vec<u8>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Word(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Text(String),
}

impl Reply {
    pub fn bulk(text: &str) -> Self {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    pub fn error(text: &str) -> Self {
        Reply::Error(text.to_owned())
    }

    pub fn ok() -> Self {
        Reply::Word("OK".to_owned())
    }

    pub fn integers<const N: usize>(values: [i64; N]) -> Self {
        Reply::Array(values.into_iter().map(Reply::Integer).collect())
    }

    /// The text of whatever holds text.
    pub fn text(&self) -> String {
        match self {
            Reply::Word(text) | Reply::Error(text) | Reply::Text(text) => text.clone(),
            Reply::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn array(&self) -> &[Reply] {
        match self {
            Reply::Array(replies) => replies,
            other => panic!("{other:?} is no array"),
        }
    }
}

/// A command as clients send it.
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Wire {
    pub fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Wire { stream, held: Vec::new() }
    }

    /// The stream itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a command of words apart by spaces and reads its reply.
    pub fn ask(&mut self, words: &str) -> Reply {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.ask_bytes(&words)
    }

    /// The same, of any words.
    pub fn ask_bytes(&mut self, words: &[&[u8]]) -> Reply {
        self.send(command(words));
        self.reply()
    }

    /// Reads more; `false` at the end.
    fn more(&mut self) -> bool {
        let mut room = [0; 16 << 10];
        match self.stream.read(&mut room) {
            Ok(read) => {
                self.held.extend_from_slice(&room[..read]);
                read > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}; held {:?}", self.held.escape_ascii().to_string()),
        }
    }

    /// Whether the connection is closed and nothing more was sent.
    pub fn is_closed(&mut self) -> bool {
        !self.more() && self.held.is_empty()
    }

    fn line(&mut self) -> String {
        let end = loop {
            if let Some(end) = self.held.windows(2).position(|pair| pair == b"\r\n") {
                break end;
            }
            assert!(self.more(), "closed in the midst of {:?}", self.held.escape_ascii().to_string());
        };
        let line = String::from_utf8(self.held[..end].to_vec()).unwrap();
        self.held.drain(..end + 2);
        line
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        while self.held.len() < length + 2 {
            assert!(self.more(), "closed in the midst of a bulk");
        }
        let bytes = self.held[..length].to_vec();
        assert_eq!(&self.held[length..length + 2], b"\r\n");
        self.held.drain(..length + 2);
        bytes
    }

    pub fn reply(&mut self) -> Reply {
        let line = self.line();
        let (kind, rest) = line.split_at(1);
        let length = || rest.parse::<usize>().unwrap_or_else(|_| panic!("{line:?}"));
        match kind {
            "+" => Reply::Word(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(rest.parse().unwrap()),
            "_" => Reply::Null,
            "$" if rest == "-1" => Reply::Null,
            "$" => Reply::Bulk(self.bytes(length())),
            "=" => {
                let text = String::from_utf8(self.bytes(length())).unwrap();
                Reply::Text(text.strip_prefix("txt:").unwrap().to_owned())
            }
            "*" => Reply::Array((0..length()).map(|_| self.reply()).collect()),
            "%" => Reply::Map((0..length()).map(|_| (self.reply(), self.reply())).collect()),
            _ => panic!("{line:?} is no reply"),
        }
    }

    /// Asserts that the next reply is a protocol error, and the last thing that is said.
    pub fn breaks(&mut self, said: &str) {
        assert_eq!(self.reply(), Reply::Error(format!("ERR Protocol error: {said}")));
        assert!(self.is_closed());
    }
}
