//! One client's conversation, without the wire: bytes in, bytes out.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::commands::{Batch, Context, Then, carry_out, rank_at_first};
use super::door::{Admission, Door};
use super::input::Input;
use super::parse::{Fault, Parsed, Parser};
use super::reply::Reply;
use super::session::{Hears, Origin, Session};

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
    /// To end, once the replies are written.
    Close,
}

/// A client's conversation. Whoever has the connection puts in what arrives and writes what comes out.
///
/// ```
/// use std::sync::Arc;
/// use tidegate::Limiter;
/// use tidegate_server::{App, config::Config, resp::{Conversation, Door, Next}};
/// let app = App::new(Limiter::new(Config::default().policies().clone()));
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
        self.input.heap_bytes() + self.parser.heap_bytes() + self.replies.capacity()
    }

    /// Answers what has arrived, all of it at one instant, until there is nothing whole left or replies pile up.
    pub fn answer(&mut self) -> Next {
        let (door, metrics) = (self.admission.door(), self.admission.door().app().metrics());
        let now = door.app().now();
        let mut batch = Batch::default();
        let next = loop {
            if self.replies.len() >= MOST_PILED_UP {
                break Next::Write;
            }
            match self.parser.parse(self.input.unread(), self.session.reads_as()) {
                Parsed::Incomplete => break Next::Read,
                Parsed::Nothing(bytes) => self.input.take(bytes),
                Parsed::Broken(fault) => {
                    if fault != Fault::Http {
                        let mut reply = Reply::new(&mut self.replies, self.session.protocol);
                        reply.error(format_args!("ERR {fault}"));
                    }
                    break Next::Close;
                }
                Parsed::Command(bytes) => {
                    batch.commands += 1;
                    let (heard, before) = (self.session.hears, self.replies.len());
                    if heard == Hears::NotTheNext {
                        self.session.hears = Hears::Everything;
                    }
                    let reply = Reply::new(&mut self.replies, self.session.protocol);
                    let mut context =
                        Context { door, session: &mut self.session, reply, now, batch: &mut batch };
                    let then = carry_out(&mut context, self.parser.args(self.input.unread()));
                    self.input.take(bytes);
                    if is_unheard(heard, self.session.hears) {
                        self.replies.truncate(before);
                    }
                    if then == Then::Close {
                        break Next::Close;
                    }
                }
            }
        };
        door.carried_out(batch.commands);
        if batch.decisions > 0 {
            metrics.took(door.app().now().micros_since(now), batch.decisions);
        }
        self.parser.shrink();
        self.input.shrink();
        next
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
