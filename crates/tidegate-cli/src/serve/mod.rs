//! `tidegate serve`: decisions over HTTP.

mod banner;
mod logging;
mod settings;
mod signals;

use std::io;
use std::sync::Arc;

use tidegate_server::{App, Drain, Listeners, Reloader, Stopped};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::failure::{Failure, print};
use settings::Settings;
use signals::Signals;

pub use settings::ServeArgs;

/// Serves until told to stop.
///
/// # Errors
/// A configuration that is wrong, an address that cannot be had, or a second signal before the drain was over.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    logging::start(args.log_format, &args.log)?;
    let settings = Settings::of(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::run(format_args!("no threads to serve on: {error}")))?;
    runtime.block_on(serve(args, settings))
}

async fn serve(args: &ServeArgs, settings: Settings) -> Result<(), Failure> {
    // Before anybody can know that the server is there.
    let signals =
        Signals::catch().map_err(|error| Failure::run(format_args!("cannot catch signals: {error}")))?;
    let listener = bind(&args.listen_http).await?;
    let address = listener.local_addr().map_err(|error| Failure::run(format_args!("no address: {error}")))?;
    banner::show(args, &settings, address);
    let Settings { app, config, drain, file, family, .. } = settings;
    let app = Arc::new(app);
    print(&format!("listening http {address}\n"))?;
    let reloader = file.map(|file| Reloader::new(Arc::clone(&app), &file, &config, family));
    tokio::spawn(signals::reload_on(signals.hangups, reloader));
    until_stopped(Listeners { http: listener }, app, drain, signals.stops).await
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

async fn bind(address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "address already in use (choose another, or stop what listens there)".into()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have the address (choose one it has)".into()
            }
            io::ErrorKind::PermissionDenied => "permission denied (choose a port above 1023)".into(),
            io::ErrorKind::InvalidInput => "not an address (write HOST:PORT, e.g. 127.0.0.1:8080)".into(),
            _ => format!("{error} (write HOST:PORT, e.g. 127.0.0.1:8080)"),
        };
        Failure::run(format_args!("--listen-http {address}: {reason}"))
    })
}
