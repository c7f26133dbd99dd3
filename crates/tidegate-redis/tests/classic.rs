//! `layout: classic`: buckets shared with services that run the common script by redis-py.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::{Asked, Cost, Limit, Limiter, Period, Policy, PolicySet, Rate, Timestamp};
use tidegate_redis::{OnStoreError, RedisStore};
use tidegate_testkit_servers::{Program, Server};

/// A service that runs the script.
struct Service {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Service {
    fn start(server: &Server) -> Self {
        let python =
            std::env::var_os("TIDEGATE_PYTHON").expect("TIDEGATE_PYTHON is set by `cargo xtask test`");
        let mut process = Command::new(python)
            .args([
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/classic_client.py"),
                &server.port().to_string(),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (asks, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Service { process, asks, answers: BufReader::new(answers) }
    }

    /// Whether it lets `cost` pass, and the tokens that are left.
    fn check(&mut self, key: &str, quarters: u64, cost: u64) -> (bool, f64) {
        let now = quarters as f64 / 4.0;
        writeln!(self.asks, "{key} {CAPACITY} {RATE} {now} {cost}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let (allowed, tokens) = line.trim().split_once(' ').unwrap();
        (allowed == "1", tokens.parse().unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const CAPACITY: u32 = 10;
const RATE: u32 = 2;

async fn limiter(server: &Server) -> Limiter<RedisStore> {
    let store = RedisStore::builder(server.url())
        .classic("api", "tb:")
        .classic("wrong", "tw:")
        .timeout(Duration::from_secs(30))
        .on_store_error(OnStoreError::Deny);
    let policies = PolicySet::new([
        Policy::single("api", Limit::token_bucket(CAPACITY, Rate::per_second(RATE))).unwrap(),
        Policy::single("wrong", Limit::fixed_window(10, Period::DAY)).unwrap(),
        Policy::single("other", Limit::fixed_window(10, Period::DAY)).unwrap(),
    ]);
    let clock = ManualClock::new(at(QUARTERS));
    Limiter::builder(policies.unwrap()).store(store.open().await.unwrap()).clock(clock).build()
}

/// Quarters of a second since the epoch: a year that is exact in floating point, also with fourteen digits.
const QUARTERS: u64 = 4 * 1_700_000_000;

fn at(quarters: u64) -> Timestamp {
    Timestamp::from_micros(quarters * 250_000).unwrap()
}

#[tokio::test]
async fn the_common_script_and_ours_in_turn_decide_as_either_alone() {
    let server = Server::start(Program::Redis7);
    let mut service = Service::start(&server);
    let limiter = limiter(&server).await;
    let api = limiter.policy("api").unwrap();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let (mut now, mut passed, mut ours) = (QUARTERS, 0, 0);
    for _ in 0..600 {
        now += random(7);
        let cost = 1 + random(4);
        let (expected, tokens) = service.check("alone", now, cost);
        let (allowed, left) = if random(2) == 0 {
            service.check("tb:ann", now, cost)
        } else {
            ours += 1;
            let decision = api.check_at("ann", Cost::new(cost).unwrap(), at(now)).await.unwrap();
            if !decision.is_allowed() {
                let missing = cost as f64 - tokens;
                let wait = decision.retry_after().unwrap().as_micros() as f64 / 1e6;
                assert!((wait - missing / f64::from(RATE)).abs() < 1e-5, "{wait} s for {missing}");
            }
            (decision.is_allowed(), decision.remaining() as f64)
        };
        assert_eq!(allowed, expected, "cost {cost} at {now}, {tokens} left");
        assert_eq!(left.floor(), tokens.floor());
        passed += u64::from(allowed);
    }
    assert!(passed > 200 && passed < 550 && ours > 200, "{passed} passed, {ours} asked here");
    let lives = server.command(&["TTL", "tb:ann"]).integer();
    assert!((5..=6).contains(&lives), "capacity / rate + 1, not {lives}");
}

#[tokio::test]
async fn every_verb_works_on_shared_buckets() {
    let server = Server::start(Program::Valkey8);
    let mut service = Service::start(&server);
    let limiter = limiter(&server).await;
    let api = limiter.policy("api").unwrap();
    assert_eq!(api.peek("ann").await.unwrap().remaining(), 10);
    assert_eq!(server.command(&["DBSIZE"]).integer(), 0, "a look writes nothing");
    assert_eq!(service.check("tb:ann", QUARTERS, 7), (true, 3.0));
    assert_eq!(api.check_up_to("ann", 5).await.unwrap().charged(), 3);
    assert!(!api.check("ann", 1).await.unwrap().is_allowed());
    assert_eq!(api.credit("ann", 4_u32).await.unwrap().remaining(), 4);
    assert_eq!(service.check("tb:ann", QUARTERS, 1), (true, 3.0));
    let penalty = api.penalize("ann", 20_u32).await.unwrap();
    assert_eq!((penalty.cuts(), penalty.after.is_allowed()), (&[7][..], false));
    assert_eq!(service.check("tb:ann", QUARTERS + 4, 1), (false, -8.0));
    api.reset("ann").await.unwrap();
    assert_eq!(service.check("tb:ann", QUARTERS + 4, 1), (true, 9.0));
    assert!(!api.check("ann", 11).await.unwrap().is_allowed());
    // A late stamp is decided as of the last one.
    let late = api.check_at("ann", 2, at(QUARTERS)).await.unwrap();
    assert_eq!((late.remaining(), late.reset_after().unwrap().as_micros()), (7, 1_500_000));
}

#[tokio::test]
async fn what_cannot_be_kept_so_is_said() {
    let server = Server::start(Program::Redis7);
    let limiter = limiter(&server).await;
    let (api, wrong, other) =
        (limiter.policy("api").unwrap(), limiter.policy("wrong").unwrap(), limiter.policy("other").unwrap());
    let error = wrong.check("ann", 1).await.unwrap_err();
    assert!(error.reason.contains("policy \"wrong\": layout classic keeps one token_bucket"), "{error}");
    let both = [&api, &other].map(|policy| Asked { policy, key: &b"ann"[..], cost: Cost::ONE });
    let error = limiter.check_all(&both).await.unwrap_err();
    assert!(error.reason.contains("layout classic"), "{error}");
    server.command(&["HSET", "tb:ann", "tokens", "many"]);
    let error = api.check("ann", 1).await.unwrap_err();
    assert!(error.reason.contains("tb:ann") && error.reason.contains("no hash whose fields"), "{error}");
}
