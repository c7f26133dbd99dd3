//! What an answer says of the command it answers.

use redis::{ServerError, Value};

use super::Failure;

/// An answer, by what it means for the command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// It ran.
    Value(Value),
    /// The server does not know the script (any more).
    NoScript,
    /// The slot is another node's.
    Moved { to: String },
    /// This one time another node is to be asked.
    Ask { to: String },
    /// The slot's keys are on their way elsewhere.
    TryAgain(String),
    /// The server is no master, any more or yet.
    NotMaster(String),
    /// The server cannot now: it starts, is without its cluster, has another script to run.
    NotNow(String),
    /// The command was wrong, or the data it met.
    Refused(String),
}

impl Answer {
    /// The meaning of an answer.
    pub fn of(value: Value) -> Self {
        match value {
            Value::ServerError(error) => Self::of_error(&error),
            // A script that returns an error in a list.
            value => match value.extract_error() {
                Ok(value) => Self::Value(value),
                Err(error) => Self::Refused(words(error.code().unwrap_or("ERR"), error.detail())),
            },
        }
    }

    fn of_error(error: &ServerError) -> Self {
        let said = words(error.code(), error.details());
        // "MOVED 3999 127.0.0.1:6381"
        let to =
            || error.details().and_then(|details| details.split(' ').nth(1)).unwrap_or_default().to_owned();
        match error.code() {
            "NOSCRIPT" => Self::NoScript,
            "MOVED" => Self::Moved { to: to() },
            "ASK" => Self::Ask { to: to() },
            "TRYAGAIN" => Self::TryAgain(said),
            // Of these READONLY may come from within a script: from its first write, before which nothing changed.
            "READONLY" | "MASTERDOWN" => Self::NotMaster(said),
            // MISCONF and NOREPLICAS too come before the first write, or not at all.
            "LOADING" | "BUSY" | "CLUSTERDOWN" | "MISCONF" | "NOREPLICAS" | "NOAUTH" | "WRONGPASS" => {
                Self::NotNow(said)
            }
            _ => Self::Refused(said),
        }
    }

    /// The value, or what it is to the caller that there is none.
    pub fn or_failure(self) -> Result<Value, Failure> {
        match self {
            Self::Value(value) => Ok(value),
            Self::NoScript => Err(Failure::NotRun("NOSCRIPT".to_owned())),
            Self::Moved { to } | Self::Ask { to } => Err(Failure::NotRun(format!(
                "the key is at {to}: the store is a cluster (write redis+cluster://{to})"
            ))),
            Self::TryAgain(said) | Self::NotMaster(said) | Self::NotNow(said) => Err(Failure::NotRun(said)),
            Self::Refused(said) => Err(Failure::Refused(said)),
        }
    }
}

fn words(code: &str, details: Option<&str>) -> String {
    match details {
        Some(details) => format!("{code} {details}"),
        None => code.to_owned(),
    }
}

/// What `TIME` answers, in microseconds since the Unix epoch.
pub(super) fn time(value: Value) -> Result<u64, Failure> {
    let parts: Option<(u64, u64)> = redis::from_redis_value(value).ok();
    let micros = parts.and_then(|(seconds, micros)| seconds.checked_mul(1_000_000)?.checked_add(micros));
    micros.ok_or_else(|| Failure::Refused("TIME: no seconds and microseconds".to_owned()))
}

/// A number of keys.
pub(super) fn count(value: Value) -> Result<u64, Failure> {
    redis::from_redis_value(value).map_err(|_| Failure::Refused("DEL: no number".to_owned()))
}

/// The server's name and version in what `INFO` answers.
pub(super) fn version(value: Value) -> Result<String, Failure> {
    let info: String = redis::from_redis_value(value).unwrap_or_default();
    let field =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    match (field("valkey_version"), field("redis_version")) {
        (Some(version), _) => Ok(format!("Valkey {version}")),
        (None, Some(version)) => Ok(format!("Redis {version}")),
        (None, None) => Err(Failure::Refused("INFO: no version".to_owned())),
    }
}
