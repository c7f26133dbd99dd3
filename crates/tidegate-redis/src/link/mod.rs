//! The way to the servers: connections, topologies, and what became of a call.
//!
//! A command that may have run is never sent again. What proves that it did not run (`NOSCRIPT`, `MOVED`, ...) is
//! seen to here where it can be, and told as [`Failure::NotRun`] where not.

mod answer;
mod backoff;
mod breaker;
mod cluster;
mod dial;
pub(crate) mod discipline;
mod lane;
mod node;
mod scripts;
mod sentinel;
mod slots;
mod stranger;
#[cfg(feature = "tls")]
mod tls;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Cmd, Value};
use tidegate::clock::{Clock, SystemClock};

use crate::address::{Address, Host, Place};
use crate::script::Call;

use cluster::Cluster;
use dial::{Door, Login, Way};
use node::{Node, Sent};
use sentinel::Watched;
use work::{Plain, Run, Work};

pub(crate) use slots::slot_of;

/// What scripts are run with, and run.
pub(crate) const RIGHTS: &str =
    "EVALSHA, SCRIPT LOAD, GET, SET, DEL, GETRANGE, SETRANGE, STRLEN, PEXPIRE and PERSIST";

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It was proven not to have run: never sent, or the server said so.
    #[error("{0}")]
    NotRun(String),
    /// It may have run, once.
    #[error("{0}")]
    MayHaveRun(String),
    /// The server has no memory left, and had none before it wrote anything.
    #[error("{0}")]
    NoRoom(String),
    /// The user may not do that; `begun` if a script may have been half way through.
    #[error("{said} (the user needs {RIGHTS} on these keys)")]
    NotAllowed { said: String, begun: bool },
    /// A script met data under its keys that is none of ours, and ended before it wrote a record.
    #[error("{0}")]
    Foreign(String),
    /// The server refused for a reason of its own.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// What it is if all that was to be done was to look: whether it ran makes no difference.
    pub(crate) fn of_a_look(self) -> Self {
        match self {
            Self::MayHaveRun(said) => Self::NotRun(said),
            Self::NotAllowed { said, .. } => Self::NotAllowed { said, begun: false },
            other => other,
        }
    }
}

/// How many connections there are, how long they may take, and when a server is given up.
#[derive(Clone)]
pub(crate) struct Options {
    /// Connections to each server, at least 1. Calls share the first for as long as it does well; the next are there
    /// when many wait on it, or it is made anew.
    pub(crate) connections: usize,
    /// So many calls wait for an answer at most; one more is not sent.
    pub(crate) in_flight: usize,
    /// A connection must be ready after so long, encryption and password included.
    pub(crate) connect_within: Duration,
    /// After so many calls in a row without an answer a server is not asked, until a probe is answered.
    pub(crate) give_up_after: u32,
    /// Says when the next probe is due.
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 2,
            in_flight: 8192,
            connect_within: Duration::from_secs(1),
            give_up_after: 5,
            clock: Arc::new(SystemClock::new()),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, in_flight, connect_within, give_up_after, clock: _ } = self;
        f.debug_struct("Options")
            .field("connections", connections)
            .field("in_flight", in_flight)
            .field("connect_within", connect_within)
            .field("give_up_after", give_up_after)
            .finish_non_exhaustive()
    }
}

/// What a server's clock said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Which server.
    pub(crate) server: String,
    /// Our clock before it was asked.
    pub(crate) before: u64,
    /// Its clock, in microseconds since the Unix epoch.
    pub(crate) time: u64,
    /// Our clock after it answered.
    pub(crate) after: u64,
}

/// Why there is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("store: {address}: {reason}")]
pub(crate) struct OpenError {
    /// Without its password.
    pub(crate) address: String,
    pub(crate) reason: String,
}

/// The way to the servers. A clone is the same way. Connections are kept up by tasks of its own, which end with the
/// last clone.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    servers: Arc<Servers>,
    in_flight: Arc<AtomicUsize>,
    in_flight_limit: usize,
}

#[derive(Debug)]
enum Servers {
    One(Arc<Node>),
    Watched(Watched),
    Cluster(Cluster),
}

impl Link {
    /// Opens the link, and waits until there is a connection. Needs a tokio runtime, now and as long as it lives.
    pub(crate) async fn open(address: &Address, options: &Options) -> Result<Self, OpenError> {
        let opened = Servers::open(address, options).await;
        let servers = opened.map_err(|reason| OpenError { address: address.to_string(), reason })?;
        let (servers, in_flight) = (Arc::new(servers), Arc::default());
        Ok(Self { servers, in_flight, in_flight_limit: options.in_flight })
    }

    /// Runs a script, once or not at all, and waits `within` for its answer. In a cluster its keys must all be in
    /// one slot.
    pub(crate) async fn call(&self, call: &Call, within: Duration) -> Result<Value, Failure> {
        self.run(call, within, &Sent::default()).await
    }

    /// The same for somebody who waits for only a part of the time that the server has. Their haste says nothing about
    /// the server: the call goes on without them, and what becomes of it is counted as any other's. What has not been
    /// sent by then is not sent.
    pub(crate) async fn call_in_haste(
        &self,
        call: &Call,
        within: Duration,
        server_has: Duration,
    ) -> Result<Value, Failure> {
        if within >= server_has {
            return self.call(call, within).await;
        }
        let sent = Arc::new(Sent::default());
        let going_on = {
            let (link, call, sent) = (self.clone(), call.clone(), Arc::clone(&sent));
            tokio::spawn(async move { link.run(&call, server_has, &sent).await })
        };
        match tokio::time::timeout(within, going_on).await {
            Ok(Ok(answer)) => answer,
            // The runtime is at its end, and has cut it off.
            Ok(Err(ended)) => Err(Failure::MayHaveRun(format!("the call was cut off: {ended}"))),
            Err(_) if sent.leave() => Err(Failure::MayHaveRun(format!("no answer within {within:?}"))),
            Err(_) => Err(Failure::NotRun(format!("no server to send it to within {within:?}"))),
        }
    }

