//! One client's conversation, without the wire: bytes in, bytes out.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tidegate::Timestamp;

use super::commands::{Awaited, Batch, Context, Then, carry_out, rank_at_first};
use super::door::{Admission, Door};
use super::input::Input;
use super::parse::{Fault, Parsed, Parser};
use super::reply::Reply;
use super::run::{Decided, Run, failed};
use super::session::{Hears, Origin, Session};
use crate::app::App;

/// Replies pile up to so many bytes before they are written; one of them may go past it.
const MOST_PILED_UP: usize = 64 << 10;
/// Bytes for replies that are kept between two writes.
const KEPT_FOR_REPLIES: usize = 16 << 10;

/// What a conversation needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More bytes of the client, once the replies are written.
    Read,
    /// That the replies be written: there are many, and more to answer.
    Write,
    /// To [`wait`](Conversation::wait) for the store, and then to go on answering. There may be no replies yet.
    Wait,
    /// To end, once the replies are written.
    Close,
}

/// A client's conversation. Whoever has the connection puts in what arrives and writes what comes out.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_server::{App, config::Config, resp::{Conversation, Door, Next}};
/// let app = App::in_memory(Config::default().policies().clone());
/// let mut conversation = Conversation::of_nowhere(&Arc::new(Door::new(Arc::new(app))));
/// let request = b"CL.THROTTLE user:42 15 30 60\r\n";
/// conversation.room()[..request.len()].copy_from_slice(request);
/// conversation.received(request.len());
/// assert_eq!(conversation.answer(), Next::Read);
/// assert_eq!(conversation.replies(), b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
/// ```
#[derive(Debug)]
pub struct Conversation {
    admission: Admission,
    session: Session,
    parser: Parser,
    input: Input,
    replies: Vec<u8>,
    run: Run,
    waiting: Option<Waiting>,
}

/// The store has yet to answer.
struct Waiting {
    since: Timestamp,
    awaited: Awaited,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("since", &self.since).finish_non_exhaustive()
    }
}

