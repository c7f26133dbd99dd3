#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<String, String> {
    text.parse::<Address>().map(|it| it.to_string()).map_err(|error| error.to_string())
}

#[test]
fn addresses_are_read_and_written_in_full() {
    for (written, full) in [
        ("redis://h", "redis://h:6379"),
        ("redis://h/", "redis://h:6379"),
        ("redis://h:1/0", "redis://h:1"),
        ("valkey://H.example:65535/15", "redis://h.example:65535/15"),
        ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
        ("redis://[::1]", "redis://[::1]:6379"),
        ("redis://[::1]:7/3", "redis://[::1]:7/3"),
        ("redis://:p@h", "redis://:***@h:6379"),
        ("redis://u:p:q@h", "redis://u:***@h:6379"),
        ("redis://u%40:p%2F%40@h", "redis://u%40:***@h:6379"),
        ("redis://u:p@q@h", "redis://u:***@h:6379"),
        ("redis://u@h?password_env=PW", "redis://u@h:6379?password_env=PW"),
        ("redis://h?password_file=/run/a%20b", "redis://h:6379?password_file=%2Frun%2Fa%20b"),
        ("unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ("valkey+unix://u:p@/a%20b?db=2", "redis+unix://u:***@/a%20b?db=2"),
        ("rediss://h", "rediss://h:6379"),
        ("redis+sentinel://a,b:1,[::1]/m", "redis+sentinel://a:26379,b:1,[::1]:26379/m"),
        ("rediss+sentinel://:p@a/m%2Fn/3?ca=c", "rediss+sentinel://:***@a:26379/m%2Fn/3?ca=c"),
        (
            "valkey+sentinel://a/m?sentinel_password_env=S&sentinel_user=u&password_env=P",
            "redis+sentinel://a:26379/m?password_env=P&sentinel_user=u&sentinel_password_env=S",
        ),
        (
            "redis+sentinel://a/m?sentinel_password_file=f",
            "redis+sentinel://a:26379/m?sentinel_password_file=f",
        ),
        ("redis+cluster://a", "redis+cluster://a:6379"),
        ("rediss+cluster://u:p@a:7000,b/0", "rediss+cluster://u:***@a:7000,b:6379"),
        (
            "valkeys://h/1?key=k&cert=c&ca=/ca.pem&server_name=n",
            "rediss://h:6379/1?ca=%2Fca.pem&cert=c&key=k&server_name=n",
        ),
    ] {
        assert_eq!(read(written).as_deref(), Ok(full), "{written}");
    }
}

#[test]
fn parts_arrive_where_they_belong() {
    let address: Address = "redis://u%3A:p%40w%25@h:1/2".parse().unwrap();
    let credentials =
        Credentials { user: Some("u:".to_owned()), password: Password::Given("p@w%".to_owned()) };
    assert_eq!(address.credentials, credentials);
    assert_eq!(address.place, Place::Server(Host { name: "h".to_owned(), port: 1 }));
    assert_eq!((address.database, address.tls), (2, None));
}

#[test]
fn errors_name_the_part_the_rule_and_the_mend() {
    for (written, error) in [
        ("localhost:6379", "no scheme (write redis://host:6379; schemes are "),
        ("", "no scheme ("),
        ("http://h", "unknown scheme \"http\" (use redis, rediss, "),
        ("redis+://h", "unknown scheme \"redis+\" ("),
        ("rediss+unix:///s", "unknown scheme \"rediss+unix\" ("),
        ("redis://", "no host (write redis://host:6379)"),
        ("redis://:1", "no host ("),
        ("redis://a b", "a host has letters, digits, - . and _ ("),
        ("redis://h:0", "a port that is no number from 1 to 65535 (write h:6379; "),
        ("redis://h:65536", "a port that is no number"),
        ("redis://h:+1", "a port that is no number"),
        ("redis://h:", "a port that is no number"),
        ("redis://[::1", "a [ before a host without its ] ("),
        ("redis://[x]", "what stands in [ ] is no IPv6 address ("),
        ("redis://[::1]1", "something other than : and a port after ] ("),
        ("redis://h/x", "a database that is no number from 0 to 2147483647 ("),
        ("redis://h/2147483648", "a database that is no number"),
        ("redis://h/-1", "a database that is no number"),
        ("redis://u@h", "a user without a password ("),
        ("redis://@h", "nothing before @ ("),
        ("redis://:@h", "nothing before @ ("),
        ("redis://u:%4@h", "in the user or password: a % without two hexadecimal digits"),
        ("redis://u:%ff@h", "in the user or password: %XX that make no UTF-8"),
        ("redis://u:%00@h", "in the user or password: %00"),
        ("redis://:p@h?password_env=X", "more than one of a password before @, password_env and"),
        ("redis://h?x=1", "unknown setting \"x\" after ? (use password_env, password_file)"),
        ("redis://h?db=1", "unknown setting \"db\" after ? (use password_env, password_file)"),
        ("redis://h?ca=1", "unknown setting \"ca\" after ? (TLS is asked for by rediss://)"),
        (
            "rediss://h?x=1",
            "unknown setting \"x\" after ? (use password_env, password_file, ca, cert, key, server_name)",
        ),
        ("rediss://h?cert=1", "cert without key (add &key=PATH)"),
        ("rediss://h?key=1", "key without cert (add &cert=PATH)"),
        ("redis://h?ca", "a setting without a value after ? ("),
        ("redis://h?db=1&db=2", "\"db\" twice after ? (keep one)"),
        ("redis://h#1", "a # in it (write %23 for # in a password)"),
        ("unix://", "no path of a Unix socket ("),
        ("unix:///", "no path of a Unix socket ("),
        ("unix://run/redis.sock", "a host before a Unix socket's path ("),
        ("redis+sentinel://a", "no name of the master ("),
        ("redis+sentinel:///m", "no host (write redis://host:26379)"),
        ("redis+sentinel://a,,b/m", "no host ("),
        ("redis+sentinel://a/m/x", "a database that is no number"),
        ("redis+sentinel://a/m%20n", "a master's name with a space in it ("),
        ("redis+sentinel://a/m?sentinel_user=u", "sentinel_user without a password ("),
        (
            "redis+sentinel://a/m?sentinel_password_env=u&sentinel_password_file=f",
            "both sentinel_password_env and ",
        ),
        (
            "redis+sentinel://a/m?db=1",
            "unknown setting \"db\" after ? (use password_env, password_file, sentinel_user, sentinel_password_env, sentinel_password_file)",
        ),
        ("redis+cluster://a/1", "a database other than 0 in a cluster ("),
        ("redis+cluster://a;b", "a host has letters"),
        ("redis+cluster://a?sentinel_user=u", "unknown setting \"sentinel_user\" after ? ("),
        ("unix:///s?db=x", "a database that is no number"),
    ] {
        let said = read(written).unwrap_err();
        assert!(said.starts_with(&format!("store: {error}")), "{written}: {said}");
    }
}

#[test]
fn a_password_is_never_shown_however_broken_the_rest() {
    for written in [
        "redis://:s3cret@h",
        "redis://u:s3cret@h:x",
        "redis://u:a/s3cret@h",
        "redis://u:a?s3cret@h",
        "redis://u:a#s3cret@h",
        "redis://u:s3cret%@h",
        "redis://h:s3cret",
        "redis://s3cret@h",
        "redis:/u:s3cret@h",
        "u:s3cret://x@h",
        "redis://u:s3cret@h@",
        "redis://u:p@s3cret@h/x",
        "redis://u:s3cret@h?x=1",
        "redis://u:a/s3cret",
    ] {
        let address = written.parse::<Address>();
        let said = match &address {
            Ok(address) => format!("{address} {address:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!said.contains("s3cret"), "{written}: {said}");
    }
}

#[test]
fn passwords_are_read_where_they_are() {
    let file = std::env::temp_dir().join(format!("tidegate-password-{}", std::process::id()));
    std::fs::write(&file, "pass word\r\n").unwrap();
    let read = Password::File(file.clone()).read("");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read, Ok(Some("pass word".to_owned())));
    let gone = Password::File(file).read("sentinel_").unwrap_err();
    assert!(gone.starts_with("sentinel_password_file=") && gone.ends_with("(make it readable)"), "{gone}");
    assert_eq!(
        Password::Variable("CARGO_PKG_NAME".to_owned()).read(""),
        Ok(Some("tidegate-redis".to_owned()))
    );
    let unset = Password::Variable("TIDEGATE_NO_SUCH".to_owned()).read("").unwrap_err();
    assert_eq!(unset, "password_env=TIDEGATE_NO_SUCH: no such variable, or not UTF-8 (set TIDEGATE_NO_SUCH)");
}

proptest! {
    #[test]
    fn what_was_read_reads_the_same_when_written(text in "(redis|rediss|valkey|unix|redis\\+unix|redis\\+sentinel|rediss\\+cluster)://([a-z:@%0-9]{0,8}@)?[a-z0-9.:\\[\\],]{0,12}(/[a-z0-9%]{0,6})?(\\?[a-z_&=/%0-9]{0,24})?") {
        if let Ok(address) = text.parse::<Address>() {
            let written = address.to_string();
            let again: Address = written.parse().unwrap();
            prop_assert_eq!(again.to_string(), written);
            if !matches!(address.credentials.password, Password::Given(_)) {
                prop_assert_eq!(again, address);
            }
        }
    }
}
