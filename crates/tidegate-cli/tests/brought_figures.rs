//! Limits whose figures come with the request, over a server in memory and one in Redis: the very same bytes.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::{Value, json};
use tidegate::clock::ManualClock;
use tidegate::{Limiter, Timestamp};
use tidegate_redis::RedisStore;
use tidegate_server::config::Config;
use tidegate_server::resp::{Conversation, Door, Next};
use tidegate_server::{AnyStore, App, Drain, Listeners, run};
use tidegate_testkit_servers::{Cluster, Program, Reply, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

const NOW: u64 = 1_800_000_000_000_000;

const CONFIG: &str = "
policies:
  user: {limits: [{algorithm: token_bucket, capacity: 5, refill: 2/s}]}
  tenant: {limits: [{algorithm: sliding_window_log, limit: 7, window: 3s}]}
  cost: {limits: [{algorithm: fixed_window, limit: 9, window: 5s}]}
envoy:
  edge:
    - {key: user, policy: user}
    - {key: tenant, policy: tenant}
    - {key: cost, policy: cost, charge: always}
    - {key: trial, policy: user, shadow: true}
    - {key: pool, policy: user, quota: true}
";

/// A server of [`CONFIG`] in virtual time, and a client of its RESP door.
struct Side {
    clock: ManualClock,
    http: SocketAddr,
    conversation: Conversation,
    serving: JoinHandle<()>,
}

impl Side {
    async fn over(store: AnyStore) -> Side {
        let config = Config::parse(CONFIG, "test.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        let clock = ManualClock::new(Timestamp::from_micros(NOW).unwrap());
        let limiter = Limiter::builder(config.policies().clone()).store(store).clock(clock.clone()).build();
        let app = Arc::new(App::new(limiter).with_envoy(config.envoy().clone()));
        let conversation = Conversation::of_nowhere(&Arc::new(Door::new(Arc::clone(&app))));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            run(Listeners::http(listener), app, Drain::default(), std::future::pending()).await;
        });
        Side { clock, http, conversation, serving }
    }

    async fn over_redis(url: &str, prefix: &str, partition: Option<&str>) -> Side {
        // Virtual time is not the server's: nothing is to be gone before its time.
        let spare = Duration::from_secs(3600);
        let builder = RedisStore::builder(url).prefix(prefix).spare(spare).timeout(Duration::from_secs(30));
        let builder = partition.into_iter().fold(builder, |builder, name| builder.partition(name));
        Side::over(AnyStore::elsewhere(builder.open().await.unwrap())).await
    }

    async fn ask(&mut self, question: &Question) -> String {
        match question {
            Question::Envoy(request) => self.envoy(request).await,
            Question::Resp(commands) => self.resp(&commands.concat()).await,
        }
    }

    /// What `POST /json` answers, without its date.
    async fn envoy(&self, request: &Value) -> String {
        let body = request.to_string();
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let head = "POST /json HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-type: application/json";
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.lines().filter(|line| !line.starts_with("date:")).collect::<Vec<_>>().join("\n")
    }

    async fn resp(&mut self, commands: &str) -> String {
        let (conversation, bytes) = (&mut self.conversation, commands.as_bytes());
        let mut replies = Vec::new();
        for piece in bytes.chunks(1_000) {
            conversation.room()[..piece.len()].copy_from_slice(piece);
            conversation.received(piece.len());
            loop {
                let next = conversation.answer();
                if next == Next::Wait {
                    conversation.wait().await;
                    continue;
                }
                replies.extend_from_slice(conversation.replies());
                conversation.written();
                if next != Next::Write {
                    break;
                }
            }
        }
        String::from_utf8(replies).unwrap()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Debug, Clone)]
enum Question {
    Envoy(Value),
    Resp(Vec<String>),
}

