//! The signals a server listens to: SIGTERM and SIGINT to stop, SIGHUP to read its file again.

use std::io;
use std::sync::Arc;

use tidegate_server::Reloader;

/// Signals, caught from now on.
pub(super) struct Signals {
    pub stops: Stops,
    pub hangups: Hangups,
}

#[cfg(unix)]
mod caught {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Orders to stop.
    pub struct Stops {
        terminate: Signal,
        interrupt: Signal,
    }

    /// Orders to read the file again.
    pub struct Hangups(Signal);

    impl super::Signals {
        pub fn catch() -> io::Result<Self> {
            Ok(super::Signals {
                stops: Stops {
                    terminate: signal(SignalKind::terminate())?,
                    interrupt: signal(SignalKind::interrupt())?,
                },
                hangups: Hangups(signal(SignalKind::hangup())?),
            })
        }
    }

    impl Stops {
        /// The name of the next one.
        pub async fn next(&mut self) -> &'static str {
            tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
            }
        }
    }

    impl Hangups {
        /// Waits for the next one; `None` if there can be none.
        pub async fn next(&mut self) -> Option<()> {
            self.0.recv().await
        }
    }
}

#[cfg(not(unix))]
mod caught {
    use std::io;

    /// Orders to stop: Ctrl-C.
    pub struct Stops;

    /// There are none here.
    pub struct Hangups;

    impl super::Signals {
        pub fn catch() -> io::Result<Self> {
            Ok(super::Signals { stops: Stops, hangups: Hangups })
        }
    }

    impl Stops {
        /// The name of the next one.
        pub async fn next(&mut self) -> &'static str {
            match tokio::signal::ctrl_c().await {
                Ok(()) => "Ctrl-C",
                Err(_) => std::future::pending().await,
            }
        }
    }

    impl Hangups {
        /// There are none.
        pub async fn next(&mut self) -> Option<()> {
            None
        }
    }
}

pub(super) use caught::{Hangups, Stops};

/// Reloads at each hangup, one after the other.
pub(super) async fn reload_on(mut hangups: Hangups, reloader: Option<Reloader>) {
    let reloader = reloader.map(Arc::new);
    while hangups.next().await.is_some() {
        let Some(reloader) = reloader.clone() else {
            tracing::warn!("SIGHUP: there is no file to read again (start with --config FILE)");
            continue;
        };
        // Reading and checking may take long; the log says what came of it.
        let reloaded: Result<_, io::Error> =
            tokio::task::spawn_blocking(move || reloader.reload().is_ok()).await.map_err(io::Error::other);
        if let Err(error) = reloaded {
            tracing::error!("the reload broke off: {error}");
        }
    }
}
