//! Who answers where nobody is who speaks as the address says: so that it can be told by name.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::address::Host;

/// Whoever listens has so long to say something.
const LISTEN_FOR: Duration = Duration::from_millis(200);

/// What somebody speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    /// As Redis does, without encryption.
    Plainly,
    Tls,
    Http,
}

impl Speaks {
    /// What is wrong with an address that is answered so; nothing if it is what the address says.
    pub fn instead_of(self, encrypted: bool) -> Option<&'static str> {
        match (self, encrypted) {
            (Self::Http, _) => Some("an HTTP server answers there, not Redis (is it the right port?)"),
            (Self::Tls, false) => Some("it speaks TLS (write rediss for redis in the address)"),
            (Self::Plainly, true) => {
                Some("it does not speak TLS (write redis for rediss in the address, or its TLS port)")
            }
            (Self::Tls, true) | (Self::Plainly, false) => None,
        }
    }
}

/// What is spoken at `host`, as far as that can be told by what is answered.
pub(super) async fn spoken_at(host: &Host) -> Option<Speaks> {
    // To an HTTP server the empty line is the end of the request; to Redis it is nothing.
    const PING: &[u8] = b"PING\r\n\r\n";
    // A greeting of TLS that is too short: refused with an alert. What is none at all may be refused without a word.
    const HALF_A_HELLO: &[u8] = &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0];
    for said in [PING, HALF_A_HELLO] {
        let heard = tokio::time::timeout(LISTEN_FOR, answered(host, said)).await.ok().flatten();
        if let Some(speaks) = heard.as_deref().and_then(meaning) {
            return Some(speaks);
        }
    }
    None
}

/// How what is said to `host` is answered: the first bytes, none if the connection ends.
async fn answered(host: &Host, said: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect((host.name.as_str(), host.port)).await.ok()?;
    stream.write_all(said).await.ok()?;
    let mut heard = Vec::new();
    while heard.len() < 5 && stream.read_buf(&mut heard).await.is_ok_and(|read| read > 0) {}
    Some(heard)
}

fn meaning(heard: &[u8]) -> Option<Speaks> {
    match heard {
        [b'H', b'T', b'T', b'P', b'/', ..] => Some(Speaks::Http),
        // An alert, of whichever version.
        [21, 3, ..] => Some(Speaks::Tls),
        [b'+' | b'-', ..] => Some(Speaks::Plainly),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_is_known_by_the_first_bytes() {
        assert_eq!(meaning(b"HTTP/1.1 400 Bad Request"), Some(Speaks::Http));
        assert_eq!(meaning(&[21, 3, 1, 0, 2, 2, 70]), Some(Speaks::Tls));
        assert_eq!(meaning(b"+PONG\r\n"), Some(Speaks::Plainly));
        assert_eq!(meaning(b"-NOAUTH Authentication required."), Some(Speaks::Plainly));
        for nobody in [&b""[..], b"HTT", b"SSH-2.0", &[21]] {
            assert_eq!(meaning(nobody), None);
        }
    }
}
