//! What is known of one client.

use std::net::SocketAddr;

use tidegate::Timestamp;

use super::limits::Limits;
use super::parse::From;
use super::reply::Protocol;

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Say hello and show a password.
    Stranger,
    /// Ask for decisions.
    User,
    /// Change keys' states by hand as well.
    Admin,
}

/// Whether a client hears replies; see `CLIENT REPLY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Hears {
    #[default]
    Everything,
    /// The reply to the next command is left out.
    NotTheNext,
    Nothing,
}

/// Where a connection comes from, where it came to, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    pub(super) since: Timestamp,
}

/// One client's session, from its connection on.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) origin: Origin,
    pub(super) rank: Rank,
    pub(super) protocol: Protocol,
    pub(super) hears: Hears,
    pub(super) name: String,
    pub(super) library: String,
    pub(super) library_version: String,
    /// Figures of `CL.THROTTLE` it has used lately.
    pub(super) limits: Limits,
}

impl Session {
    pub(super) fn new(id: u64, origin: Origin, rank: Rank) -> Self {
        Session {
            id,
            origin,
            rank,
            protocol: Protocol::default(),
            hears: Hears::default(),
            name: String::new(),
            library: String::new(),
            library_version: String::new(),
            limits: Limits::default(),
        }
    }

    /// As whom its bytes are read.
    pub(super) fn reads_as(&self) -> From {
        if self.rank == Rank::Stranger { From::Stranger } else { From::Client }
    }
}
