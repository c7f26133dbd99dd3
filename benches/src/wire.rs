//! Load on a Redis server by raw connections: commands encoded beforehand, so that the server is what is measured.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How a server is asked.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Connections at once.
    pub connections: usize,
    /// Commands on their way at once, on each.
    pub depth: usize,
    /// How long it lasts.
    pub lasts: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Commands answered a second.
    pub per_second: f64,
    /// 99 of 100 batches of `depth` commands were answered within so many microseconds.
    pub p99_us: f64,
    /// Commands answered in all.
    pub answered: u64,
}

/// A command as it goes over the wire.
pub fn encode<T: AsRef<[u8]>>(words: &[T]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
        out.extend_from_slice(word.as_ref());
        out.extend_from_slice(b"\r\n");
    }
    out
}

impl Load {
    /// Puts `commands` to the server, over and over.
    ///
    /// # Errors
    /// A connection fails, or the server answers with an error.
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    pub async fn run(self, server: SocketAddr, commands: &[Vec<u8>]) -> io::Result<Outcome> {
        let ends = Instant::now() + self.lasts;
        let began = Instant::now();
        let share = commands.len() / self.connections;
        let each = commands.chunks(share.max(1)).take(self.connections).map(|commands| {
            let commands = commands.to_vec();
            tokio::task::spawn_local(async move { converse(server, commands, self.depth, ends).await })
        });
        let mut waits = Vec::new();
        for task in each.collect::<Vec<_>>() {
            waits.append(&mut task.await.map_err(io::Error::other)??);
        }
        let took = began.elapsed().as_secs_f64();
        let answered = (waits.len() * self.depth) as u64;
        waits.sort_unstable();
        let p99 = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
        let p99_us = p99.as_secs_f64() * 1e6;
        Ok(Outcome { per_second: answered as f64 / took, p99_us, answered })
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
async fn converse(
    server: SocketAddr,
    commands: Vec<Vec<u8>>,
    depth: usize,
    ends: Instant,
) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let mut waits = Vec::new();
    let (mut unread, mut batch) = (Vec::with_capacity(1 << 16), Vec::new());
    let mut next = commands.iter().cycle();
    loop {
        batch.clear();
        next.by_ref().take(depth).for_each(|command| batch.extend_from_slice(command));
        let asked = Instant::now();
        if asked > ends {
            return Ok(waits);
        }
        stream.write_all(&batch).await?;
        unread.clear();
        let (mut replies, mut at) = (0, 0);
        while replies < depth {
            while let Some(length) = reply(&unread[at..])? {
                at += length;
                replies += 1;
            }
            if replies < depth && stream.read_buf(&mut unread).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        waits.push(asked.elapsed());
    }
}

/// The length of the reply that `bytes` begin with, once it is whole.
fn reply(bytes: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = &bytes[1..end];
    let number = || std::str::from_utf8(line).ok().and_then(|it| it.parse::<i64>().ok()).unwrap_or(-1);
    match bytes[0] {
        b'-' => Err(io::Error::other(String::from_utf8_lossy(line).into_owned())),
        b'$' => match usize::try_from(number()) {
            Ok(length) if bytes.len() >= end + length + 4 => Ok(Some(end + length + 4)),
            Ok(_) => Ok(None),
            Err(_) => Ok(Some(end + 2)),
        },
        b'*' => {
            let mut at = end + 2;
            for _ in 0..number() {
                match reply(&bytes[at..])? {
                    Some(length) => at += length,
                    None => return Ok(None),
                }
            }
            Ok(Some(at))
        }
        _ => Ok(Some(end + 2)),
    }
}
