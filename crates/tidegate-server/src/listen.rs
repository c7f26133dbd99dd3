//! The loop that takes connections in, and their end.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate::{Timestamp, Wait};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::app::App;
use crate::{grpc, http, resp};

/// A connection that sends no whole request head for so long is closed, an idle one too.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a request's head: several times what the longest key takes in a query.
const MOST_HEAD_BYTES: usize = 32 << 10;
/// Bytes read ahead on one connection.
const MOST_AHEAD_BYTES: usize = 64 << 10;
/// So long a connection without a request is kept when the drain closes: its client may have sent one already, or be
/// about to, not knowing better. The answer then says that it was the last.
const LAST_CALL: Duration = Duration::from_millis(250);
/// The pause after the system had no room for another connection.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);

/// The doors of a server, bound already, so that whoever bound them knows their addresses.
#[derive(Debug)]
pub struct Listeners {
    /// HTTP/1.1, without encryption.
    pub http: TcpListener,
    /// gRPC: Envoy's rate limit service over HTTP/2; `None` for no such door.
    pub grpc: Option<TcpListener>,
    /// TLS for gRPC; `None` for no encryption.
    pub grpc_tls: Option<Arc<grpc::Tls>>,
    /// RESP, without encryption, and what its connections share; `None` for no such door.
    pub resp: Option<(TcpListener, Arc<resp::Door>)>,
}

impl Listeners {
    /// HTTP alone.
    pub fn http(listener: TcpListener) -> Self {
        Listeners { http: listener, grpc: None, grpc_tls: None, resp: None }
    }

    /// gRPC as well.
    #[must_use]
    pub fn with_grpc(self, listener: TcpListener) -> Self {
        Listeners { grpc: Some(listener), ..self }
    }

    /// TLS for gRPC.
    #[must_use]
    pub fn with_grpc_tls(self, tls: Arc<grpc::Tls>) -> Self {
        Listeners { grpc_tls: Some(tls), ..self }
    }

    /// RESP as well.
    #[must_use]
    pub fn with_resp(self, listener: TcpListener, door: Arc<resp::Door>) -> Self {
        Listeners { resp: Some((listener, door)), ..self }
    }
}

/// How a server ends once it is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// So long it goes on as before, only not ready any more, for load balancers to notice. Each answer already asks its
    /// client to close the connection, so that few are left open in the end.
    pub notice: Duration,
    /// So long requests under way may then take.
    pub grace: Duration,
}

impl Default for Drain {
    /// No notice, and ten seconds for what is under way.
    fn default() -> Self {
        Drain { notice: Duration::ZERO, grace: Duration::from_secs(10) }
    }
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Everything under way was answered.
    Drained,
    /// So many connections were still busy when the grace was over, and were cut.
    Cut {
        /// Connections cut.
        connections: usize,
    },
}

/// Serves until `shutdown` is done, then drains. Dropping the future cuts every connection.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_server::{App, Drain, Listeners, Stopped, config::Config};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let listeners = Listeners::http(tokio::net::TcpListener::bind("127.0.0.1:0").await?);
/// let app = Arc::new(App::in_memory(Config::default().policies().clone()));
/// let stop_at_once = std::future::ready(());
/// assert_eq!(tidegate_server::run(listeners, app, Drain::default(), stop_at_once).await, Stopped::Drained);
/// # Ok(())
/// # }
/// ```
pub async fn run(
    listeners: Listeners,
    app: Arc<App>,
    drain: Drain,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    let http = HttpDoor {
        listener: listeners.http,
        connected: Connected {
            door: http::Door::new(Arc::clone(&app)),
            connections: JoinSet::new(),
            closing: watch::Sender::new(false),
            app: Arc::clone(&app),
        },
    };
    let grpc = listeners.grpc.map(|listener| {
        let tls = listeners.grpc_tls;
        grpc::Reception::new(listener, Arc::clone(&app), tls)
    });
    let resp = listeners.resp.map(|(listener, door)| resp::Reception::new(listener, door));
    let mut doors = Doors { http, grpc, resp };
    doors.take_in_until(shutdown).await;
    app.begin_drain();
    if !drain.notice.is_zero() {
        let noticed = app.limiter().clock().sleep_until(after(&app, drain.notice));
        doors.take_in_until(noticed).await;
    }
    doors.close(drain.grace).await
}

/// All doors, open at once and closed at once.
struct Doors {
    http: HttpDoor,
    grpc: Option<grpc::Reception>,
    resp: Option<resp::Reception>,
}

