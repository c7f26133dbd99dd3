//! Making a connection.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::{Address, Credentials, Host};

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Host(Host),
    Socket(PathBuf),
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

/// How one gets in: the same for all servers of an address.
#[derive(Debug)]
pub(super) struct Login {
    credentials: Credentials,
    database: u32,
}

impl Login {
    /// Reads what the address names, so that a missing file is told at once.
    pub fn of(address: &Address) -> Result<Arc<Self>, String> {
        address.credentials.password.read()?;
        Ok(Arc::new(Self { credentials: address.credentials.clone(), database: address.database }))
    }

    fn settings(&self) -> Result<RedisConnectionInfo, String> {
        // The name tells the server's operator who is there. Its answer is also the proof that somebody listens.
        let mut settings = RedisConnectionInfo::default()
            .set_db(self.database.into())
            .set_lib_name("tidegate", env!("CARGO_PKG_VERSION"));
        if let Some(user) = &self.credentials.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = self.credentials.password.read()? {
            settings = settings.set_password(password);
        }
        Ok(settings)
    }
}

/// Where, and how one gets in.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub door: Door,
    pub login: Arc<Login>,
}

/// Passes commands and answers on until the connection ends; nothing moves unless it is polled.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// So many bytes of commands are put together before they are written.
const WRITE_BUFFER: usize = 64 * 1024;
/// So many commands wait to be written; those after them wait for a place.
const WAITING: usize = 1024;

impl Way {
    /// A connection that has let us in. Its errors hold no password.
    pub async fn connect(&self) -> Result<(MultiplexedConnection, Driver), String> {
        match &self.door {
            Door::Host(Host { name, port }) => {
                let stream =
                    TcpStream::connect((name.as_str(), *port)).await.map_err(|error| error.to_string())?;
                stream.set_nodelay(true).map_err(|error| error.to_string())?;
                self.greet(stream).await
            }
            Door::Socket(path) => {
                self.greet(UnixStream::connect(path).await.map_err(|error| error.to_string())?).await
            }
        }
    }

    async fn greet<S>(&self, stream: S) -> Result<(MultiplexedConnection, Driver), String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // Deadlines are the callers', each its own.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(WAITING)
            .set_write_backpressure_boundary(WRITE_BUFFER);
        let settings = self.login.settings()?;
        let (connection, driver) = MultiplexedConnection::new_with_config(&settings, stream, config)
            .await
            .map_err(|error| error.to_string())?;
        Ok((connection, Box::pin(driver)))
    }
}
