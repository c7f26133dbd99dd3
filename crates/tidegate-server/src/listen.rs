//! The loop that takes connections in, and their end.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tidegate::{Timestamp, Wait};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::app::App;
use crate::http;
use crate::resp::{self, Reception};

/// A connection that sends no whole request head for so long is closed, an idle one too.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a request's head: several times what the longest key takes in a query.
const MOST_HEAD_BYTES: usize = 32 << 10;
/// Bytes read ahead on one connection.
const MOST_AHEAD_BYTES: usize = 64 << 10;
/// The pause after the system had no room for another connection.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(50);

/// The doors of a server, bound already, so that whoever bound them knows their addresses.
#[derive(Debug)]
pub struct Listeners {
    /// HTTP/1.1, without encryption.
    pub http: TcpListener,
    /// RESP, without encryption, and what its connections share; `None` for no such door.
    pub resp: Option<(TcpListener, Arc<resp::Door>)>,
}

impl Listeners {
    /// HTTP alone.
    pub fn http(listener: TcpListener) -> Self {
        Listeners { http: listener, resp: None }
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
    /// So long it goes on as before, only not ready any more, for load balancers to notice.
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
/// use tidegate::Limiter;
/// use tidegate_server::{App, Drain, Listeners, Stopped, config::Config};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let listeners = Listeners::http(tokio::net::TcpListener::bind("127.0.0.1:0").await?);
/// let app = Arc::new(App::new(Limiter::new(Config::default().policies().clone())));
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
        router: http::router(Arc::clone(&app)),
        connections: JoinSet::new(),
        graceful: GracefulShutdown::new(),
        app: Arc::clone(&app),
    };
    let resp = listeners.resp.map(|(listener, door)| Reception::new(listener, door));
    let mut doors = Doors { http, resp };
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
    resp: Option<Reception>,
}

impl Doors {
    async fn take_in_until(&mut self, over: impl Future<Output = ()>) {
        let Doors { http, resp } = self;
        let resp = async {
            match resp {
                Some(resp) => resp.take_in_until(pending()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            () = http.take_in_until(pending()) => {}
            () = resp => {}
        }
    }

    async fn close(self, grace: Duration) -> Stopped {
        let resp = async {
            match self.resp {
                Some(resp) => resp.close(grace).await,
                None => Stopped::Drained,
            }
        };
        let (http, resp) = tokio::join!(self.http.close(grace), resp);
        match http.cut() + resp.cut() {
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
    router: Router,
    /// Dropped, it ends them all.
    connections: JoinSet<()>,
    graceful: GracefulShutdown,
    app: Arc<App>,
}

impl HttpDoor {
    async fn take_in_until(&mut self, over: impl Future<Output = ()>) {
        let mut over = std::pin::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.serve(stream),
                    Err(error) => self.could_not_accept(&error).await,
                },
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    fn serve(&mut self, stream: TcpStream) {
        // Answers are small and whole: waiting to fill a packet only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("TCP_NODELAY could not be set: {error}");
        }
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_header_size(MOST_HEAD_BYTES)
            .max_buf_size(MOST_AHEAD_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router.clone()));
        let connection = self.graceful.watch(connection);
        self.connections.spawn(async {
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended early: {error}");
            }
        });
    }

    async fn could_not_accept(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        tracing::error!("no more connections can be taken in: {error} (raise the limit of open files)");
        // Else this would spin until somebody hangs up.
        self.app.limiter().clock().sleep_until(after(&self.app, NO_ROOM_PAUSE)).await;
    }

    async fn close(mut self, grace: Duration) -> Stopped {
        drop(self.listener);
        let over = self.app.limiter().clock().sleep_until(after(&self.app, grace));
        tokio::select! {
            () = self.graceful.shutdown() => Stopped::Drained,
            () = over => {
                while self.connections.try_join_next().is_some() {}
                Stopped::Cut { connections: self.connections.len() }
            }
        }
    }
}

fn after(app: &App, wait: Duration) -> Timestamp {
    app.now().saturating_add(Wait::from(wait))
}