fn question() -> impl Strategy<Value = Question> {
    let key = prop_oneof![4 => Just("user"), 2 => Just("tenant"), 1 => Just("cost"), 1 => Just("trial"), 1 => Just("pool")];
    let unit = prop_oneof![Just("SECOND"), Just("MINUTE"), Just("HOUR"), Just("YEAR")];
    let limit = proptest::option::weighted(0.6, (0..7_u32, unit));
    let hits = prop_oneof![3 => 0..4_u64, 1 => Just(1_000_000_000_001)];
    let descriptor = (key, prop_oneof![Just("a"), Just("b")], limit, hits, proptest::bool::weighted(0.15))
        .prop_map(|(key, value, limit, hits, back)| {
            let limit = limit.map(|(requests, unit)| json!({"requestsPerUnit": requests, "unit": unit}));
            json!({"entries": [{"key": key, "value": value}], "limit": limit, "hitsAddend": hits, "isNegativeHits": back})
        });
    let envoy = proptest::collection::vec(descriptor, 1..5)
        .prop_map(|descriptors| Question::Envoy(json!({"domain": "edge", "descriptors": descriptors})));
    let figures =
        prop_oneof![3 => Just("4 2 1"), 2 => Just("9 1 60"), 1 => Just("0 1000 1"), 1 => Just("1 0 1")];
    let quantity = prop_oneof![5 => 0..4_i64, 2 => -3..0_i64, 1 => Just(1_000_000_000_001_i64)];
    let throttle = (prop_oneof![Just("a"), Just("b")], figures, quantity)
        .prop_map(|(key, figures, quantity)| format!("CL.THROTTLE {key} {figures} {quantity}\r\n"));
    let command = prop_oneof![6 => throttle, 1 => Just("TG.CHECK user a\r\n".to_owned())];
    let resp = proptest::collection::vec(command, 1..40).prop_map(Question::Resp);
    prop_oneof![2 => envoy, 1 => resp]
}

fn duel(url: &str, cases: u32, partition: Option<&str>) {
    let runtime = Runtime::new().unwrap();
    let steps = proptest::collection::vec((0..1_500_000_u64, question()), 1..30);
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Cases::with_cases(cases));
    let verdict = runner.run(&steps, |steps| {
        number.set(number.get() + 1);
        let prefix = format!("brought{}", number.get());
        runtime.block_on(async {
            let mut memory = Side::over(AnyStore::default()).await;
            let mut redis = Side::over_redis(url, &prefix, partition).await;
            for (later, question) in &steps {
                for side in [&memory, &redis] {
                    side.clock.advance(Duration::from_micros(*later));
                }
                let (expected, found) = (memory.ask(question).await, redis.ask(question).await);
                prop_assert_eq!(&found, &expected, "{:?}", question);
                prop_assert!(!found.is_empty());
            }
            Ok(())
        })
    });
    verdict.unwrap();
}

#[test]
fn envoys_overrides_and_throttles_are_answered_as_in_memory() {
    duel(&Server::start(Program::Redis7).url(), 60, None);
}

#[test]
fn in_a_cluster_with_a_partition_too() {
    duel(&Cluster::start(Program::Valkey9, 3, 0).url(), 12, Some("all"));
}

#[test]
fn instances_share_them_and_a_refused_sibling_leaves_no_trace() {
    let server = Server::start(Program::Redis8);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut sides = [
            Side::over_redis(&server.url(), "tg1", None).await,
            Side::over_redis(&server.url(), "tg1", None).await,
        ];
        for (turn, left) in (0..5).rev().enumerate() {
            let reply = sides[turn % 2].resp("CL.THROTTLE k 4 1 60\r\n").await;
            assert!(reply.starts_with(&format!("*5\r\n:0\r\n:5\r\n:{left}\r\n")), "{reply}");
        }
        assert!(sides[1].resp("CL.THROTTLE k 4 1 60\r\n").await.starts_with("*5\r\n:1\r\n"));
        let own = |hits: u32| {
            let limit = json!({"requestsPerUnit": 3, "unit": "HOUR"});
            json!({"entries": [{"key": "user", "value": "ann"}], "limit": limit, "hitsAddend": hits})
        };
        let ask = |descriptors: Value| json!({"domain": "edge", "descriptors": descriptors});
        let bob = json!({"entries": [{"key": "user", "value": "bob"}], "hitsAddend": 6});
        let refused = sides[0].envoy(&ask(json!([own(2), bob]))).await;
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
        assert!(refused.contains(r#""limitRemaining":3"#), "{refused}");
        let kept = server.command(&["KEYS", "*~override"]);
        assert_eq!(kept, Reply::List(Vec::new()), "nothing was charged, so nothing is kept");
        assert!(sides[1].envoy(&ask(json!([own(2)]))).await.contains(r#""limitRemaining":1"#));
        assert!(sides[0].envoy(&ask(json!([own(2)]))).await.starts_with("HTTP/1.1 429"));
        assert_eq!(server.command(&["EXISTS", "tg1:{kk}:~throttle"]).integer(), 1);
    });
}
