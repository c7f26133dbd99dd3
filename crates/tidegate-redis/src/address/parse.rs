//! Taking an address apart.
//!
//! Where the text is broken, a password may be anywhere in it: a message shows only what cannot be one.

use std::path::PathBuf;

use super::percent;
use super::{Address, Credentials, Host, Password, Place, SENTINEL, Tls};

const SCHEMES: &str = "redis, rediss, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster, redis+unix, unix; or valkey for redis";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// The last database a server can be told to have.
const LAST_DATABASE: u32 = i32::MAX as u32;

/// What a scheme says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Server,
    Socket,
    Sentinel,
    Cluster,
}

/// The parts of the text.
struct Parts<'a> {
    user_info: Option<&'a str>,
    hosts: &'a str,
    path: &'a str,
    query: &'a str,
}

pub(super) fn address(text: &str) -> Result<Address, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("no scheme (write redis://host:{PORT}; schemes are {SCHEMES})"));
    };
    let (kind, encrypted) = kind(scheme)?;
    let parts = parts(rest)?;
    let mut query = Query::read(parts.query)?;
    let (place, database) = match kind {
        Kind::Server => (Place::Server(host(parts.hosts, PORT)?), database(parts.path)?),
        Kind::Socket => (socket(&parts)?, query.take("db").map_or(Ok(0), |db| database(&db))?),
        Kind::Sentinel => sentinel(&parts, &mut query)?,
        Kind::Cluster => (cluster(&parts)?, 0),
    };
    let credentials = credentials(parts.user_info, &mut query)?;
    let tls = if encrypted { Some(tls(&mut query)?) } else { None };
    query.finish(kind, encrypted)?;
    Ok(Address { place, credentials, database, tls })
}

fn kind(scheme: &str) -> Result<(Kind, bool), String> {
    if scheme == "unix" {
        return Ok((Kind::Socket, false));
    }
    let (protocol, way) = scheme.split_once('+').unwrap_or((scheme, ""));
    let encrypted = match protocol {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(unknown(scheme)),
    };
    match way {
        "" if !scheme.contains('+') => Ok((Kind::Server, encrypted)),
        "unix" if !encrypted => Ok((Kind::Socket, false)),
        "sentinel" => Ok((Kind::Sentinel, encrypted)),
        "cluster" => Ok((Kind::Cluster, encrypted)),
        _ => Err(unknown(scheme)),
    }
}

fn unknown(scheme: &str) -> String {
    // Whoever forgot the scheme may have "://" in a password.
    let plain = scheme.len() <= 32 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    let shown = if plain { format!(" {scheme:?}") } else { String::new() };
    format!("unknown scheme{shown} (use {SCHEMES})")
}

fn parts(rest: &str) -> Result<Parts<'_>, String> {
    if rest.contains('#') {
        return Err("a # in it (write %23 for # in a password)".to_owned());
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if path.contains('@') || query.contains('@') {
        return Err(
            "an @ after the hosts (write %2F for / and %3F for ? in a password, %40 for @ in a path)"
                .to_owned(),
        );
    }
    let (user_info, hosts) = match authority.rsplit_once('@') {
        Some((info, hosts)) => (Some(info), hosts),
        None => (None, authority),
    };
    Ok(Parts { user_info, hosts, path, query })
}

/// A host with or without a port.
fn host(text: &str, default_port: u16) -> Result<Host, String> {
    let (name, port) = if let Some(bracketed) = text.strip_prefix('[') {
        let Some((name, port)) = bracketed.split_once(']') else {
            return Err("a [ before a host without its ] (write [::1]:6379)".to_owned());
        };
        if name.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("what stands in [ ] is no IPv6 address (write [::1]:6379)".to_owned());
        }
        (name, port)
    } else {
        let (name, port) = text.find(':').map_or((text, ""), |at| text.split_at(at));
        if name.is_empty() {
            return Err(format!("no host (write redis://host:{default_port})"));
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
            return Err(
                "a host has letters, digits, - . and _ (a password ends with @, and in it @ is written %40)"
                    .to_owned(),
            );
        }
        (name, port)
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some(digits) => match digits.parse() {
            Ok(port @ 1..) if digits.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => {
                return Err(format!(
                    "a port that is no number from 1 to 65535 (write {name}:{default_port}; a password ends with @)"
                ));
            }
        },
        None => return Err("something other than : and a port after ] (write [::1]:6379)".to_owned()),
    };
    Ok(Host { name: name.to_ascii_lowercase(), port })
}

fn database(path: &str) -> Result<u32, String> {
    let digits = path.strip_prefix('/').unwrap_or(path);
    if digits.is_empty() {
        return Ok(0);
    }
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    number.filter(|&number| number <= LAST_DATABASE).ok_or_else(|| {
        format!("a database that is no number from 0 to {LAST_DATABASE} (write redis://host:{PORT}/0)")
    })
}

fn socket(parts: &Parts<'_>) -> Result<Place, String> {
    if !parts.hosts.is_empty() {
        return Err("a host before a Unix socket's path (write redis+unix:///run/redis.sock)".to_owned());
    }
    let path = percent::decode(parts.path).map_err(|error| format!("in the socket's path: {error}"))?;
    if path.len() < 2 {
        return Err("no path of a Unix socket (write redis+unix:///run/redis.sock)".to_owned());
    }
    Ok(Place::Socket(path.into()))
}

