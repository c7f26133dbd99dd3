//! One server: its connections, and the scripts it has to be told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, RedisResult, Value};
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::breaker::Breaker;
use super::dial::Way;
use super::lane::{Lane, Up};
use super::scripts::sha_of;
use super::{Failure, Options};
use crate::script::{Call, Script};

/// What is known of a call while it waits: should nobody wait any longer, what became of it.
#[derive(Debug, Default)]
pub(super) struct Sent {
    state: AtomicU8,
    given_up: AtomicBool,
}

/// No command is on its way whose answer is not here.
const IDLE: u8 = 0;
/// One is.
const UNDERWAY: u8 = 1;
/// Nobody waits any more: nothing more is to be sent.
const LEFT: u8 = 2;

impl Sent {
    /// Whether it may have run.
    pub fn is_underway(&self) -> bool {
        self.state.load(Ordering::Relaxed) == UNDERWAY
    }

    /// A command is about to be sent. `false` if it is not to be.
    fn begin(&self) -> bool {
        self.state.compare_exchange(IDLE, UNDERWAY, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Its answer is here.
    fn end(&self) {
        // Whoever has left knows no more of it.
        let _ = self.state.compare_exchange(UNDERWAY, IDLE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whoever asked waits no longer; what is on its way goes on without them. Whether anything is.
    pub fn leave(&self) -> bool {
        self.state.swap(LEFT, Ordering::Relaxed) == UNDERWAY
    }

    /// The server's time is over. A call that is dropped otherwise says nothing of the server.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

/// A server.
#[derive(Debug)]
pub(super) struct Node {
    ways: Arc<Ways>,
    /// Held by whoever loads a script, so that of a thousand that need it one does.
    loading: tokio::sync::Mutex<()>,
    /// How often each script has been told.
    loaded: Mutex<HashMap<usize, u64>>,
    prober: JoinHandle<()>,
}

/// The connections, and whether they are used.
#[derive(Debug)]
struct Ways {
    name: String,
    lanes: Vec<Lane>,
    next: AtomicUsize,
    breaker: Breaker,
}

/// By which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lanes {
    /// The first that does well: the more commands a server reads at once, the less each costs it.
    First,
    /// Each in its turn, so that none is idle for long: one that is may be cut on the way without a word.
    InTurn,
}

/// A probe is waited for so long.
const PROBE_WITHIN: Duration = Duration::from_millis(500);

impl Node {
    pub fn start(way: Way, options: &Options) -> Self {
        let lane = || Lane::start(way.clone(), options.connect_within);
        let ways = Arc::new(Ways {
            name: way.door.to_string(),
            lanes: (0..options.connections.max(1)).map(|_| lane()).collect(),
            next: AtomicUsize::new(0),
            breaker: Breaker::new(Arc::clone(&options.clock), options.give_up_after),
        });
        let theirs = Arc::clone(&ways);
        let prober = tokio::spawn(async move { theirs.breaker.keep(|| Arc::clone(&theirs).answers()).await });
        Self { ways, loading: tokio::sync::Mutex::new(()), loaded: Mutex::default(), prober }
    }

    /// Where it is.
    pub fn name(&self) -> String {
        self.ways.name.clone()
    }

    /// Waits for a connection, or for why there is none: no longer than an attempt to connect may take.
    pub async fn first_connection(&self) -> Result<(), String> {
        self.ways.lanes[0].attempt().await
    }

    /// Runs a script that the server may not know yet, `before` it the command that must stand just before it
    /// (`ASKING`). `Sent` is left underway only where it may have run.
    pub async fn call(&self, before: Option<&Cmd>, call: &Call, sent: &Sent) -> Result<Answer, Failure> {
        let command = evalsha(call);
        for _ in 0..3 {
            let loaded = self.times_loaded(call.script);
            let answer = match self.dispatch(before, &command, sent, Lanes::First).await? {
                // The server does not always say what the user may not do.
                Answer::NotAllowed { said, begun } => {
                    let said = format!("EVALSHA of the script {:?}: {said}", call.script.name);
                    Answer::NotAllowed { said, begun }
                }
                answer => answer,
            };
            if answer != Answer::NoScript {
                return Ok(answer);
            }
            if let Some(refused) = self.load(call.script, loaded).await? {
                return Ok(refused);
            }
        }
        Err(Failure::NotRun(format!(
            "the server forgets the script {:?} as soon as it has it",
            call.script.name
        )))
    }

    fn times_loaded(&self, script: &'static Script) -> u64 {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(&place(script)).copied().unwrap_or_default()
    }

    /// Sends a command, `before` it the one that must stand just before it.
    pub async fn command(&self, before: Option<&Cmd>, command: &Cmd, sent: &Sent) -> Result<Answer, Failure> {
        self.dispatch(before, command, sent, Lanes::InTurn).await
    }

    async fn dispatch(
        &self,
        before: Option<&Cmd>,
        command: &Cmd,
        sent: &Sent,
        lanes: Lanes,
    ) -> Result<Answer, Failure> {
        let Some(before) = before else {
            return self.send(sent, lanes, async |up| up.send(command).await).await;
        };
        let mut row = redis::pipe();
        row.add_command(before.clone()).add_command(command.clone());
        self.send(sent, lanes, async |up| up.send_in_a_row(&row).await).await
    }

    async fn send(
        &self,
        sent: &Sent,
        lanes: Lanes,
        send: impl AsyncFnOnce(Up<'_>) -> RedisResult<Value>,
    ) -> Result<Answer, Failure> {
        let Ways { name, breaker, .. } = &*self.ways;
        if let Some(refusal) = breaker.refusal() {
            return Err(Failure::NotRun(format!("{name}: {refusal}")));
        }
        let up = self.ways.up(lanes).await?;
        if !sent.begin() {
            return Err(Failure::NotRun("nobody waits for the answer any more".to_owned()));
        }
        let watched = Watched { breaker, sent, over: false };
        let answer = send(up).await.map(Answer::of);
        // Who waits for a master to appear waits as for an answer.
        watched.over(matches!(&answer, Ok(answer) if !matches!(answer, Answer::NotMaster(_))));
        // On an error the connection ended. Whether before or after the command was written is not known.
        let answer = answer.map_err(|error| Failure::MayHaveRun(format!("{name}: no answer: {error}")))?;
        sent.end();
        Ok(answer)
    }

    /// Tells the server a script, unless somebody has since `loaded` was read. Doing so twice does no harm. An answer
    /// that keeps the script from running is handed on.
    async fn load(&self, script: &'static Script, loaded: u64) -> Result<Option<Answer>, Failure> {
        let _alone = self.loading.lock().await;
        if self.times_loaded(script) != loaded {
            return Ok(None);
        }
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(script.source);
        // Whatever becomes of it, the call itself has not run.
        let told = self.command(None, &command, &Sent::default()).await;
        match told {
            Ok(Answer::Value(_)) => {
                *self
                    .loaded
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .entry(place(script))
                    .or_default() += 1;
                Ok(None)
            }
            Ok(Answer::Refused(error) | Answer::Foreign(error)) => {
                Ok(Some(Answer::Refused(format!("script {:?}: {error}", script.name))))
            }
            // Not the script that was to be told has begun.
            Ok(Answer::NotAllowed { said, .. }) => {
                Ok(Some(Answer::NotAllowed { said: format!("SCRIPT LOAD: {said}"), begun: false }))
            }
            Ok(other) => Ok(Some(other)),
            Err(Failure::MayHaveRun(error)) => Err(Failure::NotRun(error)),
            Err(other) => Err(other),
        }
    }
}

/// Which script it is: where its text lies.
fn place(script: &'static Script) -> usize {
    script.source.as_ptr() as usize
}

impl Drop for Node {
    fn drop(&mut self) {
        self.prober.abort();
    }
}

impl Ways {
    /// A connection that is up. One that was never there yet is waited for: it is about to be.
    async fn up(&self, lanes: Lanes) -> Result<Up<'_>, Failure> {
        if lanes == Lanes::First
            && let Some(up) = self.lanes.iter().filter(|lane| lane.has_room()).find_map(Lane::up)
        {
            return Ok(up);
        }
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

    /// Whether the server answers at all.
    async fn answers(self: Arc<Self>) -> bool {
        let ping = redis::cmd("PING");
        let asking = async {
            match self.up(Lanes::InTurn).await {
                Ok(up) => up.send(&ping).await.is_ok(),
                Err(_) => false,
            }
        };
        tokio::time::timeout(PROBE_WITHIN, asking).await.unwrap_or(false)
    }
}

/// A call as the breaker sees it.
struct Watched<'a> {
    breaker: &'a Breaker,
    sent: &'a Sent,
    over: bool,
}

impl Watched<'_> {
    fn over(mut self, answered: bool) {
        self.over = true;
        if answered { self.breaker.answered() } else { self.breaker.not_answered() }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if !self.over && self.sent.given_up.load(Ordering::Relaxed) {
            self.breaker.not_answered();
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

#[cfg(test)]
mod tests {
    use super::Sent;

    #[test]
    fn what_was_not_sent_before_its_asker_left_is_not_sent_later() {
        let sent = Sent::default();
        assert!(sent.begin() && sent.is_underway());
        sent.end();
        assert!(!sent.leave(), "an answer was here, and no other command had begun");
        assert!(!sent.begin(), "nobody waits");
        let sent = Sent::default();
        assert!(sent.begin() && sent.leave());
        sent.end();
        assert!(!sent.begin());
    }
}
