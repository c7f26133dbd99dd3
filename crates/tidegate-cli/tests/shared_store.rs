//! The program over a Redis that several instances share.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use program::{command, tidegate};
use serde_json::Value;
use tidegate_testkit_servers::{Cluster, Program, Server};

/// A running `tidegate serve`, killed when it is dropped.
struct Instance {
    process: Child,
    http: String,
}

impl Instance {
    fn start(config: &str, arguments: &[&str]) -> Instance {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tidegate.yaml");
        fs::write(&file, config).unwrap();
        let mut process = command(&["serve", "--config", file.to_str().unwrap()])
            .args(["--listen-http", "127.0.0.1:0", "--listen-grpc", "off", "--listen-resp", "off"])
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let http = line.trim().strip_prefix("listening http ").expect("it says where it listens");
        Instance { http: http.to_owned(), process }
    }

    /// The value of a metric.
    fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
    }

    /// The status of a check and its body.
    fn check(&self, policy: &str, cost: u32) -> (u16, Value) {
        let body = format!(r#"{{"policy": "{policy}", "key": "ann", "cost": {cost}}}"#);
        let mut stream = TcpStream::connect(&self.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(
            stream,
            "POST /v1/check HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const POLICIES: &str = "
policies:
  local: {limits: [{algorithm: token_bucket, capacity: 6, refill: 1/h}]}
  deny: {on_store_error: deny, limits: [{algorithm: fixed_window, limit: 6, window: 366d}]}
  allow: {on_store_error: allow, limits: [{algorithm: token_bucket, capacity: 6, refill: 1/h}]}
";

#[test]
fn instances_share_one_limit_and_go_on_without_the_store() {
    let mut server = Server::start(Program::Redis7);
    let config = format!("store: {}\n{POLICIES}", server.url());
    let shares =
        ["1/2", "2/2"].map(|replica| format!("redis: {{replica: {replica}, timeout: 20s}}\n{config}"));
    let instances = shares.map(|config| Instance::start(&config, &[]));
    for name in ["local", "deny", "allow"] {
        for (asked, left) in (2..6).rev().enumerate() {
            let (status, body) = instances[asked % 2].check(name, 1);
            assert_eq!((status, body["remaining"].as_u64()), (200, Some(left)), "{name}: {body}");
            assert_eq!(body.get("degraded"), None);
        }
    }
    // Both know that two are left: one for each.
    for instance in &instances {
        assert_eq!(instance.check("local", 0).1["remaining"], 2);
    }
    server.kill();
    let (status, body) = instances[0].check("deny", 1);
    assert_eq!(status, 503, "{body}");
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    let (status, body) = instances[0].check("allow", 1);
    assert_eq!((status, &body["degraded"], &body["remaining"]), (200, &Value::Bool(true), &Value::Null));
    for instance in &instances {
        for allowed in [true, false] {
            let (status, body) = instance.check("local", 1);
            let told = (status, &body["allowed"], &body["degraded"]);
            assert_eq!(told, (200, &Value::Bool(allowed), &Value::Bool(true)), "{body}");
        }
        let first = std::ptr::eq(instance, &instances[0]);
        assert_eq!(instance.metric("tidegate_degraded_decisions_total"), if first { 3 } else { 2 });
        assert_eq!(instance.metric("tidegate_store_errors_total"), u64::from(first));
    }
}

#[test]
fn a_store_that_is_not_there_is_said_at_the_start() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), POLICIES).unwrap();
    let serve = |store: &str| {
        let config = file.path().to_str().unwrap();
        tidegate(&["serve", "--listen-http", "127.0.0.1:0", "--config", config, "--store", store], b"")
    };
    serve("redis://:secret@127.0.0.1:1").failed(1, "store redis://:***@127.0.0.1:1: ");
    serve("redis:/nowhere").failed(2, "--store: store: ");
    serve("disk").failed(2, "--store: store: ");
    let validate = |config: &str| {
        fs::write(file.path(), config).unwrap();
        tidegate(&["validate", file.path().to_str().unwrap()], b"")
    };
    let ran = validate(&format!("store: redis+cluster://a,,b\n{POLICIES}"));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("store: "), "{ran:?}");
    let ran = validate(&format!("store: redis://h\nredis: {{replica: 2/3}}\n{POLICIES}")).fine();
    assert!(ran.out.contains("this instance enforces its share, 2/3"), "{}", ran.out);
}

