//! What each door says of a check that the shared store gives no answer to, and of those beside it.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use program::{Files, command};
use serde_json::{Value, json};
use tidegate_server::grpc::messages::{
    Code, Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
};
use tidegate_testkit_servers::{Mischief, Program, Proxy, Server};
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

const POLICIES: &str = "
policies:
  deny: {on_store_error: deny, limits: [{algorithm: fixed_window, limit: 6, window: 366d}]}
  local: {limits: [{algorithm: fixed_window, limit: 6, window: 366d}]}
  allow: {on_store_error: allow, limits: [{algorithm: fixed_window, limit: 6, window: 366d}]}
  tokens: {limits: [{algorithm: fixed_window, limit: 1000, window: 366d}]}
envoy:
  edge:
    - {key: tokens_of, policy: tokens, by: [tokens_of], charge: always}
    - {key: denied, policy: deny, by: [denied], charge: always}
";

/// A running `tidegate serve`, killed when it is dropped.
struct Instance {
    process: Child,
    doors: [String; 3],
}

impl Instance {
    fn start(store: &str) -> Instance {
        let files = Files::new();
        let config =
            files.write("tidegate.yaml", format!("store: {store}\nredis: {{timeout: 1s}}\n{POLICIES}"));
        let mut process = command(&["serve", "--config", &config])
            .args([
                "--listen-http",
                "127.0.0.1:0",
                "--listen-grpc",
                "127.0.0.1:0",
                "--listen-resp",
                "127.0.0.1:0",
            ])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let doors = ["http", "grpc", "resp"].map(|door| {
            let line = lines.next().unwrap().unwrap();
            line.trim().strip_prefix(&format!("listening {door} ")).expect("where it listens").to_owned()
        });
        Instance { process, doors }
    }

    fn batch(&self, checks: &[(&str, &str)]) -> Vec<Value> {
        let checks = checks.iter().map(|(policy, key)| json!({"policy": policy, "key": key}));
        let body = json!({"checks": checks.collect::<Vec<_>>()}).to_string();
        let mut stream = TcpStream::connect(&self.doors[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head =
            "POST /v1/check/batch HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-type: application/json";
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["answers"].as_array().unwrap().clone()
    }

    /// What is told of each in one pipeline: a code for an error, else what is left.
    fn pipeline(&self, checks: &[(&str, &str)]) -> Vec<String> {
        let mut stream = TcpStream::connect(&self.doors[2]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let commands = checks.iter().map(|(policy, key)| format!("TG.CHECK {policy} {key}\r\n"));
        write!(stream, "{}QUIT\r\n", commands.collect::<String>()).unwrap();
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        let mut lines = replies.lines();
        let told = checks.iter().map(|_| {
            let head = lines.next().unwrap();
            if let Some(error) = head.strip_prefix('-') {
                return error.split(' ').next().unwrap().to_owned();
            }
            assert_eq!(head, "*8", "{replies}");
            let left = lines.by_ref().nth(2).unwrap()[1..].to_owned();
            lines.by_ref().nth(6).unwrap();
            left
        });
        told.collect()
    }

    fn envoy(&self, key: &str, hits: u64) -> Result<RateLimitResponse, tonic::Status> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let at = Endpoint::from_shared(format!("http://{}", self.doors[1])).unwrap();
            let mut client = Grpc::new(at.connect().await.unwrap());
            client.ready().await.unwrap();
            let entries = vec![Entry { key: key.into(), value: "ann".into() }];
            let descriptor =
                RateLimitDescriptor { entries, hits_addend: Some(hits), ..RateLimitDescriptor::default() };
            let request =
                RateLimitRequest { domain: "edge".into(), descriptors: vec![descriptor], hits_addend: 0 };
            let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit".parse().unwrap();
            let codec: ProstCodec<RateLimitRequest, RateLimitResponse> = ProstCodec::default();
            client.unary(tonic::Request::new(request), path, codec).await.map(tonic::Response::into_inner)
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Of each kind one, two of a key among them.
const CHECKS: [(&str, &str); 6] = [
    ("deny", "ann"),
    ("local", "ann"),
    ("allow", "ann"),
    ("local", "bad"),
    ("local", "ann"),
    ("deny", "bob"),
];

/// What is left, or the status; and whether it is the instance's own word.
fn told(answer: &Value) -> (Option<u64>, Option<u64>, bool) {
    (answer["remaining"].as_u64(), answer["problem"]["status"].as_u64(), answer["degraded"] == true)
}

#[test]
fn one_without_an_answer_takes_none_of_the_others_with_it() {
    let mut server = Server::start(Program::Redis7);
    let instance = Instance::start(&server.url());
    server.command(&["SET", "tg1:{kbad}:local", "whatever this may be"]);
    let answers = instance.batch(&CHECKS);
    let left = |left| (Some(left), None, false);
    assert_eq!(
        answers.iter().map(told).collect::<Vec<_>>(),
        [left(5), left(5), left(5), (None, Some(500), false), left(4), left(5)]
    );
    assert_eq!(answers[3]["problem"]["type"], "/docs#record-damaged");
    assert_eq!(instance.pipeline(&CHECKS), ["4", "3", "4", "DAMAGED", "2", "4"]);
    server.kill();
    let answers = instance.batch(&CHECKS);
    let (none, own) = ((None, Some(503), false), |left| (Some(left), None, true));
    let allowed = (None, None, true);
    assert_eq!(answers.iter().map(told).collect::<Vec<_>>(), [none, own(1), allowed, own(5), own(0), none]);
    assert!(answers[2]["allowed"] == true && answers[2]["limits"] == json!([]));
    // RESP has no word for degraded; -1 stands for what was not counted.
    assert_eq!(instance.pipeline(&CHECKS), ["UNAVAILABLE", "0", "-1", "4", "0", "UNAVAILABLE"]);
}

#[test]
fn envoys_forced_charges_go_on_in_a_black_hole() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    let instance = Instance::start(&proxy.url());
    let ok = |answer: &RateLimitResponse| answer.overall_code == i32::from(Code::Ok);
    let answer = instance.envoy("tokens_of", 100).unwrap();
    assert!(ok(&answer) && answer.dynamic_metadata.is_none());
    assert_eq!(answer.statuses[0].limit_remaining, 900);
    proxy.set(Mischief::BlackHole);
    for left in [600, 300, 0] {
        let answer = instance.envoy("tokens_of", 300).unwrap();
        assert!(ok(&answer), "{answer:?}");
        assert!(answer.dynamic_metadata.unwrap().fields.contains_key("degraded"));
        assert_eq!(answer.statuses[0].limit_remaining, left);
    }
    assert!(!ok(&instance.envoy("tokens_of", 1).unwrap()), "it is counted, not let pass");
    let status = instance.envoy("denied", 1).unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert!(status.message().contains("try again later"), "{status}");
}
