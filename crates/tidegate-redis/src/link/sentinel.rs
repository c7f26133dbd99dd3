//! The master of a name, wherever sentinels say that it is.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_core::Stream;
use redis::aio::PubSub;
use redis::{Cmd, Msg, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::backoff::Backoff;
use super::dial::{Door, Login, Way};
use super::node::Node;
use super::{Failure, Options, Work};
use crate::address::Host;

/// A sentinel is asked again so often though it has told of nothing: what it told may have been lost.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// When the master is doubted it is asked at once, then no sooner than after waits between these.
const ASK_AT_MOST_EVERY: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// The master, and the task that follows it from server to server.
#[derive(Debug)]
pub(super) struct Watched {
    shared: Arc<Shared>,
    keeper: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    sentinels: Vec<Way>,
    name: String,
    login: Arc<Login>,
    options: Options,
    master: watch::Sender<Master>,
    /// Somebody cannot reach the master, or was told that it is none.
    doubted: Notify,
    no_master: AtomicBool,
}

#[derive(Debug, Clone)]
struct Master {
    host: Host,
    node: Arc<Node>,
}

impl Watched {
    /// Finds the master and waits until there is a connection to it.
    pub async fn start(
        sentinels: Vec<Way>,
        name: &str,
        login: Arc<Login>,
        options: &Options,
    ) -> Result<Self, String> {
        let mut troubles = Vec::new();
        for sentinel in &sentinels {
            let found = match ask(sentinel, name, options.connect_within).await {
                Ok(host) => connected(host, &login, options).await,
                Err(trouble) => Err(trouble),
            };
            match found {
                Ok(master) => {
                    let shared = Arc::new(Shared {
                        sentinels: sentinels.clone(),
                        name: name.to_owned(),
                        login,
                        options: options.clone(),
                        master: watch::Sender::new(master),
                        doubted: Notify::new(),
                        no_master: AtomicBool::new(false),
                    });
                    let keeper = tokio::spawn(Arc::clone(&shared).keep());
                    return Ok(Self { shared, keeper });
                }
                Err(trouble) => troubles.push(trouble),
            }
        }
        Err(troubles.join("; "))
    }

    /// The master, as far as is known.
    pub fn master(&self) -> Arc<Node> {
        Arc::clone(&self.shared.master.borrow().node)
    }

    /// Does the work at the master. If that is none any more, waits for the next, for as long as the caller does.
    pub async fn run(&self, work: &impl Work) -> Result<Value, Failure> {
        let mut masters = self.shared.master.subscribe();
        loop {
            let node = Arc::clone(&masters.borrow_and_update().node);
            match work.at(&node, None).await {
                Ok(Answer::NotMaster(said)) => {
                    self.shared.no_master.store(true, Ordering::Relaxed);
                    self.shared.doubted.notify_one();
                    if masters.changed().await.is_err() {
                        return Err(Failure::NotRun(said));
                    }
                }
                Ok(answer) => return answer.or_failure(),
                Err(failure) => {
                    self.shared.doubted.notify_one();
                    return Err(failure);
                }
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Shared {
    async fn keep(self: Arc<Self>) {
        let mut backoff = Backoff::between(Duration::from_millis(10), Duration::from_secs(1));
        for sentinel in self.sentinels.iter().cycle() {
            // It ends when this sentinel has nothing more to say; the next may.
            if self.follow(sentinel).await {
                backoff.reset();
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Follows the master by what one sentinel says, until it falls silent or says what cannot be. Whether it was of
    /// any use.
    async fn follow(&self, sentinel: &Way) -> bool {
        let within = self.options.connect_within;
        let Ok(Ok(listening)) = tokio::time::timeout(within, self.listen(sentinel)).await else {
            return false;
        };
        let (_sink, mut messages) = listening.split();
        let [least, most] = ASK_AT_MOST_EVERY;
        let mut waits = Backoff::between(least, most);
        let mut told = false;
        loop {
            let no_master = self.no_master.swap(false, Ordering::Relaxed);
            let Ok(host) = ask(sentinel, &self.name, within).await else { return told };
            if host != self.master.borrow().host {
                // Until the new one can be reached, the old one answers that it is none, or nothing at all.
                let Ok(master) = connected(host, &self.login, &self.options).await else { return told };
                self.master.send_replace(master);
                waits.reset();
            } else if no_master {
                // Another sentinel may know better.
                return told;
            }
            told = true;
            let wait = waits.next();
            let doubted = async {
                tokio::time::sleep(wait).await;
                self.doubted.notified().await;
            };
            tokio::select! {
                heard = self.hear(&mut messages) => if !heard { return told },
                () = doubted => {}
                () = tokio::time::sleep(ASK_EVERY) => waits.reset(),
            }
        }
    }

    async fn listen(&self, sentinel: &Way) -> Result<PubSub, String> {
        let mut listening = sentinel.listen().await?;
        listening.subscribe("+switch-master").await.map_err(|error| error.to_string())?;
        Ok(listening)
    }

    /// Waits until our master is said to be replaced; `false` when nothing more will be said.
    async fn hear(&self, mut messages: impl Stream<Item = Msg> + Unpin) -> bool {
        loop {
            let Some(message) =
                std::future::poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await
            else {
                return false;
            };
            // "mymaster 127.0.0.1 6379 127.0.0.1 6380"
            let told = message.get_payload_bytes();
            if told.strip_prefix(self.name.as_bytes()).is_some_and(|rest| rest.starts_with(b" ")) {
                return true;
            }
        }
    }
}

async fn connected(host: Host, login: &Arc<Login>, options: &Options) -> Result<Master, String> {
    let node = Node::start(Way { door: Door::Host(host.clone()), login: Arc::clone(login) }, options);
    node.first_connection().await?;
    Ok(Master { host, node: Arc::new(node) })
}

/// Where the master is, by what a sentinel says.
async fn ask(sentinel: &Way, name: &str, within: Duration) -> Result<Host, String> {
    let mut command = Cmd::new();
    command.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let answer: Option<(String, u16)> =
        redis::from_redis_value(sentinel.ask(&command, within).await?).map_err(|error| error.to_string())?;
    match answer {
        Some((name, port)) => Ok(Host { name, port }),
        None => {
            Err(format!("{}: knows no master {name:?} (write the name in its sentinel.conf)", sentinel.door))
        }
    }
}
