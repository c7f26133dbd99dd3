//! Making a connection.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, RedisConnectionInfo, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::stranger::spoken_at;
use crate::address::{Address, Credentials, Host, Tls};

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
    /// How the names of their settings begin.
    whose: &'static str,
    database: u32,
    tls: Option<Tls>,
}

impl Login {
    /// How one gets into the servers that keep the keys.
    pub fn of(address: &Address) -> Result<Arc<Self>, String> {
        Self::with(address, address.credentials.clone(), "", address.database)
    }

    /// How one gets into the sentinels.
    pub fn of_sentinels(address: &Address, credentials: &Credentials) -> Result<Arc<Self>, String> {
        Self::with(address, credentials.clone(), "sentinel_", 0)
    }

    fn with(
        address: &Address,
        credentials: Credentials,
        whose: &'static str,
        database: u32,
    ) -> Result<Arc<Self>, String> {
        // What the address names is read now too, so that a missing file is told at once.
        credentials.password.read(whose)?;
        if let Some(tls) = &address.tls {
            configured(tls)?;
        }
        Ok(Arc::new(Self { credentials, whose, database, tls: address.tls.clone() }))
    }

    fn settings(&self) -> Result<RedisConnectionInfo, String> {
        // The name tells the server's operator who is there. Its answer is also the proof that somebody listens.
        let mut settings = RedisConnectionInfo::default()
            .set_db(self.database.into())
            .set_lib_name("tidegate", env!("CARGO_PKG_VERSION"));
        if let Some(user) = &self.credentials.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = self.credentials.password.read(self.whose)? {
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
    /// Asks one thing on a connection of its own.
    pub async fn ask(&self, command: &redis::Cmd, within: Duration) -> Result<Value, String> {
        let asking = async {
            let (mut connection, driver) = self.connect().await?;
            let answer = tokio::select! {
                () = driver => return Err("the connection ended".to_owned()),
                answer = connection.send_packed_command(command) => answer,
            };
            answer.and_then(Value::extract_error).map_err(|error| error.to_string())
        };
        let answer = tokio::time::timeout(within, asking).await;
        answer
            .unwrap_or_else(|_| Err(format!("no answer within {within:?}")))
            .map_err(|error| format!("{}: {error}", self.door))
    }

    /// A connection that has let us in. Its errors hold no password.
    pub async fn connect(&self) -> Result<(MultiplexedConnection, Driver), String> {
        match &self.door {
            Door::Host(host @ Host { name, port }) => {
                let stream =
                    TcpStream::connect((name.as_str(), *port)).await.map_err(|error| error.to_string())?;
                stream.set_nodelay(true).map_err(|error| error.to_string())?;
                match &self.login.tls {
                    None => match self.greet(stream).await {
                        Err(error) if !error.starts_with(ASKS_FOR_A_PASSWORD) => {
                            Err(told_of_a_stranger(host, false).await.unwrap_or(error))
                        }
                        greeted => greeted,
                    },
                    Some(tls) => self.greet(encrypted(stream, tls, host).await?).await,
                }
            }
            Door::Socket(path) => {
                self.greet(UnixStream::connect(path).await.map_err(|error| error.to_string())?).await
            }
        }
    }

    /// A connection on which one is told of what others publish.
    pub async fn listen(&self) -> Result<PubSub, String> {
        let Door::Host(Host { name, port }) = &self.door else {
            return Err("only hosts publish".to_owned());
        };
        let settings = self.login.settings()?;
        let stream = TcpStream::connect((name.as_str(), *port)).await.map_err(|error| error.to_string())?;
        let listening = match &self.login.tls {
            None => PubSub::new(&settings, stream).await,
            Some(tls) => PubSub::new(&settings, encrypt(stream, tls, name).await?).await,
        };
        listening.map_err(|error| error.to_string())
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
        let (mut connection, driver) = MultiplexedConnection::new_with_config(&settings, stream, config)
            .await
            .map_err(|error| error.to_string())?;
        let mut driver: Driver = Box::pin(driver);
        let ping = redis::cmd("PING");
        let answer = tokio::select! {
            () = &mut driver => return Err("the connection ended".to_owned()),
            answer = connection.send_packed_command(&ping) => answer,
        };
        match answer.map_err(|error| error.to_string())? {
            // Without a password redis-rs finds nothing wrong.
            Value::ServerError(error) if error.code() == "NOAUTH" => {
                let whose = self.login.whose;
                Err(format!(
                    "{ASKS_FOR_A_PASSWORD} it asks for a password (add {whose}password_env=NAME after ?)"
                ))
            }
            // Whatever else is wrong now may be right for what is asked later.
            _ => Ok((connection, driver)),
        }
    }
}

const ASKS_FOR_A_PASSWORD: &str = "NOAUTH:";

/// A server that was greeted in a way it does not understand may wait for more; then it is asked in another.
const WAITS_FOR: Duration = Duration::from_millis(500);

/// The stream, encrypted.
async fn encrypted(
    stream: TcpStream,
    tls: &Tls,
    host: &Host,
) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, String> {
    let stranger = async {
        tokio::time::sleep(WAITS_FOR).await;
        match told_of_a_stranger(host, true).await {
            Some(said) => said,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        done = encrypt(stream, tls, &host.name) => match done {
            Err(error) => Err(told_of_a_stranger(host, true).await.unwrap_or(error)),
            done => done,
        },
        said = stranger => Err(said),
    }
}

/// What is wrong, if whoever is there speaks otherwise than the address says.
async fn told_of_a_stranger(host: &Host, encrypted: bool) -> Option<String> {
    let said = spoken_at(host).await?.instead_of(encrypted)?;
    Some(said.to_owned())
}

#[cfg(feature = "tls")]
use super::tls::encrypt;

#[cfg(feature = "tls")]
fn configured(tls: &Tls) -> Result<(), String> {
    super::tls::configuration(tls).map(|_| ())
}

#[cfg(not(feature = "tls"))]
const WITHOUT: &str = "rediss:// is not in this build (build with the feature `tls`)";

#[cfg(not(feature = "tls"))]
fn configured(_: &Tls) -> Result<(), String> {
    Err(WITHOUT.to_owned())
}

#[cfg(not(feature = "tls"))]
async fn encrypt(_: TcpStream, _: &Tls, _: &str) -> Result<TcpStream, String> {
    Err(WITHOUT.to_owned())
}
