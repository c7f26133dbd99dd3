//! The wire: connections in, one task for each, and their end.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tidegate::Wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{Id, JoinSet};

use super::conversation::{Conversation, Next};
use super::door::Door;
use crate::listen::Stopped;

/// The pause after the system had no room for another connection.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);
/// A client silent for so long is asked whether it is there still.
const ASK_AFTER: Duration = Duration::from_secs(300);
/// So long, and for so many bytes, a client that is hung up on is listened to, so that it reads why.
const LINGER: Duration = Duration::from_secs(1);
const MOST_LINGER_BYTES: u64 = 4 << 20;

/// Serves RESP until `shutdown` is done; what is under way may then take `grace`. Dropping the future cuts every
/// connection.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tidegate_server::{App, Stopped, config::Config, resp};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let app = Arc::new(App::in_memory(Config::default().policies().clone()));
/// let door = Arc::new(resp::Door::new(app));
/// let stop_at_once = std::future::ready(());
/// assert_eq!(resp::serve(listener, door, Duration::from_secs(1), stop_at_once).await, Stopped::Drained);
/// # Ok(())
/// # }
/// ```
pub async fn serve(
    listener: TcpListener,
    door: Arc<Door>,
    grace: Duration,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    let mut reception = Reception::new(listener, door);
    reception.take_in_until(shutdown).await;
    reception.close(grace).await
}

/// A listener and the connections it has taken in.
#[derive(Debug)]
pub(crate) struct Reception {
    listener: TcpListener,
    door: Arc<Door>,
    /// Dropped, it ends them all.
    connections: JoinSet<()>,
    /// Each, dropped, tells its connection to end when it has answered what it has read.
    endings: HashMap<Id, oneshot::Sender<()>>,
}

impl Reception {
    pub(crate) fn new(listener: TcpListener, door: Arc<Door>) -> Self {
        Reception { listener, door, connections: JoinSet::new(), endings: HashMap::new() }
    }

    pub(crate) async fn take_in_until(&mut self, over: impl Future<Output = ()>) {
        let mut over = std::pin::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.take_in(stream),
                    Err(error) => self.could_not_accept(&error).await,
                },
                Some(ended) = self.connections.join_next_with_id() => {
                    let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                    self.endings.remove(&id);
                }
            }
        }
    }

    fn take_in(&mut self, stream: TcpStream) {
        if let Err(error) = prepare(&stream) {
            tracing::debug!("a connection could not be prepared: {error}");
        }
        let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
        let Some(conversation) = Conversation::begin(&self.door, peer, local) else {
            // A new connection has room for this; if not, it is just closed.
            let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
            return;
        };
        let (ending, ends) = oneshot::channel();
        let task = self.connections.spawn(async move {
            if let Err(error) = converse(stream, conversation, ends).await {
                tracing::debug!("the connection from {peer} ended early: {error}");
            }
        });
        self.endings.insert(task.id(), ending);
    }

    async fn could_not_accept(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        tracing::error!("no more connections can be taken in: {error} (raise the limit of open files)");
        // Else this would spin until somebody hangs up.
        self.sleep(NO_ROOM_PAUSE).await;
    }

    pub(crate) async fn close(self, grace: Duration) -> Stopped {
        let over = self.sleep(grace);
        let Reception { listener, mut connections, endings, .. } = self;
        drop((listener, endings));
        let all = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = all => return Stopped::Drained,
            () = over => {}
        }
        while connections.try_join_next().is_some() {}
        Stopped::Cut { connections: connections.len() }
    }

    fn sleep(&self, wait: Duration) -> tidegate::clock::Sleep {
        let app = self.door.app();
        app.limiter().clock().sleep_until(app.now().saturating_add(Wait::from(wait)))
    }
}

/// Sets how a connection behaves.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Answers are small and whole: waiting to fill a packet only delays them.
    stream.set_nodelay(true)?;
    // A client may be silent for as long as it likes, but a machine that is gone gives its place back.
    let keepalive = TcpKeepalive::new().with_time(ASK_AFTER);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Reads, answers all that was read, writes it at once, and so on. While a client does not take its replies,
/// nothing more of it is read.
async fn converse(
    mut stream: TcpStream,
    mut conversation: Conversation,
    mut ends: oneshot::Receiver<()>,
) -> io::Result<()> {
    loop {
        let read = tokio::select! {
            biased;
            read = stream.read(conversation.room()) => read?,
            _ = &mut ends => return Ok(()),
        };
        if read == 0 {
            return Ok(());
        }
        conversation.received(read);
        loop {
            let next = loop {
                match conversation.answer() {
                    Next::Wait => conversation.wait().await,
                    next => break next,
                }
            };
            stream.write_all(conversation.replies()).await?;
            conversation.written();
            match next {
                Next::Read => break,
                Next::Write | Next::Wait => {}
                Next::Close => return hang_up(stream).await,
            }
        }
        if ends.try_recv() == Err(oneshot::error::TryRecvError::Closed) {
            return Ok(());
        }
    }
}

/// Closes a connection so that the client reads the last reply. Were bytes of its left unread, the system would
/// reset the connection, and the reply might be lost with it.
async fn hang_up(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = stream.take(MOST_LINGER_BYTES);
    let mut nowhere = tokio::io::sink();
    let _ = tokio::time::timeout(LINGER, tokio::io::copy(&mut rest, &mut nowhere)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_go_at_once_and_the_dead_are_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        prepare(&stream).unwrap();
        assert!(stream.nodelay().unwrap());
        assert!(SockRef::from(&stream).keepalive().unwrap());
    }
}
