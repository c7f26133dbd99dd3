//! Just enough of the protocol to tell a server what to do.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line or a string, its bytes that are not UTF-8 replaced.
    Text(String),
    /// An integer.
    Integer(i64),
    /// Nothing.
    Nil,
    /// Several answers.
    List(Vec<Reply>),
    /// A refusal: its code and the words after it.
    Error(String),
}

impl Reply {
    /// The text.
    ///
    /// # Panics
    /// When it is none.
    pub fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => panic!("not a text: {other:?}"),
        }
    }

    /// The integer.
    ///
    /// # Panics
    /// When it is none.
    pub fn integer(self) -> i64 {
        match self {
            Self::Integer(integer) => integer,
            other => panic!("not an integer: {other:?}"),
        }
    }
}

/// A connection by a Unix socket.
pub(crate) struct Connection {
    reader: BufReader<UnixStream>,
}

impl Connection {
    /// Nobody is waited for longer than ten seconds.
    pub fn open(socket: &Path, password: Option<&str>) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        let mut connection = Self { reader: BufReader::new(stream) };
        if let Some(password) = password {
            match connection.call(&["AUTH", password])? {
                Reply::Text(_) => {}
                other => return Err(Error::other(format!("AUTH: {other:?}"))),
            }
        }
        Ok(connection)
    }

    pub fn call<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Result<Reply> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.reader.get_mut().write_all(&request)?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Reply> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let Some(kind) = line.chars().next() else {
            return Err(Error::other("the server closed the connection"));
        };
        let rest = line[kind.len_utf8()..].trim_end();
        let number = || rest.parse::<i64>().map_err(|_| Error::other(format!("no number: {line:?}")));
        match kind {
            '+' => Ok(Reply::Text(rest.to_owned())),
            '-' => Ok(Reply::Error(rest.to_owned())),
            ':' => Ok(Reply::Integer(number()?)),
            '$' | '*' if number()? < 0 => Ok(Reply::Nil),
            '$' => {
                let mut bytes = vec![0; number()? as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(Reply::Text(String::from_utf8_lossy(&bytes).into_owned()))
            }
            '*' => (0..number()?).map(|_| self.reply()).collect::<Result<_>>().map(Reply::List),
            _ => Err(Error::other(format!("not an answer: {line:?}"))),
        }
    }
}
