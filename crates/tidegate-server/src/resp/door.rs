//! What all connections of this door share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use tidegate::{AdHocSpace, AdHocStore, Timestamp};

use super::directory::Directory;
use super::secret::Password;
use crate::app::App;

/// The keys of `CL.THROTTLE`, in whichever store.
pub(super) const THROTTLE: AdHocSpace = AdHocSpace::new("throttle");

/// Connections at once, unless said otherwise.
const MOST_CLIENTS: usize = 10_000;

/// The state of a RESP door: the server's, the keys of `CL.THROTTLE`, and who may come in.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_server::{App, config::Config, resp::Door};
/// let app = Arc::new(App::in_memory(Config::default().policies().clone()));
/// let door = Door::new(app).with_most_clients(100);
/// assert_eq!(door.keys().map(|keys| keys.keys()), Some(0));
/// ```
#[derive(Debug)]
pub struct Door {
    app: Arc<App>,
    /// Of a store in this process's memory, so that they are at hand.
    keys: Option<Arc<AdHocStore>>,
    password: Option<Password>,
    most_clients: usize,
    opened: Timestamp,
    ids: AtomicU64,
    clients: AtomicUsize,
    commands: AtomicU64,
    /// Of the policies in force when a command last named one.
    directory: ArcSwap<Directory>,
}

/// A connection that is let in. Dropped, it makes room for another.
#[derive(Debug)]
pub(super) struct Admission {
    door: Arc<Door>,
    pub(super) id: u64,
}

impl Door {
    /// A door of this server: no password, at most 10,000 clients at once, the keys of `CL.THROTTLE` in the limiter's
    /// store.
    pub fn new(app: Arc<App>) -> Self {
        let keys = app.limiter().store().memory().map(|memory| memory.ad_hoc(THROTTLE));
        Door {
            opened: app.now(),
            app,
            keys,
            password: None,
            most_clients: MOST_CLIENTS,
            ids: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
            commands: AtomicU64::new(0),
            directory: ArcSwap::default(),
        }
    }

    /// Lets nobody give commands who has not shown this password, or the admin token.
    #[must_use]
    pub fn with_password(self, password: Password) -> Self {
        Door { password: Some(password), ..self }
    }

    /// Lets so many clients in at once.
    #[must_use]
    pub fn with_most_clients(self, clients: usize) -> Self {
        Door { most_clients: clients, ..self }
    }

    /// The keys of `CL.THROTTLE`, where they are in this process's memory.
    pub fn keys(&self) -> Option<&AdHocStore> {
        self.keys.as_deref()
    }

    pub(super) fn app(&self) -> &App {
        &self.app
    }

    /// The policies in force.
    pub(super) fn directory(&self) -> Arc<Directory> {
        let (set, known) = (self.app.limiter().policies(), self.directory.load());
        if known.is_of(&set) {
            return Arc::clone(&known);
        }
        let directory = Arc::new(Directory::of(&self.app));
        self.directory.store(Arc::clone(&directory));
        directory
    }

    pub(super) fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    pub(super) fn opened(&self) -> Timestamp {
        self.opened
    }

    /// Lets one more client in; `None` if there are as many as may be.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Admission> {
        let before = self.clients.fetch_add(1, Ordering::Relaxed);
        if before >= self.most_clients {
            self.clients.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        Some(Admission { door: Arc::clone(self), id })
    }

    /// Clients let in now.
    pub(super) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Clients let in since the start.
    pub(super) fn clients_ever(&self) -> u64 {
        self.ids.load(Ordering::Relaxed)
    }

    /// Commands carried out since the start.
    pub(super) fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    pub(super) fn carried_out(&self, commands: u64) {
        self.commands.fetch_add(commands, Ordering::Relaxed);
    }
}

impl Admission {
    pub(super) fn door(&self) -> &Door {
        &self.door
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.door.clients.fetch_sub(1, Ordering::Relaxed);
    }
}
