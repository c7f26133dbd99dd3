//! `tidegate serve` as a process: flags, signals, exit codes.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Long past any that a healthy server takes; a sick one must not hang the tests.
const PATIENCE: Duration = Duration::from_secs(60);

const FIVE: &str = "policies: {api: {limits: [{algorithm: token_bucket, capacity: 5, refill: 1/h}]}}";

/// A running `tidegate serve`, killed when it is dropped.
struct Server {
    process: Child,
    address: String,
    /// Where Envoy asks, if it may.
    grpc: Option<String>,
    /// Where Redis clients are let in, if they are.
    resp: Option<String>,
    log: Receiver<String>,
    /// The lines of the log read so far.
    read: Vec<String>,
}

/// The command, on a free port, untouched by the environment of the tests.
fn serve(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    command.arg("serve").args(args).env("TIDEGATE_LISTEN_HTTP", "127.0.0.1:0");
    command.env("TIDEGATE_LISTEN_GRPC", "127.0.0.1:0").env("TIDEGATE_LISTEN_RESP", "127.0.0.1:0");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if send.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    lines
}

impl Server {
    fn start(args: &[&str]) -> Self {
        Self::of(serve(args))
    }

    fn of(mut command: Command) -> Self {
        let shut = command.get_args().filter(|argument| *argument == "off").count();
        let mut process = command.spawn().unwrap();
        let log = lines(process.stderr.take().unwrap());
        let out = lines(process.stdout.take().unwrap());
        let mut doors = HashMap::new();
        for _ in 0..3 - shut {
            let line = out.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                let said: Vec<String> = log.iter().collect();
                panic!("it did not start: {said:?}")
            });
            let (door, address) = line.strip_prefix("listening ").unwrap().split_once(' ').unwrap();
            doors.insert(door.to_owned(), address.to_owned());
        }
        let address = doors.remove("http").unwrap();
        let (grpc, resp) = (doors.remove("grpc"), doors.remove("resp"));
        Server { process, address, grpc, resp, log, read: Vec::new() }
    }

    /// Waits for a line of the log that contains this.
    fn says(&mut self, words: &str) -> String {
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => {
                    self.read.push(line.clone());
                    return line;
                }
                Ok(line) => self.read.push(line),
                Err(_) => panic!("{words:?} was not said, but {:#?}", self.read),
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn ended(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// One request on a connection of its own: the status, the head and the body.
    fn ask(&self, request: &str, more_fields: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let fields = format!("host: x\r\nconnection: close\r\ncontent-length: {length}\r\n{more_fields}");
        write!(stream, "{request} HTTP/1.1\r\n{fields}\r\n{body}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn check(&self, body: &str) -> (String, Value) {
        let (status, head, body) = self.ask("POST /v1/check", "content-type: application/json\r\n", body);
        assert_eq!(status, 200, "{body}");
        (head, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs it to its end: the exit code, standard output, standard error.
fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn out_of_the_box_it_says_what_it_does_and_decides() {
    let mut server = Server::start(&[]);
    server.says("at most 100 at once, then 10 every second");
    let curl = server.says("curl -i http://127.0.0.1:");
    assert!(curl.contains(&server.address), "{curl}");
    let (head, json) = server.check(r#"{"key": "user:42"}"#);
    assert_eq!((json["policy"].as_str(), json["limit"].as_u64()), (Some("default"), Some(100)));
    assert!(head.contains("ratelimit-policy: \"default\";q=100;w=10"), "{head}");
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        server.signal(signal);
        server.says("everything under way was answered");
        assert_eq!(server.ended().code(), Some(0));
    }
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = file(folder.path(), "tidegate.yaml", &format!("headers: {{family: none}}\n{FIVE}"));
    let fields = |command: Command| {
        let (head, _) = Server::of(command).check(r#"{"key":"k"}"#);
        (head.contains("x-ratelimit-limit: 5"), head.contains("\nratelimit: "))
    };
    assert_eq!(fields(serve(&["--config", &config])), (false, false));
    let mut command = serve(&[]);
    command.env("TIDEGATE_CONFIG", &config).env("TIDEGATE_HEADERS", "ietf");
    assert_eq!(fields(command), (false, true));
    let mut command = serve(&["--config", &config, "--headers", "x-ratelimit"]);
    command.env("TIDEGATE_HEADERS", "ietf").env("TIDEGATE_CONFIG", "/nowhere");
    assert_eq!(fields(command), (true, false));
}

#[test]
fn an_address_in_use_is_told_with_the_mend() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, out, err) = ended(serve(&["--listen-http", &address]));
    assert_eq!((code, &*out), (Some(1), ""));
    let said = "address already in use (choose another, or stop what listens there)";
    assert_eq!(err, format!("tidegate: --listen-http {address}: {said}\n"));
    let (code, _, err) = ended(serve(&["--listen-http", "nonsense"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("--listen-http nonsense: not an address (write HOST:PORT"), "{err}");
}

#[test]
fn a_wrong_start_is_told_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = file(folder.path(), "wrong.yaml", &FIVE.replace("1/h", "1/sek"));
    let spaces = file(folder.path(), "spaces", "two words\n");
    let token = file(folder.path(), "token", "right\n");
    for (args, said) in [
        (&["--config", &*wrong][..], "wrong.yaml:1: policies.api.limits[0].refill: \"1/sek\""),
        (&["--config", "/nowhere/tidegate.yaml"], "/nowhere/tidegate.yaml: No such file"),
        (&["--admin-token-file", "/nowhere/token"], "--admin-token-file /nowhere/token: No such file"),
        (&["--admin-token-file", &spaces], "the admin token has spaces"),
        (&["--admin-token-file", "/dev/zero"], "--admin-token-file /dev/zero: larger than 64 KiB"),
        (&["--resp-password-file", "/dev/zero"], "--resp-password-file /dev/zero: larger than 64 KiB"),
        (&["--log", "=loud="], "--log =loud="),
        (&["--log", "inof"], "--log inof: \"inof\" is neither a level"),
        (&["--max-keys", "0"], "--max-keys"),
        (&["--drain-timeout", "10"], "--drain-timeout"),
    ] {
        let (code, out, err) = ended(serve(args));
        assert_eq!((code, &*out), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
    let mut both = serve(&["--admin-token-file", &token]);
    both.env("TIDEGATE_ADMIN_TOKEN", "other");
    let (code, _, err) = ended(both);
    assert_eq!(code, Some(2));
    assert!(err.contains("--admin-token-file and TIDEGATE_ADMIN_TOKEN are both given (give one)"), "{err}");
}

#[test]
fn a_wrong_value_that_nobody_typed_is_told_by_its_variable() {
    use std::os::unix::ffi::OsStrExt;
    let not_text = std::ffi::OsStr::from_bytes(b"a\xff");
    for (variable, value) in [
        ("TIDEGATE_CONFIG", "".as_ref()),
        ("TIDEGATE_ADMIN_TOKEN_FILE", "".as_ref()),
        ("TIDEGATE_HEADERS", "loud".as_ref()),
        ("TIDEGATE_MAX_KEYS", "".as_ref()),
        ("TIDEGATE_DRAIN_TIMEOUT", "10".as_ref()),
        ("TIDEGATE_LOG_FORMAT", "".as_ref()),
        ("TIDEGATE_MAX_KEYS", not_text),
    ] {
        let mut command = serve(&[]);
        command.env(variable, value);
        let (code, _, err) = ended(command);
        assert_eq!(code, Some(2), "{variable}: {err}");
        assert!(err.contains(&format!("The value comes from {variable} in the environment")), "{err}");
    }
    let mut typed = serve(&["--headers", "loud"]);
    typed.env("TIDEGATE_HEADERS", "both");
    let (code, _, err) = ended(typed);
    assert_eq!((code, err.contains("environment")), (Some(2), false), "{err}");
}

#[test]
fn a_file_that_cannot_be_read_again_holds_up_neither_reloads_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let config = file(folder.path(), "tidegate.yaml", FIVE);
    let mut server = Server::start(&["--config", &config]);
    fs::remove_file(&config).unwrap();
    // Nobody writes to it: whoever opens it to read waits for ever.
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    server.signal("HUP");
    let line = server.says("reload refused");
    assert!(line.contains("not a plain file: it cannot be read again"), "{line}");
    fs::remove_file(&config).unwrap();
    fs::write(&config, FIVE.replace("capacity: 5", "capacity: 7")).unwrap();
    server.signal("HUP");
    server.says("changed=\"api\"");
    server.signal("TERM");
    assert!(server.ended().success());
}

#[test]
fn the_admin_token_comes_from_a_file_or_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let token = file(folder.path(), "token", "right\n");
    let mut by_variable = serve(&[]);
    by_variable.env("TIDEGATE_ADMIN_TOKEN", "right");
    for command in [serve(&["--admin-token-file", &token]), by_variable] {
        let server = Server::of(command);
        let status = |token: &str| {
            let fields = format!("content-type: application/json\r\nauthorization: Bearer {token}\r\n");
            server.ask("POST /v1/reset", &fields, r#"{"key":"k"}"#).0
        };
        assert_eq!((status("right"), status("wrong")), (200, 401));
    }
}

#[test]
fn a_hangup_reads_the_file_again() {
    let folder = tempfile::tempdir().unwrap();
    let config = file(folder.path(), "tidegate.yaml", FIVE);
    let mut server = Server::start(&["--config", &config]);
    assert_eq!(server.check(r#"{"key":"k","cost":5}"#).1["remaining"], 0);

    fs::write(&config, FIVE.replace("capacity: 5", "capacity: 7")).unwrap();
    server.signal("HUP");
    let line = server.says("reloaded");
    assert!(line.contains("changed=\"api\""), "{line}");
    let json = server.check(r#"{"key":"k","cost":1}"#).1;
    assert_eq!((json["limit"].as_u64(), json["outcome"].as_str()), (Some(7), Some("denied")));

    fs::write(&config, FIVE.replace("capacity: 5", "capacity: -5")).unwrap();
    server.signal("HUP");
    let line = server.says("reload refused, the old configuration stays in force");
    assert!(line.contains("tidegate.yaml:1: policies.api.limits[0].capacity: -5"), "{line}");
    assert_eq!(server.check(r#"{"key":"k","cost":0}"#).1["limit"], 7);

    let other = "memory: {max_keys: 9}\npolicies: {other: {limits: [{name: daily, algorithm: fixed_window, limit: 2, window: 1d}]}}";
    fs::write(&config, other).unwrap();
    server.signal("HUP");
    server.says("changed in the file, and takes effect at the next start: memory.max_keys");
    let line = server.says("reloaded");
    assert!(line.contains("added=\"other\"") && line.contains("removed=\"api\""), "{line}");
    assert_eq!(server.check(r#"{"key":"k"}"#).1["policy"], "other");

    fs::write(&config, other.replace("fixed_window", "sliding_window_log")).unwrap();
    server.signal("HUP");
    let line = server.says("the limit starts anew: its algorithm changed");
    assert!(line.contains("policy=\"other\" limit=\"daily\""), "{line}");
}

#[test]
fn a_hangup_without_a_file_changes_nothing() {
    let mut server = Server::start(&[]);
    server.signal("HUP");
    server.says("there is no file to read again (start with --config FILE)");
    assert_eq!(server.check(r#"{"key":"k"}"#).1["remaining"], 99);
}

/// A request that lacks its last byte.
fn under_way(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let fields = "host: x\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 11";
    write!(stream, "POST /v1/check HTTP/1.1\r\n{fields}\r\n\r\n{{\"key\":\"k\"").unwrap();
    // Told to go on: the server waits for the body now.
    let mut told = [0; 25];
    stream.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[test]
fn the_first_signal_lets_finish_what_is_under_way() {
    let mut server = Server::start(&["--drain-timeout", "1h"]);
    let mut stream = under_way(&server);
    server.signal("TERM");
    server.says("SIGTERM: stopping; once more ends at once");
    stream.write_all(b"}").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn the_second_signal_ends_at_once() {
    let mut server = Server::start(&["--drain-timeout", "1h"]);
    let stream = under_way(&server);
    server.signal("INT");
    server.says("SIGINT: stopping");
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(1));
    server.says("SIGTERM again: what was under way is cut");
    drop(stream);
}

#[test]
fn readiness_goes_first() {
    let mut server = Server::start(&["--drain-notice", "1h", "--drain-timeout", "1h"]);
    assert_eq!(server.ask("GET /readyz", "", "").0, 200);
    server.signal("TERM");
    server.says("stopping");
    while server.ask("GET /readyz", "", "").0 == 200 {
        thread::yield_now();
    }
    assert_eq!(server.ask("GET /readyz", "", "").0, 503);
    assert_eq!(server.check(r#"{"key":"k"}"#).1["allowed"], true);
}

#[test]
fn a_log_in_json_is_nothing_but_json() {
    let mut server = Server::start(&["--log-format", "json"]);
    let line = server.says("started");
    server.signal("TERM");
    server.says("everything under way was answered");
    for line in &server.read {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(event["level"].is_string() && event["timestamp"].is_string(), "{line}");
    }
    let started: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["http"], server.address.as_str());
}

#[test]
fn a_store_as_small_as_asked_for() {
    let server = Server::start(&["--max-keys", "1", "--on-full", "refuse_new"]);
    assert_eq!(server.check(r#"{"key":"a"}"#).1["outcome"], "allowed");
    assert_eq!(server.check(r#"{"key":"b"}"#).1["outcome"], "overloaded");
}

/// What a server says to `sent` over RESP; it closes the connection itself at `QUIT`.
fn resp(server: &Server, sent: &str) -> String {
    let mut stream = TcpStream::connect(server.resp.as_ref().unwrap()).unwrap();
    stream.write_all(format!("{sent}QUIT\r\n").as_bytes()).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    told
}

#[test]
fn redis_clients_are_let_in() {
    let server = Server::start(&["--max-keys", "1", "--on-full", "refuse_new"]);
    let told =
        resp(&server, "CL.THROTTLE k 0 1 3600\r\nTG.CHECK default k\r\nCL.THROTTLE other 0 1 3600\r\n");
    assert!(
        told.starts_with("*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600\r\n*8\r\n:1\r\n:100\r\n:99\r\n"),
        "{told}"
    );
    assert!(told.contains("-OOM no room for a new key"), "{told}");
    // One limiter behind both doors.
    let (_, answer) = server.check("{\"key\": \"k\"}");
    assert_eq!(answer["remaining"], 98);
}

#[test]
fn redis_clients_show_the_password_and_the_admin_the_token() {
    let mut command = serve(&[]);
    command.env("TIDEGATE_RESP_PASSWORD", "open sesame").env("TIDEGATE_ADMIN_TOKEN", "t0ken");
    let mut server = Server::of(command);
    server.says("for whoever shows the password");
    assert_eq!(
        resp(&server, "PING\r\nAUTH \"open sesame\"\r\nPING\r\nAUTH admin t0ken\r\nDEL k\r\n"),
        "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n+OK\r\n:0\r\n+OK\r\n"
    );
}

#[test]
fn the_resp_door_can_be_left_shut() {
    let mut server = Server::start(&["--listen-resp", "off"]);
    assert_eq!(server.resp, None);
    server.says("resp     off");
    let (code, _, err) = ended(serve(&["--listen-resp", "nonsense"]));
    assert_eq!(code, Some(2));
    assert!(
        err.contains("--listen-resp nonsense: not an address (write HOST:PORT, e.g. 127.0.0.1:6380, or off)"),
        "{err}"
    );
}

#[test]
fn redis_clients_are_drained_too() {
    let mut server = Server::start(&[]);
    let mut stream = TcpStream::connect(server.resp.as_ref().unwrap()).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut told = [0; 7];
    stream.read_exact(&mut told).unwrap();
    server.signal("TERM");
    assert!(server.ended().success());
    assert_eq!(stream.read(&mut told).unwrap(), 0);
}

/// An HTTP/2 connection's beginning, and the server's first frame: its settings.
fn http2(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "SETTINGS");
    stream
}

#[test]
fn envoy_is_let_in_and_told_when_the_server_goes() {
    let folder = tempfile::tempdir().unwrap();
    let envoy = "envoy: {edge: [{key: remote_address, policy: api}]}";
    let config = file(folder.path(), "tidegate.yaml", &format!("{envoy}\n{FIVE}"));
    let mut server = Server::start(&["--config", &config, "--drain-timeout", "1h"]);
    server.says("Envoy's rate limit service for the domain edge");
    let mut connection = http2(server.grpc.as_ref().unwrap());
    server.signal("TERM");
    // GOAWAY is the seventh kind of frame; a client then hangs up, as this one does.
    let mut said = Vec::new();
    let mut byte = [0; 1];
    while !said.windows(4).any(|four| four == [8, 7, 0, 0]) {
        connection.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    drop(connection);
    assert!(server.ended().success());
}

#[test]
fn the_grpc_door_can_be_left_shut() {
    let mut server = Server::start(&["--listen-grpc", "off"]);
    assert_eq!(server.grpc, None);
    server.says("grpc     off");
    let (code, _, err) = ended(serve(&["--listen-grpc", "nonsense"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("--listen-grpc nonsense: not an address"), "{err}");
}

/// A folder of files for envoyproxy/ratelimit.
fn ratelimit(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), "shop.yaml", text);
    folder
}

const SHOP: &str =
    "domain: shop\ndescriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: 2, name: each}}]\n";

/// Asks about a user at `/json`; the status, and what is left.
fn user(server: &Server, name: &str) -> (u16, u64) {
    let entry = format!(r#"{{"key": "user", "value": "{name}"}}"#);
    let body = format!(r#"{{"domain": "shop", "descriptors": [{{"entries": [{entry}]}}]}}"#);
    let (status, _, body) = server.ask("POST /json", "", &body);
    let json: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    (status, json["statuses"][0]["limitRemaining"].as_u64().unwrap_or(0))
}

#[test]
fn files_for_envoyproxy_ratelimit_are_used_as_they_are() {
    let folder = ratelimit(SHOP);
    let mut server = Server::start(&["--envoy-config", folder.path().to_str().unwrap()]);
    server.says("Envoy's rate limit service for the domain shop");
    assert_eq!(
        [user(&server, "ann"), user(&server, "ann"), user(&server, "ann")],
        [(200, 1), (200, 0), (429, 0)]
    );
    assert_eq!(server.ask("GET /healthcheck", "", "").2, "OK");
    assert_eq!(
        server.check(r#"{"policy": "default", "key": "k"}"#).1["remaining"],
        99,
        "the built-in one is there too"
    );

    file(folder.path(), "shop.yaml", &SHOP.replace("unit: 2", "unit: 9"));
    server.signal("HUP");
    server.says("changed=\"shop.user\"");
    assert_eq!(user(&server, "ann"), (200, 5), "what was used stays used, the refused one too");

    file(folder.path(), "shop.yaml", &SHOP.replace("unit: year", "unit: eon"));
    server.signal("HUP");
    let line = server.says("reload refused");
    assert!(line.contains("rate_limit.unit: \"eon\": no such unit"), "{line}");
    assert_eq!(user(&server, "ann"), (200, 4));
}

#[test]
fn wrong_files_for_envoyproxy_ratelimit_start_nothing() {
    let folder = ratelimit(SHOP);
    let path = folder.path().to_str().unwrap();
    file(folder.path(), "twin.yaml", SHOP.replace("key: user", "key: other").as_str());
    let (code, _, err) = ended(serve(&["--envoy-config", path]));
    assert_eq!(code, Some(2));
    assert!(
        err.contains("twin.yaml:1: domain: \"shop\": the domain is in")
            && err.contains("--envoy-merge-domains"),
        "{err}"
    );
    let mut server = Server::start(&["--envoy-config", path, "--envoy-merge-domains"]);
    server.says("shop.other");
    let (code, _, err) = ended(serve(&["--envoy-config", "/nowhere"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("/nowhere: No such file"), "{err}");
}

/// What a running store was built by is not changed under it; which settings wait is said by name.
#[test]
fn a_hangup_names_what_waits_for_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let policies = |of_api: &str| {
        format!(
            "policies: {{api: {{{of_api}limits: [{{algorithm: token_bucket, capacity: 5, refill: 1/s}}]}}}}\n"
        )
    };
    let config = file(folder.path(), "tidegate.yaml", &policies(""));
    let mut server = Server::start(&["--config", &config]);
    let mut reloaded = |text: String, waits: &str| {
        fs::write(&config, text).unwrap();
        server.signal("HUP");
        let line = server.says("changed in the file, and takes effect at the next start: ");
        assert!(line.trim_end().ends_with(&format!("next start: {waits}")), "{line}");
    };
    reloaded(policies("layout: classic, "), "policies.api.layout");
    reloaded(format!("store: redis://:s3cret@h\n{}", policies("")), "store");
    let redis = "redis: {prefix: p, timeout: 20ms, replica: 1/2, partition: all, on_damaged: start_anew, on_store_error: deny}\n";
    let all = "redis.prefix, redis.timeout, redis.replica, redis.partition, redis.on_damaged";
    reloaded(format!("{redis}{}", policies("on_store_error: allow, ")), all);

    fs::write(&config, format!("{}store: redis://:s3cret@\n", policies(""))).unwrap();
    server.signal("HUP");
    let line = server.says("reload refused");
    assert!(line.contains("tidegate.yaml:2: store: no host (write redis://host:6379)"), "{line}");
}

#[test]
fn converted_for_a_store_they_say_where_it_is() {
    let folder = ratelimit(SHOP);
    let convert = |store: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["convert", "--store", store, folder.path().to_str().unwrap()]);
        ended(command)
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let validated = |text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["validate", &file(elsewhere.path(), "tidegate.yaml", text)]);
        ended(command)
    };
    for (store, line) in [
        ("memory", "store: memory"),
        ("redis://ann:p'w#%23@cache", "-"),
        ("redis://ann:p'w@cache:7000/2", "store: 'redis://ann:p''w@cache:7000/2'"),
        ("redis+cluster://a,b,c", "store: 'redis+cluster://a,b,c'"),
    ] {
        let (code, out, err) = convert(store);
        if line == "-" {
            assert_eq!((code, &*out), (Some(2), ""));
            assert!(err.contains("--store: store: a # in it"), "{err}");
            continue;
        }
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(out.lines().nth(1), Some(line), "{out}");
        assert_eq!(out.contains("redis: {partition: envoy}"), store.contains("cluster"), "{out}");
        let (code, said, err) = validated(&out);
        assert_eq!((code, &*err), (Some(0), ""), "{said}");
    }
}

#[test]
fn converted_they_are_a_file_of_ours() {
    let folder = ratelimit(&SHOP.replace("descriptors", "unlimited: true\ndescriptors"));
    let convert = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["convert", path]);
        ended(command)
    };
    let (code, out, err) = convert(folder.path().to_str().unwrap());
    assert_eq!(code, Some(0));
    assert!(err.contains("shop.yaml:2: unlimited: has no effect here"), "{err}");
    let config = file(folder.path(), "tidegate.yaml", &out);
    let server = Server::start(&["--config", &config]);
    assert_eq!(
        [user(&server, "ann"), user(&server, "ann"), user(&server, "ann")],
        [(200, 1), (200, 0), (429, 0)]
    );
    let wrong = file(folder.path(), "wrong", "domain: d\ndescriptors: [{}]");
    let (code, out, err) = convert(&wrong);
    assert_eq!((code, &*out), (Some(2), ""));
    assert!(err.contains("wrong:2: descriptors[0]: key is missing"), "{err}");
}

#[test]
fn tls_takes_a_certificate_and_its_key() {
    let (code, _, err) = ended(serve(&["--grpc-tls-cert", "/nowhere"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("--grpc-tls-key"), "{err}");
    let (code, _, err) =
        ended(serve(&["--grpc-tls-cert", "/nowhere/cert", "--grpc-tls-key", "/nowhere/key"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("TLS: /nowhere/key: "), "{err}");
}