    async fn run(&self, call: &Call, within: Duration, sent: &Sent) -> Result<Value, Failure> {
        let slot = call.keys.first().map(|key| slot_of(key));
        self.limited(within, sent, async |sent| self.servers.run(slot, &Run { call, sent }).await).await
    }

    /// What keys have to share to go into one call: a slot in a cluster; elsewhere nothing, so it is the same for all.
    pub(crate) fn slot_for(&self, key: &[u8]) -> u16 {
        if self.is_cluster() { slot_of(key) } else { 0 }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(&*self.servers, Servers::Cluster(_))
    }

    /// The time of each master, in microseconds since the Unix epoch, with the name of the server and what `now`
    /// said before it was asked and after it answered. Each is waited for no longer than `within`; those that do not
    /// answer are left out.
    pub(crate) async fn times(&self, now: &(impl Fn() -> u64 + Sync), within: Duration) -> Vec<Reading> {
        let mut readings = Vec::new();
        for node in self.servers.masters() {
            let work = async |sent: &Sent| {
                let before = now();
                let answer = node.command(None, &redis::cmd("TIME"), sent).await?.or_failure()?;
                Ok(Reading { server: node.name(), before, time: answer::time(answer)?, after: now() })
            };
            readings.extend(self.limited(within, &Sent::default(), work).await);
        }
        readings
    }

    /// Removes keys, and says how many there were. In a cluster with a command for each slot; where one fails, others
    /// may have run.
    pub(crate) async fn delete(&self, keys: &[Vec<u8>], within: Duration) -> Result<u64, Failure> {
        let mut by_slot: BTreeMap<u16, Vec<&[u8]>> = BTreeMap::new();
        for key in keys {
            by_slot.entry(self.slot_for(key)).or_default().push(key);
        }
        let mut removed = 0;
        for (slot, keys) in by_slot {
            let mut command = redis::cmd("DEL");
            command.arg(keys);
            removed += answer::count(self.plain(Some(slot), &command, within).await?)?;
        }
        Ok(removed)
    }

    /// Whether the server answers; in a cluster, some node of it.
    pub(crate) async fn ping(&self, within: Duration) -> Result<(), Failure> {
        self.plain(None, &redis::cmd("PING"), within).await.map(|_| ())
    }

    /// The server's name and version as it gives them, such as `Redis 7.0.15`.
    pub(crate) async fn version(&self, within: Duration) -> Result<String, Failure> {
        let mut command = redis::cmd("INFO");
        command.arg("server");
        answer::version(self.plain(None, &command, within).await?)
    }

    async fn plain(&self, slot: Option<u16>, command: &Cmd, within: Duration) -> Result<Value, Failure> {
        let work = async |sent: &Sent| self.servers.run(slot, &Plain { command, sent }).await;
        self.limited(within, &Sent::default(), work).await
    }

    /// Does work that sends commands, unless there is too much of it already, and not for longer than `within`.
    async fn limited<T>(
        &self,
        within: Duration,
        sent: &Sent,
        work: impl AsyncFnOnce(&Sent) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let _seat = self.seat()?;
        let mut work = pin!(work(sent));
        let result = tokio::time::timeout(within, &mut work).await;
        if result.is_err() {
            // Before the work is dropped, so that what it had begun knows why.
            sent.give_up();
        }
        match result {
            Ok(result) => result,
            Err(_) if sent.is_underway() => Err(Failure::MayHaveRun(format!("no answer within {within:?}"))),
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

impl Servers {
    async fn open(address: &Address, options: &Options) -> Result<Self, String> {
        let login = Login::of(address)?;
        let door = match &address.place {
            Place::Server(host) => Door::Host(host.clone()),
            Place::Socket(path) => Door::Socket(path.clone()),
            Place::Sentinel { sentinels, master, credentials } => {
                let theirs = Login::of_sentinels(address, credentials)?;
                let way = |host: &Host| Way { door: Door::Host(host.clone()), login: Arc::clone(&theirs) };
                let sentinels = sentinels.iter().map(way).collect();
                return Watched::start(sentinels, master, login, options).await.map(Self::Watched);
            }
            Place::Cluster(seeds) => return Cluster::start(seeds, login, options).await.map(Self::Cluster),
        };
        let node = Node::start(Way { door, login }, options);
        node.first_connection().await?;
        Ok(Self::One(Arc::new(node)))
    }

    /// Does the work where it is to be done.
    async fn run(&self, slot: Option<u16>, work: &impl Work) -> Result<Value, Failure> {
        match self {
            Self::One(node) => work.at(node, None).await?.or_failure(),
            Self::Watched(watched) => watched.run(work).await,
            Self::Cluster(cluster) => cluster.run(slot, work).await,
        }
    }

    fn masters(&self) -> Vec<Arc<Node>> {
        match self {
            Self::One(node) => vec![Arc::clone(node)],
            Self::Watched(watched) => vec![watched.master()],
            Self::Cluster(cluster) => cluster.masters(),
        }
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