impl Doors {
    async fn take_in_until(&mut self, over: impl Future<Output = ()>) {
        let Doors { http, grpc, resp } = self;
        let grpc = async {
            match grpc {
                Some(grpc) => grpc.take_in_until(pending()).await,
                None => pending().await,
            }
        };
        let resp = async {
            match resp {
                Some(resp) => resp.take_in_until(pending()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            () = http.take_in_until(pending()) => {}
            () = grpc => {}
            () = resp => {}
        }
    }

    async fn close(self, grace: Duration) -> Stopped {
        let grpc = async {
            match self.grpc {
                Some(grpc) => grpc.close(grace).await,
                None => Stopped::Drained,
            }
        };
        let resp = async {
            match self.resp {
                Some(resp) => resp.close(grace).await,
                None => Stopped::Drained,
            }
        };
        let (http, grpc, resp) = tokio::join!(self.http.close(grace), grpc, resp);
        match http.cut() + grpc.cut() + resp.cut() {
            0 => Stopped::Drained,
            connections => Stopped::Cut { connections },
        }
    }
}

impl Stopped {
    fn cut(self) -> usize {
        match self {
            Stopped::Drained => 0,
            Stopped::Cut { connections } => connections,
        }
    }
}

struct HttpDoor {
    listener: TcpListener,
    connected: Connected,
}

/// The connections that were let in, and what they are answered from.
struct Connected {
    door: http::Door,
    /// Dropped, it ends them all.
    connections: JoinSet<()>,
    /// Whether every connection is to end with what it has under way.
    closing: watch::Sender<bool>,
    app: Arc<App>,
}

impl HttpDoor {
    async fn take_in_until(&mut self, over: impl Future<Output = ()>) {
        let mut over = std::pin::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.connected.serve(stream),
                    Err(error) => could_not_accept(&self.connected.app, &error).await,
                },
                Some(_) = self.connected.connections.join_next() => {}
            }
        }
    }

    async fn close(self, grace: Duration) -> Stopped {
        let HttpDoor { listener, mut connected } = self;
        let over = connected.app.limiter().clock().sleep_until(after(&connected.app, grace));
        for stream in who_waits(listener) {
            connected.serve(stream);
        }
        connected.closing.send_replace(true);
        let mut connections = connected.connections;
        let all = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = all => return Stopped::Drained,
            () = over => {}
        }
        while connections.try_join_next().is_some() {}
        Stopped::Cut { connections: connections.len() }
    }
}

impl Connected {
    fn serve(&mut self, stream: TcpStream) {
        // Answers are small and whole: waiting to fill a packet only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("TCP_NODELAY could not be set: {error}");
        }
        let peer = stream.peer_addr().ok().map(|peer| peer.ip());
        let door = self.door.clone();
        let service = service_fn(move |request| door.call(request, peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_header_size(MOST_HEAD_BYTES)
            .max_buf_size(MOST_AHEAD_BYTES)
            // Bodies are small: to copy one behind its head costs less than to hand the system two pieces.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service);
        let (app, mut closing) = (Arc::clone(&self.app), self.closing.subscribe());
        self.connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let last_call = async {
                // A sender that is gone means the end as well.
                let _ = closing.wait_for(|closing| *closing).await;
                app.limiter().clock().sleep_until(after(&app, LAST_CALL)).await;
            };
            let ended = tokio::select! {
                ended = &mut connection => ended,
                () = last_call => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!("a connection ended early: {error}");
            }
        });
    }
}

pub(crate) async fn could_not_accept(app: &App, error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::error!("no more connections can be taken in: {error} (raise the limit of open files)");
    // Else this would spin until somebody hangs up.
    app.limiter().clock().sleep_until(after(app, NO_ROOM_PAUSE)).await;
}

/// Those that the system has let in already and nobody has accepted; then nobody is let in any more. When a listener
/// goes, the system resets them, and what they have sent would be lost.
pub(crate) fn who_waits(listener: TcpListener) -> Vec<TcpStream> {
    let mut waiting = Vec::new();
    // The system itself is asked: the runtime knows only of those it has been told of.
    let Ok(listener) = listener.into_std() else { return waiting };
    while let Ok((stream, _)) = listener.accept() {
        match stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) {
            Ok(stream) => waiting.push(stream),
            Err(error) => tracing::debug!("a connection could not be taken in: {error}"),
        }
    }
    waiting
}

fn after(app: &App, wait: Duration) -> Timestamp {
    app.now().saturating_add(Wait::from(wait))
}
