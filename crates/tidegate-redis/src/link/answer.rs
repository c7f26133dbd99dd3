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
    /// There is no room, and was none before the first write.
    NoRoom(String),
    /// The user may not do that. A script may have been half way through.
    NotAllowed { said: String, begun: bool },
    /// A script met data that it was told not to expect: a value of another type, an entry that is none.
    Foreign(String),
    /// Anything else.
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
            "OOM" => Self::NoRoom(said),
            "NOPERM" => Self::NotAllowed { begun: said.contains("script"), said },
            // Redis 7.0's words for it.
            _ if said.contains("The user executing the script can't") => {
                Self::NotAllowed { begun: true, said }
            }
            "WRONGTYPE" | "DAMAGED" => Self::Foreign(said),
            // Our scripts fail on nothing else.
            _ if said.contains("user_script") && !said.contains("called from script") => Self::Foreign(said),
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
            Self::NotMaster(said) => {
                Err(Failure::NotRun(format!("{said} (it is a replica; the store has to be a master)")))
            }
            Self::TryAgain(said) | Self::NotNow(said) => Err(Failure::NotRun(said)),
            Self::NoRoom(said) => Err(Failure::NoRoom(said)),
            Self::NotAllowed { said, begun } => Err(Failure::NotAllowed { said, begun }),
            Self::Foreign(said) => Err(Failure::Foreign(said)),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(wire: &str) -> Answer {
        Answer::of(redis::parse_redis_value(wire.as_bytes()).unwrap())
    }

    #[test]
    fn errors_mean_what_they_prove() {
        let to = || "127.0.0.1:6381".to_owned();
        assert_eq!(of("-NOSCRIPT No matching script. Please use EVAL.\r\n"), Answer::NoScript);
        assert_eq!(of("-NOSCRIPT No matching script.\r\n"), Answer::NoScript);
        assert_eq!(of("-MOVED 3999 127.0.0.1:6381\r\n"), Answer::Moved { to: to() });
        assert_eq!(of("-ASK 3999 127.0.0.1:6381\r\n"), Answer::Ask { to: to() });
        // Words of the servers' own, and what became of the command.
        for (said, meaning) in [
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Answer::TryAgain as fn(String) -> Answer,
            ),
            ("READONLY You can't write against a read only replica.", Answer::NotMaster),
            (
                "READONLY You can't write against a read only replica. script: abc, on @user_script:1.",
                Answer::NotMaster,
            ),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Answer::NotMaster,
            ),
            ("LOADING Redis is loading the dataset in memory", Answer::NotNow),
            ("LOADING Valkey is loading the dataset in memory", Answer::NotNow),
            (
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
                Answer::NotNow,
            ),
            ("CLUSTERDOWN The cluster is down", Answer::NotNow),
            ("CLUSTERDOWN Hash slot not served", Answer::NotNow),
            ("MISCONF Errors writing to the AOF file: No space left on device", Answer::NotNow),
            ("NOREPLICAS Not enough good replicas to write.", Answer::NotNow),
            ("NOAUTH Authentication required.", Answer::NotNow),
            ("OOM command not allowed when used memory > 'maxmemory'.", Answer::NoRoom),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Answer::Foreign),
            ("DAMAGED the fields tokens and last are not numbers", Answer::Foreign),
            (
                "ERR user_script:9: bad argument #2 to 'unpack' (data string too short) script: abc, on @user_script:9.",
                Answer::Foreign,
            ),
            ("ERR Unknown Redis command called from script script: abc, on @user_script:1.", Answer::Refused),
            ("NOPERM User default has no permissions to run the 'evalsha' command", |said| {
                Answer::NotAllowed { said, begun: false }
            }),
            (
                "NOPERM ACL failure in script: User x has no permissions to run the 'set' command script: abc",
                |said| Answer::NotAllowed { said, begun: true },
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: abc, on @user_script:1.",
                |said| Answer::NotAllowed { said, begun: true },
            ),
            ("CROSSSLOT Keys in request don't hash to the same slot", Answer::Refused),
            ("ERR unknown command 'EVALSHA'", Answer::Refused),
            ("UNHEARDOF", Answer::Refused),
        ] {
            assert_eq!(of(&format!("-{said}\r\n")), meaning(said.to_owned()), "{said}");
        }
    }

    #[test]
    fn an_error_inside_an_answer_is_one() {
        assert_eq!(of("*2\r\n:1\r\n-TGBAD x y\r\n"), Answer::Refused("TGBAD x y".to_owned()));
        assert_eq!(of("*2\r\n:1\r\n$-1\r\n"), Answer::Value(Value::Array(vec![Value::Int(1), Value::Nil])));
    }

    #[test]
    fn answers_that_are_none_are_refused_by_name() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let times = |seconds, micros| Value::Array(vec![bulk(seconds), bulk(micros)]);
        assert_eq!(time(times("1700000000", "123456")), Ok(1_700_000_000_123_456));
        for wrong in [times("x", "1"), times("18446744073709551615", "1"), Value::Nil, bulk("1")] {
            assert!(matches!(time(wrong.clone()), Err(Failure::Refused(_))), "{wrong:?}");
        }
        assert_eq!(
            version(bulk("redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n")),
            Ok("Valkey 9.1.2".to_owned())
        );
        assert_eq!(version(bulk("# Server\r\nredis_version:7.0.15\r\n")), Ok("Redis 7.0.15".to_owned()));
        assert!(version(Value::Nil).is_err());
        assert_eq!((count(Value::Int(3)), count(Value::Nil).is_err()), (Ok(3), true));
    }
}
