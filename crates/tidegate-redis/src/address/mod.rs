//! Where a store is: `redis://host:6379/0` and its kin.

mod parse;
mod password;
mod percent;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) use password::{Credentials, Password};

/// Where a store is, and how one gets in.
///
/// | written | means |
/// |---|---|
/// | `redis://host:6379/0` | one server; the port is 6379 and the database 0 unless told otherwise |
/// | `rediss://host` | the same by TLS |
/// | `redis+unix:///run/redis.sock?db=0`, `unix:///run/redis.sock` | one server by a Unix socket |
/// | `redis+sentinel://a:26379,b,c/mymaster/0` | the master of this name, wherever these sentinels say that it is |
/// | `redis+cluster://a:6379,b,c` | the cluster that these are nodes of; some are enough |
/// | `rediss+sentinel://...`, `rediss+cluster://...` | the same by TLS, the sentinels too |
///
/// `valkey` may be written for `redis`. A user and a password stand before the hosts: `redis://user:password@host`,
/// `redis://:password@host`, with `%40` for `@` and so on. What may follow after `?`, joined by `&`:
///
/// | written | means |
/// |---|---|
/// | `password_env=NAME`, `password_file=PATH` | the password is in this variable of the environment, in this file |
/// | `ca=PATH` | with TLS: the certificates of those who may have signed the server's, PEM; the system's if absent |
/// | `cert=PATH`, `key=PATH` | with TLS: the client's certificate and key, PEM |
/// | `server_name=NAME` | with TLS: the name that the server's certificate must have; the host's if absent |
/// | `db=N` | with a Unix socket: the database |
/// | `sentinel_user=NAME`, `sentinel_password_env=NAME`, `sentinel_password_file=PATH` | how the sentinels let one in; they ask for nothing if absent |
///
/// `Display` and `Debug` never show a password.
///
/// ```
/// use tidegate_redis::Address;
///
/// let address: Address = "redis://app:secret@cache.example/2".parse()?;
/// assert_eq!(address.to_string(), "redis://app:***@cache.example:6379/2");
///
/// let error = "http://cache.example".parse::<Address>().unwrap_err();
/// assert_eq!(error.to_string(), "store: unknown scheme \"http\" (use redis, rediss, redis+sentinel, \
///     rediss+sentinel, redis+cluster, rediss+cluster, redis+unix, unix; or valkey for redis)");
/// # Ok::<(), tidegate_redis::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) place: Place,
    pub(crate) credentials: Credentials,
    pub(crate) database: u32,
    pub(crate) tls: Option<Tls>,
}

impl Address {
    /// Whether it is a cluster's, so that checks of several keys are decided as one only in a partition.
    pub fn is_cluster(&self) -> bool {
        matches!(self.place, Place::Cluster(_))
    }
}

/// Which servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One, by TCP.
    Server(Host),
    /// One, by a Unix socket.
    Socket(PathBuf),
    /// The master of a name, as sentinels know it.
    Sentinel { sentinels: Vec<Host>, master: String, credentials: Credentials },
    /// A cluster, by some of its nodes.
    Cluster(Vec<Host>),
}

/// A host, by name or address (an IPv6 address without its brackets), and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, port) = (&self.name, self.port);
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

/// Whom to trust, and who we are, by certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// Who may have signed the server's certificate; the system's list if absent.
    pub(crate) ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// The name to be found in the server's certificate; the host's if absent.
    pub(crate) server_name: Option<String>,
}

/// Why a text is no [`Address`]. It says what is wrong and how to mend it, and holds no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("store: {0}")]
pub struct AddressError(pub(crate) String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse::address(text).map_err(AddressError)
    }
}

impl fmt::Display for Address {
    /// The address in full, passwords as `***`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls.is_some() { "s" } else { "" };
        match &self.place {
            Place::Server(host) => write!(f, "redis{s}://{}{host}", self.credentials)?,
            Place::Socket(path) => {
                let path = percent::encode_path(&path.to_string_lossy());
                write!(f, "redis{s}+unix://{}{path}", self.credentials)?;
            }
            Place::Sentinel { sentinels, master, .. } => {
                let (hosts, master) = (list(sentinels), percent::encode(master));
                write!(f, "redis{s}+sentinel://{}{hosts}/{master}", self.credentials)?;
            }
            Place::Cluster(nodes) => write!(f, "redis{s}+cluster://{}{}", self.credentials, list(nodes))?,
        }
        let mut query = self.credentials.query(["", "password_env", "password_file"]);
        if let Place::Sentinel { credentials, .. } = &self.place {
            query.extend(credentials.query(SENTINEL));
        }
        match (&self.place, self.database) {
            (_, 0) => {}
            (Place::Socket(_), database) => query.push(("db", database.to_string())),
            (_, database) => write!(f, "/{database}")?,
        }
        let tls = self.tls.iter().flat_map(|tls| {
            let path = |path: &PathBuf| path.to_string_lossy().into_owned();
            let (cert, key) = tls.identity.as_ref().map(|(cert, key)| (path(cert), path(key))).unzip();
            [("ca", tls.ca.as_ref().map(path)), ("cert", cert), ("key", key)]
                .into_iter()
                .chain([("server_name", tls.server_name.clone())])
                .filter_map(|(name, value)| Some((name, value?)))
        });
        query.extend(tls);
        for (index, (name, value)) in query.into_iter().enumerate() {
            let joint = if index == 0 { '?' } else { '&' };
            write!(f, "{joint}{name}={}", percent::encode(&value))?;
        }
        Ok(())
    }
}

/// What stands after `?` of the credentials for sentinels.
const SENTINEL: [&str; 3] = ["sentinel_user", "sentinel_password_env", "sentinel_password_file"];

fn list(hosts: &[Host]) -> String {
    hosts.iter().map(Host::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