#[test]
fn envoys_requests_need_one_slot_of_a_cluster() {
    let cluster = Cluster::start(Program::Redis7, 3, 0);
    let envoy = "envoy: {edge: [{key: remote_address, policy: local}]}\n";
    let config = format!("store: {}\n{envoy}{POLICIES}", cluster.url());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &config).unwrap();
    let ran =
        tidegate(&["serve", "--listen-http", "127.0.0.1:0", "--config", file.path().to_str().unwrap()], b"");
    ran.failed(2, "redis: {partition: NAME}");
    let instance = Instance::start(&format!("redis: {{partition: all}}\n{config}"), &[]);
    assert_eq!(instance.check("local", 1).0, 200);
}

/// Lines of several keys under several policies, one of them with a log, now and then late.
fn trace() -> String {
    let mut lines = String::new();
    for step in 0..1_500_u64 {
        let at = 1_700_000_000_000_000 + step * 40_000 - if step % 17 == 0 { 300_000 } else { 0 };
        let (key, cost) = (step * 7 % 11, 1 + step % 3);
        let policy = ["bucket", "log", "both"][(step % 3) as usize];
        lines.push_str(&format!(
            "{{\"at_us\": {at}, \"key\": \"user:{key}\", \"cost\": {cost}, \"policy\": \"{policy}\"}}\n"
        ));
    }
    lines
}

const REPLAYED: &str = "
policies:
  bucket: {limits: [{algorithm: token_bucket, capacity: 7, refill: 3/s}]}
  log: {limits: [{algorithm: sliding_window_log, limit: 9, window: 4s}]}
  both:
    limits:
      - {algorithm: leaky_bucket, capacity: 5, leak: 2/s}
      - {algorithm: sliding_window_counter, limit: 30, window: 10s}
";

#[test]
fn a_replay_in_a_store_gives_the_bytes_of_one_in_memory_and_leaves_nothing() {
    let server = Server::start(Program::Valkey9);
    server.command(&["SET", "tg1:{kuser:1}:bucket", "a live key"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("config"), REPLAYED).unwrap();
    fs::write(path("trace"), trace()).unwrap();
    let replay = |out: &str, store: &[&str]| {
        let (config, out) = (path("config"), path(out));
        let arguments = ["replay", "--config", &config, "--decisions", &out, "--format", "json"];
        let trace = path("trace");
        tidegate(&[&arguments, store, &[&trace]].concat(), b"").json()
    };
    let (memory, shared) = (replay("memory", &[]), replay("shared", &["--store", &server.url()]));
    assert_eq!(shared, memory);
    let (in_memory, in_store) = (fs::read(path("memory")).unwrap(), fs::read(path("shared")).unwrap());
    assert!(in_memory == in_store, "the decisions differ");
    assert!(in_memory.len() > 100_000);
    assert_eq!(server.command(&["DBSIZE"]).integer(), 1, "the live key alone");
}

#[test]
fn a_replay_that_is_interrupted_leaves_nothing() {
    let server = Server::start(Program::Redis7);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    fs::write(&config, REPLAYED).unwrap();
    let mut replay = command(&[
        "replay",
        "--config",
        config.to_str().unwrap(),
        "--store",
        &server.url(),
        "--keep-order",
        "-",
    ])
    .stdin(Stdio::piped())
    .spawn()
    .unwrap();
    // More than a buffer holds, and then no end.
    let mut input = replay.stdin.take().unwrap();
    for _ in 0..20 {
        input.write_all(trace().as_bytes()).unwrap();
    }
    let mut looks = 0;
    while server.command(&["DBSIZE"]).integer() < 10 {
        std::thread::sleep(Duration::from_millis(20));
        looks += 1;
        assert!(looks < 3_000, "it charges nobody");
    }
    let pid = replay.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(replay.wait().unwrap().code(), Some(130));
    assert_eq!(server.command(&["DBSIZE"]).integer(), 0);
}
