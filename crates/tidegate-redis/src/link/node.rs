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
    name: String,
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
            name: way.door.to_string(),
            lanes: (0..options.connections.max(1)).map(|_| lane()).collect(),
            next: AtomicUsize::new(0),
            loading: tokio::sync::Mutex::new(()),
            loaded: AtomicU64::new(0),
        }
    }

    /// Where it is.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Waits for a connection, or for why there is none.
    pub async fn first_connection(&self, within: Duration) -> Result<(), String> {
        let first = &self.lanes[0];
        tokio::time::timeout(within, first.attempt()).await.unwrap_or_else(|_| Err(first.trouble()))
    }

    /// Runs a script that the server may not know yet, `before` it the command that must stand just before it
    /// (`ASKING`). `Sent` is left set only where it may have run.
    pub async fn call(&self, before: Option<&Cmd>, call: &Call, sent: &Sent) -> Result<Answer, Failure> {
        let command = evalsha(call);
        for _ in 0..3 {
            let loaded = self.loaded.load(Ordering::Acquire);
            let answer = self.command(before, &command, sent).await?;
            if answer != Answer::NoScript {
                return Ok(answer);
            }
            if let Some(refused) = self.load(call.script, loaded, sent).await? {
                return Ok(refused);
            }
        }
        Err(Failure::NotRun(format!(
            "the server forgets the script {:?} as soon as it has it",
            call.script.name
        )))
    }

    /// Sends a command, `before` it the one that must stand just before it.
    pub async fn command(&self, before: Option<&Cmd>, command: &Cmd, sent: &Sent) -> Result<Answer, Failure> {
        let Some(before) = before else {
            return self.send(sent, async |up| up.send(command).await).await;
        };
        let mut row = redis::pipe();
        row.add_command(before.clone()).add_command(command.clone());
        self.send(sent, async |up| up.send_in_a_row(&row).await).await
    }

    async fn send(
        &self,
        sent: &Sent,
        send: impl AsyncFnOnce(Up<'_>) -> RedisResult<Value>,
    ) -> Result<Answer, Failure> {
        let up = self.up().await?;
        sent.set(true);
        // The connection ended. Whether before or after the command was written is not known.
        let answer = send(up).await.map_err(|error| Failure::MayHaveRun(format!("no answer: {error}")))?;
        sent.set(false);
        Ok(Answer::of(answer))
    }

    /// A connection that is up, each in its turn. One that was never there yet is waited for: it is about to be.
    async fn up(&self) -> Result<Up<'_>, Failure> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.lanes.len();
        let lane = |step: usize| &self.lanes[turn.wrapping_add(step) % count];
        let up = || (0..count).find_map(|step| lane(step).up());
        if let Some(up) = up() {
            return Ok(up);
        }
        if lane(0).is_new() {
            lane(0).attempt().await.map_err(Failure::NotRun)?;
        }
        up().ok_or_else(|| Failure::NotRun(lane(0).trouble()))
    }

    /// Tells the server a script, unless somebody has since `loaded` was read. Doing so twice does no harm. An answer
    /// that keeps the script from running is handed on.
    async fn load(
        &self,
        script: &'static Script,
        loaded: u64,
        sent: &Sent,
    ) -> Result<Option<Answer>, Failure> {
        let _alone = self.loading.lock().await;
        if self.loaded.load(Ordering::Acquire) != loaded {
            return Ok(None);
        }
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(script.source);
        // Whatever becomes of it, the call itself has not run.
        let told = self.command(None, &command, &Sent::default()).await;
        sent.set(false);
        match told {
            Ok(Answer::Value(_)) => {
                self.loaded.fetch_add(1, Ordering::Release);
                Ok(None)
            }
            Ok(Answer::Refused(error)) => {
                Ok(Some(Answer::Refused(format!("script {:?}: {error}", script.name))))
            }
            Ok(other) => Ok(Some(other)),
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
