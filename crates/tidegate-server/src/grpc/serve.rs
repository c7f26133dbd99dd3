//! The wire: HTTP/2 connections in, and their end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tidegate::Wait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::route::Routes;
use super::tls::Tls;
use crate::app::App;
use crate::listen::{Stopped, could_not_accept, who_waits};

/// Calls at once on one connection: a proxy keeps few connections and sends everything over them; with more it opens
/// another.
const MOST_STREAMS: u32 = 1_024;
/// A peer that is silent for so long is asked whether it is there, and given as long again to answer.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// Bytes of a call's head.
const MOST_HEAD_BYTES: u32 = 16 << 10;

/// Serves gRPC until `shutdown` is done; what is under way may then take `grace`. Dropping the future cuts every
/// connection.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tidegate_server::{App, Stopped, config::Config, grpc};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let app = Arc::new(App::in_memory(Config::default().policies().clone()));
/// let stop_at_once = std::future::ready(());
/// assert_eq!(grpc::serve(listener, app, Duration::from_secs(1), stop_at_once).await, Stopped::Drained);
/// # Ok(())
/// # }
/// ```
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    grace: Duration,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    let mut reception = Reception::new(listener, app, None);
    reception.take_in_until(shutdown).await;
    reception.close(grace).await
}

/// A listener and the connections it has taken in.
pub(crate) struct Reception {
    listener: TcpListener,
    app: Arc<App>,
    connected: Connected,
}

/// The connections that were let in, and what they are answered from.
struct Connected {
    routes: Arc<Routes>,
    tls: Option<Arc<Tls>>,
    /// Dropped, it ends them all.
    connections: JoinSet<()>,
    graceful: GracefulShutdown,
    /// Whether calls that have no end of their own are to end.
    closing: watch::Sender<bool>,
}

impl Reception {
    /// Without `tls` everything is sent as it is.
    pub(crate) fn new(listener: TcpListener, app: Arc<App>, tls: Option<Arc<Tls>>) -> Self {
        let closing = watch::Sender::new(false);
        let routes = Arc::new(Routes::new(Arc::clone(&app), closing.subscribe()));
        let (connections, graceful) = (JoinSet::new(), GracefulShutdown::new());
        Reception { listener, app, connected: Connected { routes, tls, connections, graceful, closing } }
    }

    pub(crate) async fn take_in_until(&mut self, over: impl Future<Output = ()>) {
        let mut over = std::pin::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.connected.take_in(stream),
                    Err(error) => could_not_accept(&self.app, &error).await,
                },
                Some(_) = self.connected.connections.join_next() => {}
            }
        }
    }

    pub(crate) async fn close(self, grace: Duration) -> Stopped {
        let over = self.app.now().saturating_add(Wait::from(grace));
        let over = self.app.limiter().clock().sleep_until(over);
        let Reception { listener, mut connected, .. } = self;
        for stream in who_waits(listener) {
            connected.take_in(stream);
        }
        let Connected { mut connections, graceful, closing, .. } = connected;
        closing.send_replace(true);
        tokio::select! {
            () = graceful.shutdown() => Stopped::Drained,
            () = over => {
                while connections.try_join_next().is_some() {}
                Stopped::Cut { connections: connections.len() }
            }
        }
    }
}

impl Connected {
    fn take_in(&mut self, stream: TcpStream) {
        // Answers are small and whole: waiting to fill a packet only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("TCP_NODELAY could not be set: {error}");
        }
        let (routes, watcher) = (Arc::clone(&self.routes), self.graceful.watcher());
        let tls = self.tls.clone();
        self.connections.spawn(async move {
            let ended = match tls {
                None => serve_connection(stream, routes, watcher).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve_connection(stream, routes, watcher).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = ended {
                tracing::debug!("a gRPC connection ended early: {error}");
            }
        });
    }
}

/// Answers the calls of one connection. An error is one line for the log.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Arc<Routes>,
    watcher: Watcher,
) -> Result<(), String> {
    let service = service_fn(move |request| {
        let routes = Arc::clone(&routes);
        // What is spawned of it is moved several times on its way, and is small if the call itself stays where it is.
        async move { Ok::<_, Infallible>(Box::pin(routes.call(request)).await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_HEAD_BYTES)
        .keep_alive_interval(SILENT_FOR)
        .keep_alive_timeout(SILENT_FOR)
        .serve_connection(TokioIo::new(stream), service);
    watcher.watch(connection).await.map_err(|error| error.to_string())
}