impl Conversation {
    /// With a client of no address, for tests.
    ///
    /// # Panics
    /// If the door is full.
    pub fn of_nowhere(door: &Arc<Door>) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Self::begin(door, nowhere, nowhere).expect("a test's door has room")
    }

    /// With a client that has connected from `peer` to `local`; `None` if there is no room for it.
    pub(super) fn begin(door: &Arc<Door>, peer: SocketAddr, local: SocketAddr) -> Option<Self> {
        let admission = door.admit()?;
        let origin = Origin { peer, local, since: door.app().now() };
        Some(Conversation {
            session: Session::new(admission.id, origin, rank_at_first(door)),
            admission,
            parser: Parser::default(),
            input: Input::default(),
            replies: Vec::new(),
            run: Run::default(),
            waiting: None,
        })
    }

    /// Where the client's next bytes go: never empty.
    pub fn room(&mut self) -> &mut [u8] {
        self.input.room()
    }

    /// So many bytes have arrived where there was room.
    pub fn received(&mut self, bytes: usize) {
        self.input.received(bytes);
    }

    /// What is to be written.
    pub fn replies(&self) -> &[u8] {
        &self.replies
    }

    /// All replies have been written.
    pub fn written(&mut self) {
        self.replies.clear();
        if self.replies.capacity() > 2 * MOST_PILED_UP {
            self.replies.shrink_to(KEPT_FOR_REPLIES);
        }
    }

    /// Bytes of heap held.
    pub fn heap_bytes(&self) -> usize {
        self.input.heap_bytes() + self.parser.heap_bytes() + self.replies.capacity() + self.run.heap_bytes()
    }

    /// Answers what has arrived, all of it at one instant, until there is nothing whole left or replies pile up, or
    /// the store has yet to answer. While it has, this is not to be called.
    pub fn answer(&mut self) -> Next {
        let now = self.app().now();
        let mut batch = Batch::default();
        let next = self.go_on(now, &mut batch);
        self.admission.door().carried_out(batch.commands);
        if batch.decisions > 0 {
            self.took(now, batch.decisions);
        }
        if next != Next::Wait {
            self.run.forget_policies();
        }
        self.parser.shrink();
        self.input.shrink();
        next
    }

    fn go_on(&mut self, now: Timestamp, batch: &mut Batch) -> Next {
        loop {
            if self.replies.len() >= MOST_PILED_UP && self.run.is_empty() {
                return Next::Write;
            }
            let parsed = self.parser.parse(self.input.unread(), self.session.reads_as());
            match parsed {
                Parsed::Command(bytes) => match self.carry_out(now, batch) {
                    Then::GoOn => self.input.take(bytes),
                    Then::Close => {
                        self.input.take(bytes);
                        return Next::Close;
                    }
                    Then::Wait(awaited) => {
                        self.input.take(bytes);
                        self.waiting = Some(Waiting { since: now, awaited });
                        return Next::Wait;
                    }
                    // It is read again afterwards.
                    Then::AfterRun => {
                        if self.decide(now, batch) == Next::Wait {
                            return Next::Wait;
                        }
                    }
                },
                Parsed::Nothing(bytes) => self.input.take(bytes),
                Parsed::Incomplete | Parsed::Broken(_) if !self.run.is_empty() => {
                    if self.decide(now, batch) == Next::Wait {
                        return Next::Wait;
                    }
                }
                Parsed::Incomplete => return Next::Read,
                Parsed::Broken(fault) => {
                    if fault != Fault::Http {
                        let mut reply = Reply::new(&mut self.replies, self.session.protocol);
                        reply.error(format_args!("ERR {fault}"));
                    }
                    return Next::Close;
                }
            }
        }
    }

    /// Carries out the command that was just read.
    fn carry_out(&mut self, now: Timestamp, batch: &mut Batch) -> Then {
        let (heard, before) = (self.session.hears, self.replies.len());
        if heard == Hears::NotTheNext {
            self.session.hears = Hears::Everything;
        }
        batch.commands += 1;
        let mut context = Context {
            door: self.admission.door(),
            reply: Reply::new(&mut self.replies, self.session.protocol),
            session: &mut self.session,
            now,
            batch,
            run: &mut self.run,
            is_heard: heard == Hears::Everything,
        };
        let then = carry_out(&mut context, self.parser.args(self.input.unread()));
        if let Then::AfterRun = then {
            self.session.hears = heard;
            batch.commands -= 1;
        } else if is_unheard(heard, self.session.hears) {
            self.replies.truncate(before);
        }
        then
    }

    /// Decides the checks that were put together, and tells what was decided.
    fn decide(&mut self, now: Timestamp, batch: &mut Batch) -> Next {
        let mut reply = Reply::new(&mut self.replies, self.session.protocol);
        match self.run.decide(self.admission.door().app(), now, &mut reply) {
            Decided::Told(decisions) => {
                batch.decisions += decisions;
                Next::Read
            }
            Decided::Later(later) => {
                self.waiting = Some(Waiting { since: now, awaited: Awaited::Run(later) });
                Next::Wait
            }
        }
    }

    /// Waits for the store, and takes in what it answers.
    pub async fn wait(&mut self) {
        let Some(Waiting { since, awaited }) = &mut self.waiting else { return };
        let since = *since;
        let app = self.admission.door().app();
        match awaited {
            Awaited::Run(later) => {
                let answers = later.await;
                let mut reply = Reply::new(&mut self.replies, self.session.protocol);
                let counted = self.run.told(app, answers.iter().map(Result::as_ref), &mut reply);
                if counted > 0 {
                    self.took(since, counted);
                }
            }
            Awaited::Count(later, is_heard) => {
                let counted = later.await;
                let mut reply = Reply::new(&mut self.replies, self.session.protocol);
                match counted {
                    Ok(count) if *is_heard => reply.integer(i64::try_from(count).unwrap_or(i64::MAX)),
                    Ok(_) => {}
                    Err(error) => failed(app, &error, is_heard.then_some(&mut reply)),
                }
            }
        }
        self.waiting = None;
        self.run.forget_policies();
    }

    fn app(&self) -> &App {
        self.admission.door().app()
    }

    fn took(&self, since: Timestamp, decisions: u64) {
        let app = self.app();
        app.metrics().took(app.now().micros_since(since), decisions);
    }
}

/// Whether the reply to a command is left out, the client having heard so much before it and so much after it.
fn is_unheard(before: Hears, after: Hears) -> bool {
    match before {
        Hears::Everything => false,
        Hears::NotTheNext => true,
        // Unless the command was to hear again.
        Hears::Nothing => after == Hears::Nothing,
    }
}