fn sentinel(parts: &Parts<'_>, query: &mut Query) -> Result<(Place, u32), String> {
    let sentinels = hosts(parts.hosts, SENTINEL_PORT)?;
    let path = parts.path.strip_prefix('/').unwrap_or_default();
    let (master, number) = path.split_once('/').unwrap_or((path, ""));
    let master = percent::decode(master).map_err(|error| format!("in the master's name: {error}"))?;
    if master.is_empty() {
        return Err("no name of the master (write redis+sentinel://a,b,c/mymaster)".to_owned());
    }
    if master.contains(char::is_whitespace) {
        return Err("a master's name with a space in it (sentinels know none)".to_owned());
    }
    let [user, variable, file] = SENTINEL.map(|name| query.take(name));
    let password = match (variable, file) {
        (None, None) if user.is_some() => {
            return Err("sentinel_user without a password (add &sentinel_password_env=NAME)".to_owned());
        }
        (None, None) => Password::None,
        (Some(name), None) => Password::Variable(name),
        (None, Some(path)) => Password::File(path.into()),
        (Some(_), Some(_)) => {
            return Err("both sentinel_password_env and sentinel_password_file (keep one)".to_owned());
        }
    };
    let credentials = Credentials { user, password };
    Ok((Place::Sentinel { sentinels, master, credentials }, database(number)?))
}

fn cluster(parts: &Parts<'_>) -> Result<Place, String> {
    if database(parts.path)? != 0 {
        return Err("a database other than 0 in a cluster (write redis+cluster://a,b,c)".to_owned());
    }
    Ok(Place::Cluster(hosts(parts.hosts, PORT)?))
}

/// Hosts with commas between them.
fn hosts(text: &str, default_port: u16) -> Result<Vec<Host>, String> {
    text.split(',').map(|one| host(one, default_port)).collect()
}

fn credentials(user_info: Option<&str>, query: &mut Query) -> Result<Credentials, String> {
    let decode =
        |text: &str| percent::decode(text).map_err(|error| format!("in the user or password: {error}"));
    let (user, given) = match user_info.map(|info| info.split_once(':').unwrap_or((info, ""))) {
        None => (None, None),
        Some((user, password)) => (
            (!user.is_empty()).then(|| decode(user)).transpose()?,
            (!password.is_empty()).then(|| decode(password)).transpose()?,
        ),
    };
    let password = match (given, query.take("password_env"), query.take("password_file")) {
        (None, None, None) => Password::None,
        (Some(password), None, None) => Password::Given(password),
        (None, Some(name), None) => Password::Variable(name),
        (None, None, Some(path)) => Password::File(path.into()),
        _ => {
            return Err(
                "more than one of a password before @, password_env and password_file (keep one)".to_owned()
            );
        }
    };
    if user.is_some() && password == Password::None {
        return Err("a user without a password (write redis://user:password@host, or redis://:password@host for a password alone)".to_owned());
    }
    if user_info.is_some() && user.is_none() && password == Password::None {
        return Err("nothing before @ (write redis://:password@host, or leave out the @)".to_owned());
    }
    Ok(Credentials { user, password })
}

fn tls(query: &mut Query) -> Result<Tls, String> {
    let mut path = |name| query.take(name).map(PathBuf::from);
    let ca = path("ca");
    let identity = match (path("cert"), path("key")) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some((cert, key)),
        (Some(_), None) => return Err("cert without key (add &key=PATH)".to_owned()),
        (None, Some(_)) => return Err("key without cert (add &cert=PATH)".to_owned()),
    };
    Ok(Tls { ca, identity, server_name: query.take("server_name") })
}

/// What stands after `?`.
struct Query(Vec<(String, String)>);

impl Query {
    fn read(text: &str) -> Result<Self, String> {
        let mut read: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) if !value.is_empty() => (name, value),
                _ => {
                    return Err("a setting without a value after ? (write ?name=value&name=value)".to_owned());
                }
            };
            let decode = |text| percent::decode(text).map_err(|error| format!("after ?: {error}"));
            let (name, value) = (decode(name)?, decode(value)?);
            if read.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name:?} twice after ? (keep one)"));
            }
            read.push((name, value));
        }
        Ok(Self(read))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Everything must have been taken.
    fn finish(self, kind: Kind, encrypted: bool) -> Result<(), String> {
        let Some((name, _)) = self.0.first() else { return Ok(()) };
        let mut known = vec!["password_env", "password_file"];
        match kind {
            Kind::Socket => known.push("db"),
            Kind::Sentinel => known.extend(SENTINEL),
            Kind::Server | Kind::Cluster => {}
        }
        if encrypted {
            known.extend(["ca", "cert", "key", "server_name"]);
        }
        let tls = ["ca", "cert", "key", "server_name"].contains(&name.as_str()) && !encrypted;
        let mend = if tls {
            "TLS is asked for by rediss://".to_owned()
        } else {
            format!("use {}", known.join(", "))
        };
        Err(format!("unknown setting {name:?} after ? ({mend})"))
    }
}
