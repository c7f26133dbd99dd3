//! The way to the servers: connections, topologies, and what became of a call.
//!
//! A command that may have run is never sent again. What proves that it did not run (`NOSCRIPT`, `MOVED`, ...) is
//! seen to here where it can be, and told as [`Failure::NotRun`] where not.

mod answer;
mod backoff;
mod dial;
mod lane;
mod node;
mod scripts;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Value;

use crate::address::{Address, Place};
use crate::script::Call;

use dial::{Door, Login, Way};
use node::{Node, Sent};

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It was proven not to have run: never sent, or the server said so.
    #[error("{0}")]
    NotRun(String),
    /// It may have run, once.
    #[error("{0}")]
    MayHaveRun(String),
    /// The server ran or read it and refused: an error of the script's, of the data it met, or of rights.
    #[error("{0}")]
    Refused(String),
}

/// How many connections there are and how long they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// Connections to each server, at least 1. Calls share them; a second one is there while the first is made anew.
    pub(crate) connections: usize,
    /// So many calls wait for an answer at most; one more is not sent.
    pub(crate) in_flight: usize,
    /// A connection must be ready after so long, encryption and password included.
    pub(crate) connect_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 2, in_flight: 8192, connect_within: Duration::from_secs(1) }
    }
}

/// Why there is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("store: {address}: {reason}")]
pub(crate) struct OpenError {
    /// Without its password.
    pub(crate) address: String,
    pub(crate) reason: String,
}

/// The way to the servers. To be shared by reference; connections are kept up by tasks of its own, which end with it.
#[derive(Debug)]
pub(crate) struct Link {
    servers: Servers,
    in_flight: AtomicUsize,
    in_flight_limit: usize,
}

#[derive(Debug)]
enum Servers {
    One(Node),
}

impl Link {
    /// Opens the link, and waits until there is a connection. Needs a tokio runtime, now and as long as it lives.
    pub(crate) async fn open(address: &Address, options: &Options) -> Result<Self, OpenError> {
        let fail = |reason| OpenError { address: address.to_string(), reason };
        let login = Login::of(address).map_err(fail)?;
        let door = match &address.place {
            Place::Server(host) => Door::Host(host.clone()),
            Place::Socket(path) => Door::Socket(path.clone()),
        };
        let node = Node::start(Way { door, login }, options);
        node.first_connection(options.connect_within).await.map_err(fail)?;
        Ok(Self {
            servers: Servers::One(node),
            in_flight: AtomicUsize::new(0),
            in_flight_limit: options.in_flight,
        })
    }

    /// Runs a script, once or not at all, and waits `within` for its answer.
    pub(crate) async fn call(&self, call: &Call, within: Duration) -> Result<Value, Failure> {
        let work = async |sent: &Sent| match &self.servers {
            Servers::One(node) => node.call(call, sent).await?.or_failure(),
        };
        self.limited(within, work).await
    }

    /// The server's time, in microseconds since the Unix epoch.
    pub(crate) async fn time(&self, within: Duration) -> Result<u64, Failure> {
        answer::time(self.plain(&redis::cmd("TIME"), within).await?)
    }

    /// Removes keys, all in one slot, and says how many there were.
    pub(crate) async fn delete(&self, keys: &[Vec<u8>], within: Duration) -> Result<u64, Failure> {
        if keys.is_empty() {
            return Ok(0);
        }
        let mut command = redis::cmd("DEL");
        command.arg(keys);
        answer::count(self.plain(&command, within).await?)
    }

    /// Whether the server answers.
    pub(crate) async fn ping(&self, within: Duration) -> Result<(), Failure> {
        self.plain(&redis::cmd("PING"), within).await.map(|_| ())
    }

    /// The server's name and version as it gives them, such as `Redis 7.0.15`.
    pub(crate) async fn version(&self, within: Duration) -> Result<String, Failure> {
        let mut command = redis::cmd("INFO");
        command.arg("server");
        answer::version(self.plain(&command, within).await?)
    }

    async fn plain(&self, command: &redis::Cmd, within: Duration) -> Result<Value, Failure> {
        let work = async |sent: &Sent| match &self.servers {
            Servers::One(node) => node.command(command, sent).await?.or_failure(),
        };
        self.limited(within, work).await
    }

    /// Does work that sends commands, unless there is too much of it already, and not for longer than `within`.
    async fn limited<T>(
        &self,
        within: Duration,
        work: impl AsyncFnOnce(&Sent) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let _seat = self.seat()?;
        let sent = Sent::default();
        match tokio::time::timeout(within, work(&sent)).await {
            Ok(result) => result,
            Err(_) if sent.is_set() => Err(Failure::MayHaveRun(format!("no answer within {within:?}"))),
            Err(_) => Err(Failure::NotRun(format!("no server to send it to within {within:?}"))),
        }
    }

    fn seat(&self) -> Result<Seat<'_>, Failure> {
        let limit = self.in_flight_limit;
        let seat = Seat(&self.in_flight);
        if self.in_flight.fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(seat);
        }
        Err(Failure::NotRun(format!("overloaded: {limit} calls wait for the store already")))
    }
}

/// A call's seat among those in flight.
struct Seat<'a>(&'a AtomicUsize);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
