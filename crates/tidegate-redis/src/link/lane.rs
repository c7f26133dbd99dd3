//! One connection to a server, made anew whenever it ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::backoff::Backoff;
use super::dial::{Driver, Way};

/// A connection whose calls have all had no answer for twice so long is given up and made anew. The
/// server may be gone without a word, and what stands before it in line is of no use to anybody.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// So many calls share a connection before the next one is used too.
const CROWDED: u64 = 512;
/// A connection, when there is one, and the task that keeps it up.
#[derive(Debug)]
pub(super) struct Lane {
    shared: Arc<Shared>,
    keeper: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    way: Way,
    connect_within: Duration,
    connection: ArcSwapOption<MultiplexedConnection>,
    /// Why there is none.
    trouble: Mutex<String>,
    /// Told after every attempt to connect.
    attempted: Notify,
    /// Whether there was one.
    tried: AtomicBool,
    sent: AtomicU64,
    answers: AtomicU64,
    /// Calls that were given up.
    unanswered: AtomicU64,
    /// Whether one was, after the last answer: it may stand behind one that holds the connection up.
    doubted: AtomicBool,
}

impl Lane {
    pub fn start(way: Way, connect_within: Duration) -> Self {
        let shared = Arc::new(Shared {
            way,
            connect_within,
            connection: ArcSwapOption::empty(),
            trouble: Mutex::new("not connected yet".to_owned()),
            attempted: Notify::new(),
            tried: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            doubted: AtomicBool::new(false),
        });
        let keeper = tokio::spawn(Arc::clone(&shared).keep());
        Self { shared, keeper }
    }

    pub fn is_up(&self) -> bool {
        self.shared.connection.load().is_some()
    }

    /// Why there is no connection.
    pub fn trouble(&self) -> String {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the first attempt to connect goes on.
    pub fn is_new(&self) -> bool {
        !self.shared.tried.load(Ordering::Acquire)
    }

    /// Waits until there is a connection, or the attempt to make one fails; then says why it did.
    pub async fn attempt(&self) -> Result<(), String> {
        let attempted = self.shared.attempted.notified();
        if self.is_up() {
            return Ok(());
        }
        attempted.await;
        if self.is_up() { Ok(()) } else { Err(self.trouble()) }
    }

    /// Whether one more call does well on it: not so many wait already that another connection had better share the
    /// work, and none was given up lately.
    pub fn has_room(&self) -> bool {
        let Shared { sent, answers, unanswered, doubted, .. } = &*self.shared;
        let over = answers.load(Ordering::Relaxed) + unanswered.load(Ordering::Relaxed);
        sent.load(Ordering::Relaxed).saturating_sub(over) < CROWDED && !doubted.load(Ordering::Relaxed)
    }

    /// The connection to send by, if there is one.
    pub fn up(&self) -> Option<Up<'_>> {
        let connection = self.shared.connection.load();
        Some(Up { connection: connection.as_deref()?.clone(), shared: &self.shared })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// A connection that was there a moment ago.
pub(super) struct Up<'a> {
    connection: MultiplexedConnection,
    shared: &'a Shared,
}

impl Up<'_> {
    /// Sends a command. On an error it may have run.
    pub async fn send(mut self, command: &Cmd) -> RedisResult<Value> {
        let waiting = Waiting::on(self.shared);
        let answer = self.connection.send_packed_command(command).await;
        waiting.over();
        answer
    }

    /// Sends commands with nothing of others between them, and gives the answer to the last.
    pub async fn send_in_a_row(mut self, commands: &Pipeline) -> RedisResult<Value> {
        let waiting = Waiting::on(self.shared);
        let answer = self.connection.send_packed_commands(commands, commands.len() - 1, 1).await;
        waiting.over();
        Ok(answer?.pop().unwrap_or(Value::Nil))
    }
}

/// A call that waits. Dropped before its time it counts as unanswered.
struct Waiting<'a> {
    shared: &'a Shared,
    answered: bool,
}

impl<'a> Waiting<'a> {
    fn on(shared: &'a Shared) -> Self {
        shared.sent.fetch_add(1, Ordering::Relaxed);
        Self { shared, answered: false }
    }

    fn over(mut self) {
        self.answered = true;
        self.shared.answers.fetch_add(1, Ordering::Relaxed);
        if self.shared.doubted.load(Ordering::Relaxed) {
            self.shared.doubted.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.shared.unanswered.fetch_add(1, Ordering::Relaxed);
            self.shared.doubted.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared {
    async fn keep(self: Arc<Self>) {
        let mut backoff = Backoff::between(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            let trouble = match tokio::time::timeout(self.connect_within, self.way.connect()).await {
                Ok(Ok((connection, driver))) => {
                    backoff.reset();
                    self.doubted.store(false, Ordering::Relaxed);
                    self.connection.store(Some(Arc::new(connection)));
                    self.tell();
                    let trouble = self.drive(driver).await;
                    self.connection.store(None);
                    trouble.to_owned()
                }
                Ok(Err(trouble)) => trouble,
                Err(_) => format!("no connection within {:?}", self.connect_within),
            };
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) =
                format!("{}: {trouble}", self.way.door);
            self.tell();
            tokio::time::sleep(backoff.next()).await;
        }
    }

    fn tell(&self) {
        self.tried.store(true, Ordering::Release);
        self.attempted.notify_waiters();
    }

    /// Until the connection ends, or is to be given up.
    async fn drive(&self, mut driver: Driver) -> &'static str {
        let mut silent = 0;
        loop {
            let before = (self.answers.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed));
            if tokio::time::timeout(LOOK_EVERY, &mut driver).await.is_ok() {
                return "the connection ended";
            }
            let after = (self.answers.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed));
            silent = if after.0 == before.0 && after.1 > before.1 { silent + 1 } else { 0 };
            if silent == 2 {
                return "the server did not answer";
            }
        }
    }
}
