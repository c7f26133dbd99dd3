//! One server: its connections, and the scripts it has to be told.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Cmd, RedisResult, Value};

use super::answer::Answer;
use super::dial::Way;
use super::lane::{Lane, Up};
use super::scripts::sha_of;
use super::{Failure, Options};
use crate::script::{Call, Script};

/// Whether a command is on its way whose answer is not here: if nobody waits any longer, it may have run.
#[derive(Debug, Default)]
pub(super) struct Sent(AtomicBool);

impl Sent {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, sent: bool) {
        self.0.store(sent, Ordering::Relaxed);
    }
}

/// A server.
#[derive(Debug)]
pub(super) struct Node {
    lanes: Vec<Lane>,
    next: AtomicUsize,
    /// Held by whoever loads a script, so that of a thousand that need it one does.
    loading: tokio::sync::Mutex<()>,
    loaded: AtomicU64,
}

impl Node {
    pub fn start(way: Way, options: &Options) -> Self {
        let lane = || Lane::start(way.clone(), options.connect_within);
        Self {
            lanes: (0..options.connections.max(1)).map(|_| lane()).collect(),
            next: AtomicUsize::new(0),
            loading: tokio::sync::Mutex::new(()),
            loaded: AtomicU64::new(0),
        }
    }

    /// Waits for a connection, or for why there is none.
    pub async fn first_connection(&self, within: Duration) -> Result<(), String> {
        let first = &self.lanes[0];
        tokio::time::timeout(within, first.attempt()).await.unwrap_or_else(|_| Err(first.trouble()))
    }

    /// Runs a script that the server may not know yet. `Sent` is left set only where it may have run.
    pub async fn call(&self, call: &Call, sent: &Sent) -> Result<Answer, Failure> {
        self.call_after(None, call, sent).await
    }

    /// As [`Node::call`], with a command before it that must stand just before it: `ASKING`.
    pub async fn call_after(
        &self,
        before: Option<&Cmd>,
        call: &Call,
        sent: &Sent,
    ) -> Result<Answer, Failure> {
        let command = evalsha(call);
        for _ in 0..3 {
            let loaded = self.loaded.load(Ordering::Acquire);
            let answer = match before {
                None => self.command(&command, sent).await?,
                Some(before) => {
                    let mut row = redis::pipe();
                    row.add_command(before.clone()).add_command(command.clone());
                    self.send(sent, async |up| up.send_in_a_row(&row).await).await?
                }
            };
            if answer != Answer::NoScript {
                return Ok(answer);
            }
            self.load(call.script, loaded, sent).await?;
        }
        Err(Failure::NotRun(format!(
            "the server forgets the script {:?} as soon as it has it",
            call.script.name
        )))
    }

    /// Sends a command.
    pub async fn command(&self, command: &Cmd, sent: &Sent) -> Result<Answer, Failure> {
        self.send(sent, async |up| up.send(command).await).await
    }

    async fn send(
        &self,
        sent: &Sent,
        send: impl AsyncFnOnce(Up<'_>) -> RedisResult<Value>,
    ) -> Result<Answer, Failure> {
        let up = self.up()?;
        sent.set(true);
        // The connection ended. Whether before or after the command was written is not known.
        let answer = send(up).await.map_err(|error| Failure::MayHaveRun(format!("no answer: {error}")))?;
        sent.set(false);
        Ok(Answer::of(answer))
    }

    /// A connection that is up, each in its turn.
    fn up(&self) -> Result<Up<'_>, Failure> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.lanes.len();
        let up = (0..count).find_map(|step| self.lanes[turn.wrapping_add(step) % count].up());
        up.ok_or_else(|| Failure::NotRun(self.lanes[turn % count].trouble()))
    }

    /// Tells the server a script, unless somebody has since `loaded` was read. Doing so twice does no harm.
    async fn load(&self, script: &'static Script, loaded: u64, sent: &Sent) -> Result<(), Failure> {
        let _alone = self.loading.lock().await;
        if self.loaded.load(Ordering::Acquire) != loaded {
            return Ok(());
        }
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(script.source);
        let told = self.command(&command, sent).await;
        // Whatever became of it, the call itself has not run.
        sent.set(false);
        match told {
            Ok(Answer::Value(_)) => {
                self.loaded.fetch_add(1, Ordering::Release);
                Ok(())
            }
            Ok(Answer::Refused(error)) => Err(Failure::Refused(format!("script {:?}: {error}", script.name))),
            Ok(other) => other.or_failure().map(|_| ()),
            Err(Failure::MayHaveRun(error)) => Err(Failure::NotRun(error)),
            Err(other) => Err(other),
        }
    }
}

fn evalsha(call: &Call) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(&*sha_of(call.script)).arg(call.keys.len());
    for bytes in call.keys.iter().chain(&call.args) {
        command.arg(bytes.as_slice());
    }
    command
}
