//! The program over a Redis that several instances share.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use program::{Files, command, tidegate};
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
    let name = file.path().to_str().unwrap();
    let wrong = format!("headers: {{family: noone}}\nstore: redis+cluster://:s3cret@a,,b\n{POLICIES}");
    let ran = validate(&wrong);
    assert_eq!(ran.code, 1, "{ran:?}");
    let second = format!("{name}:2: store: no host (write redis://host:6379)");
    assert_eq!(ran.err.lines().nth(1), Some(&*second), "{ran:?}");
    let errors: Value =
        serde_json::from_str(&tidegate(&["validate", "--format", "json", name], b"").out).unwrap();
    let told = &errors["errors"][1];
    assert_eq!((&errors["count"], &told["line"], &told["column"]), (&2.into(), &2.into(), &8.into()));
    assert_eq!((&told["path"], &told["value"]), (&"store".into(), &Value::Null), "{errors}");
    serve("redis+cluster://a").failed(2, &format!("{name}:2: store: no host"));
    let ran = validate(&format!("store: redis://h\nredis: {{replica: 2/3}}\n{POLICIES}")).fine();
    assert!(ran.out.contains("this instance enforces its share, 2/3"), "{}", ran.out);
}

/// As far as an address tells: nobody is there to be asked.
#[test]
fn a_file_is_validated_for_the_store_it_is_to_run_on() {
    let files = Files::new();
    let envoy = "envoy: {edge: [{key: remote_address, policy: local}]}\n";
    let validate = |text: &str, arguments: &[&str]| {
        let file = files.write("tidegate.yaml", text);
        tidegate(&[&["validate"], arguments, &[&file[..]]].concat(), b"")
    };
    let cluster = ["--store", "redis+cluster://a,b,c"];
    let (plain, grouped) = (POLICIES.to_owned(), format!("{envoy}{POLICIES}"));
    let said = "tidegate.yaml: envoy: all descriptors of a request are decided as one, ";
    validate(&grouped, &cluster).failed(1, said);
    validate(&format!("store: redis+cluster://a\n{grouped}"), &[]).failed(1, said);
    validate(&format!("redis: {{partition: all}}\n{grouped}"), &cluster).fine();
    let ran = validate(&plain, &cluster).fine();
    assert!(ran.out.contains("state    shared; "), "{}", ran.out);
    assert!(!ran.out.contains("without effect"), "{}", ran.out);
    validate(&grouped, &["--store", "redis://h"]).fine();
    let ran = validate(&format!("store: redis+cluster://a\n{grouped}"), &["--store", "memory"]).fine();
    assert!(ran.out.contains("warning: policies.deny.on_store_error: without effect"), "{}", ran.out);
    validate(&plain, &["--store", "redis://"]).failed(2, "tidegate: --store: store: no host");
    let told = validate(&grouped, &[&cluster[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, &json["valid"], &json["errors"][0]["path"]), (1, &false.into(), &"envoy".into()));
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

/// Lines of many keys, one of them hot and one no text, under policies of all kinds: now and then late, by less and by more
/// than is put in order, at equal stamps, peeking, asking for more than there can be, or no check at all.
fn trace() -> String {
    let mut random = 1_u64;
    let mut lines = String::new();
    let mut at = 1_700_000_000_000_000_u64;
    for step in 0..6_000_u64 {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        at += [0, 0, 1, 37, 20_000, 90_001][(random >> 8) as usize % 6];
        let late = match random >> 16 & 31 {
            0 => 700_000_000,
            1..4 => 300_000,
            _ => 0,
        };
        let cost = [0, 1, 1, 1, 2, 3, 5, 40][(random >> 24) as usize % 8];
        let key = match random >> 32 & 3 {
            0 => r#""key": "hot""#.to_owned(),
            1 => r#""key_b64": "AP97fQ==""#.to_owned(),
            _ => format!(r#""key": "user:{}""#, (random >> 40) % 23),
        };
        let policy = POLICY_NAMES[(random >> 48) as usize % POLICY_NAMES.len()];
        let at_us = at - late;
        lines.push_str(&format!(r#"{{"at_us": {at_us}, {key}, "cost": {cost}, "policy": "{policy}"}}"#));
        lines.push_str(if step % 401 == 7 { "\nno check\n" } else { "\n" });
    }
    lines
}

const POLICY_NAMES: [&str; 9] =
    ["bucket", "gcra", "leaky", "fixed", "log", "counter", "never", "both", "with-logs"];

const REPLAYED: &str = "
policies:
  bucket: {limits: [{algorithm: token_bucket, capacity: 7, refill: 7/3s}]}
  gcra: {limits: [{algorithm: gcra, rate: 3/s, burst: 5}]}
  leaky: {limits: [{algorithm: leaky_bucket, capacity: 5, leak: 2/s}]}
  fixed: {limits: [{algorithm: fixed_window, limit: 9, window: 4s}]}
  log: {limits: [{algorithm: sliding_window_log, limit: 9, window: 4s}], overrides: {hot: {sliding_window_log: {limit: 60}}}}
  counter: {limits: [{algorithm: sliding_window_counter, limit: 9, window: 4s}]}
  never: {limits: [{algorithm: token_bucket, capacity: 30, refill: 0/s}]}
  both:
    limits:
      - {algorithm: leaky_bucket, capacity: 5, leak: 2/s}
      - {algorithm: sliding_window_counter, limit: 30, window: 10s}
    overrides: {\"user:1*\": {leaky_bucket: {capacity: 50}}}
  with-logs:
    limits:
      - {algorithm: token_bucket, capacity: 12, refill: 2/s}
      - {name: short, algorithm: sliding_window_log, limit: 6, window: 2s}
      - {name: long, algorithm: sliding_window_log, limit: 20, window: 30s}
      - {algorithm: fixed_window, limit: 25, window: 1min}
";

#[test]
fn a_replay_in_a_store_gives_the_bytes_of_one_in_memory_and_leaves_nothing() {
    let server = Server::start(Program::Valkey9);
    server.command(&["SET", "tg1:{kuser:1}:bucket", "a live key"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("config"), REPLAYED).unwrap();
    fs::write(path("trace"), trace()).unwrap();
    for order in [&[][..], &["--keep-order"], &["--reorder", "100ms", "--reorder-lines", "50"]] {
        let replay = |out: &str, store: &[&str]| {
            let (config, out) = (path("config"), path(out));
            let arguments = ["replay", "--config", &config, "--decisions", &out, "--format", "json"];
            let trace = path("trace");
            tidegate(&[&arguments, order, store, &[&trace]].concat(), b"").json()
        };
        let (memory, shared) = (replay("memory", &[]), replay("shared", &["--store", &server.url()]));
        assert_eq!(shared, memory, "{order:?}");
        assert_eq!((&memory["checks"], &memory["bad_lines"]), (&6_000.into(), &15.into()));
        assert!(memory["denied"].as_u64() > Some(1_000) && memory["admitted"].as_u64() > Some(1_000));
        let (in_memory, in_store) = (fs::read(path("memory")).unwrap(), fs::read(path("shared")).unwrap());
        let lines = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (in_memory, in_store) = (lines(&in_memory), lines(&in_store));
        let differing = in_memory.lines().zip(in_store.lines()).find(|(memory, store)| memory != store);
        assert_eq!(differing, None, "{order:?}");
        assert_eq!(in_memory.len(), in_store.len());
        assert_eq!(server.command(&["DBSIZE"]).integer(), 1, "the live key alone");
    }
}

/// Whatever is asked in one go is spread over the slots there.
#[test]
fn a_replay_in_a_cluster_gives_the_bytes_of_one_in_memory() {
    let cluster = Cluster::start(Program::Redis7, 3, 0);
    let files = Files::new();
    let (config, trace) = (files.write("config", REPLAYED), files.write("trace", trace()));
    let replay = |store: &[&str]| {
        let arguments = ["replay", "--config", &config, "--decisions", "-", &trace];
        tidegate(&[&arguments[..], store].concat(), b"").out
    };
    let (memory, shared) = (replay(&[]), replay(&["--store", &cluster.url()]));
    assert!(memory == shared && memory.lines().count() == 6_015, "{}", shared.len());
}

#[test]
fn a_comparison_in_a_store_gives_the_bytes_of_one_in_memory_and_leaves_nothing() {
    let server = Server::start(Program::Redis7);
    server.command(&["SET", "tg1:{kclient}:gcra", "a live key"]);
    let files = Files::new();
    let traced = files.write("trace", trace());
    let compare = |what: &[&str], store: &[&str]| {
        let picture = files.path("out.svg");
        let arguments = [&["compare", "--plot", &picture], what, store].concat();
        (tidegate(&arguments, b"").out, files.read("out.svg"))
    };
    let steady = ["--scenario", "steady"];
    let noisy = ["--scenario", "noisy-neighbour", "--rate", "40/2s", "--format", "json"];
    for what in [&[&traced[..]][..], &["--rate", "7/3s", "--burst", "5", &traced], &steady, &noisy] {
        let (memory, shared) = (compare(what, &[]), compare(what, &["--store", &server.url()]));
        assert!(!memory.0.is_empty());
        assert_eq!(shared.0, memory.0, "{what:?}");
        assert!(shared.1 == memory.1, "{what:?}: the pictures differ");
        assert_eq!(server.command(&["DBSIZE"]).integer(), 1, "the live key alone");
    }
    let refused = |store: &str| tidegate(&["compare", "--scenario", "steady", "--store", store], b"");
    refused("redis://:secret@127.0.0.1:1").failed(1, "--store redis://:***@127.0.0.1:1: ");
    refused("redis:/nowhere").failed(2, "--store: store: ");
}

#[test]
fn a_replay_that_is_interrupted_or_whose_terminal_closes_leaves_nothing() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        interrupts_a_replay(signal, code);
    }
}

fn interrupts_a_replay(signal: &str, code: i32) {
    let server = Server::start(Program::Redis7);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    fs::write(&config, REPLAYED).unwrap();
    let config = config.to_str().unwrap();
    let replay = command(&["replay", "--config", config, "--store", &server.url(), "--keep-order", "-"]);
    // These tests may themselves run under nohup.
    let mut replay = std::process::Command::new("env")
        .arg("--default-signal=HUP")
        .arg(replay.get_program())
        .args(replay.get_args())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
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
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    assert_eq!(replay.wait().unwrap().code(), Some(code), "{signal}");
    assert_eq!(server.command(&["DBSIZE"]).integer(), 0);
}
