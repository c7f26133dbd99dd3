//! `tidegate serve`: decisions over HTTP, gRPC and RESP.

mod banner;
mod logging;
mod settings;
mod signals;

use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use tidegate_server::resp::Door;
use tidegate_server::{App, Drain, Listeners, Reloader, Stopped};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::failure::{Failure, print};
use crate::store::follow;
use settings::{Settings, suits};
use signals::Signals;

pub use settings::ServeArgs;

/// Serves until told to stop.
///
/// # Errors
/// A configuration that is wrong, an address that cannot be had, or a second signal before the drain was over.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    logging::start(args.log_format, &args.log)?;
    let runtime = runtime().map_err(|error| Failure::run(format_args!("no threads to serve on: {error}")))?;
    let served = runtime.block_on(async { serve(args, Settings::of(args).await?).await });
    // A reload that hangs on its file must not keep a server that has drained.
    runtime.shutdown_background();
    served
}

/// As many threads as there are processors. One alone need not be ready to hand its tasks to others, and is faster.
fn runtime() -> io::Result<Runtime> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let mut builder =
        if processors == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.enable_all().build()
}

async fn serve(args: &ServeArgs, settings: Settings) -> Result<(), Failure> {
    // Before anybody can know that the server is there.
    let signals =
        Signals::catch().map_err(|error| Failure::run(format_args!("cannot catch signals: {error}")))?;
    let (http, http_at) = bind("--listen-http", &args.listen_http, "127.0.0.1:8080").await?;
    let grpc = bind_unless_off("--listen-grpc", &args.listen_grpc, "127.0.0.1:8081, or off").await?;
    let resp = bind_unless_off("--listen-resp", &args.listen_resp, "127.0.0.1:6380, or off").await?;
    let at = |door: &Option<(TcpListener, SocketAddr)>| door.as_ref().map(|(_, at)| *at);
    let doors = banner::Doors { http: http_at, grpc: at(&grpc), resp: at(&resp) };
    banner::show(args, &settings, doors);
    let Settings { app, resp_password, tls, config, shared, drain, source, family, .. } = settings;
    let app = Arc::new(app);
    let mut listeners = Listeners::http(http);
    if let Some((listener, _)) = grpc {
        listeners = listeners.with_grpc(listener);
    }
    if let Some(tls) = &tls {
        listeners = listeners.with_grpc_tls(Arc::clone(tls));
    }
    if let Some((listener, _)) = resp {
        let door = Door::new(Arc::clone(&app));
        let door = match resp_password {
            Some(password) => door.with_password(password),
            None => door,
        };
        listeners = listeners.with_resp(listener, Arc::new(door));
    }
    print(&doors.lines())?;
    let has_files = !source.is_built_in() || tls.is_some();
    let reloader = has_files.then(|| {
        let reloader = Reloader::new(Arc::clone(&app), source, &config, family).with_tls(tls);
        match shared {
            Some(shared) => {
                let asked = shared.clone();
                reloader
                    .guarded(move |config| suits(&asked, config))
                    .telling(move |config| follow(&shared, config.store().shared()))
            }
            None => reloader,
        }
    });
    tokio::spawn(signals::reload_on(signals.hangups, reloader));
    until_stopped(listeners, app, drain, signals.stops).await
}

/// Serves until the first signal, drains until all is done or the second.
async fn until_stopped(
    listeners: Listeners,
    app: Arc<App>,
    drain: Drain,
    mut stops: signals::Stops,
) -> Result<(), Failure> {
    let (stop, stopping) = oneshot::channel();
    // A sender that is gone means stop as well.
    let serving = tidegate_server::run(listeners, app, drain, async { stopping.await.unwrap_or(()) });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        stopped = &mut serving => return told(stopped),
        signal = stops.next() => tracing::info!("{signal}: stopping; once more ends at once"),
    }
    let _ = stop.send(());
    tokio::select! {
        stopped = &mut serving => told(stopped),
        signal = stops.next() => Err(Failure::run(format_args!("{signal} again: what was under way is cut"))),
    }
}

fn told(stopped: Stopped) -> Result<(), Failure> {
    match stopped {
        Stopped::Drained => tracing::info!("stopped: everything under way was answered"),
        Stopped::Cut { connections } => {
            tracing::warn!(connections, "stopped: the time to drain was over, connections were cut");
        }
    }
    Ok(())
}

/// As [`bind`], but not if the address is `off`.
async fn bind_unless_off(
    flag: &str,
    address: &str,
    example: &str,
) -> Result<Option<(TcpListener, SocketAddr)>, Failure> {
    match address {
        "off" => Ok(None),
        address => bind(flag, address, example).await.map(Some),
    }
}

/// Listens to `address`, which `flag` gave; `example` is one that could be given. Says where it listens.
async fn bind(flag: &str, address: &str, example: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let told = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "address already in use (choose another, or stop what listens there)".into()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have the address (choose one it has)".into()
            }
            io::ErrorKind::PermissionDenied => "permission denied (choose a port above 1023)".into(),
            io::ErrorKind::InvalidInput => {
                let reason =
                    format_args!("{flag} {address}: not an address (write HOST:PORT, e.g. {example})");
                return Failure::usage(reason);
            }
            _ => format!("{error} (write HOST:PORT, e.g. {example})"),
        };
        Failure::run(format_args!("{flag} {address}: {reason}"))
    };
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let at = listener.local_addr().map_err(|error| Failure::run(format_args!("no address: {error}")))?;
    Ok((listener, at))
}
