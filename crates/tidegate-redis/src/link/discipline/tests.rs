#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use tidegate::clock::{Clock, Sleep, SystemClock};
use tidegate::{Limit, Limiter, Policy, Rate, Timestamp};
use tidegate_testkit_servers::{Mischief, Program, Proxy, Reply, Server};

use super::*;
use crate::RedisStore;
use crate::link::Options;

/// The clock since boot of a node that was booted at some other time.
struct Elsewhere(BootTicks, u64);

impl Ticks for Elsewhere {
    fn nanos(&self) -> u64 {
        self.0.nanos() + self.1
    }
}

async fn open(url: &str) -> Link {
    Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap()
}

fn time_of(server: &Server) -> u64 {
    let Reply::List(parts) = server.command(&["TIME"]) else { panic!("no list") };
    let [seconds, micros]: [u64; 2] =
        parts.into_iter().map(|it| it.text().parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
    seconds * 1_000_000 + micros
}

/// Nodes know nothing of the wall clock, so it does not matter by how much theirs are wrong or when they are set. All
/// they have is time since some instant, each its own.
#[tokio::test]
async fn nodes_agree_with_the_server_within_the_round_trip() {
    let server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    for base in [0, 1_000_000_000, 3_600_000_000_000, u64::MAX / 4] {
        let node = Discipline::start_with(&link, Elsewhere(BootTicks::default(), base)).await.unwrap();
        let error = node.error().as_micros() as u64 + 1;
        let clock = node.clock();
        for _ in 0..10 {
            let before = time_of(&server);
            let now = clock.now().as_micros();
            let after = time_of(&server);
            // What clocks drift in a second is far below a microsecond of the stated error.
            assert!(
                before.saturating_sub(error) <= now && now <= after + error,
                "{before} {now} {after} {error}"
            );
        }
    }
}

#[tokio::test]
async fn a_slow_way_there_is_allowed_for() {
    let server = Server::start(Program::Redis7);
    let proxy = Proxy::to(server.address());
    proxy.set(Mischief::Delay(Duration::from_millis(20)));
    let link = open(&proxy.url()).await;
    let node = Discipline::start(&link).await.unwrap();
    assert!(node.error() >= Duration::from_millis(10), "{:?}", node.error());
    let error = node.error().as_micros() as u64 + 1;
    let (before, now, after) = (time_of(&server), node.clock().now().as_micros(), time_of(&server));
    assert!(before.saturating_sub(error) <= now && now <= after + error, "{before} {now} {after} {error}");
}

#[tokio::test]
async fn without_a_server_there_is_no_clock_and_one_that_runs_goes_on() {
    let mut server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    let node = Discipline::start(&link).await.unwrap();
    server.kill();
    let clock = node.clock();
    let then = clock.now();
    drop(node);
    clock.sleep_until(then.saturating_add(tidegate_core::Wait::from_micros(1000))).await;
    assert!(clock.now() > then);
    // The server runs here, by the same clock as ours.
    let ours = SystemClock::new().now().as_micros();
    assert!(clock.now().as_micros().abs_diff(ours) < 60_000_000);
    let none = Discipline::start(&link).await;
    assert!(none.is_err(), "{none:?}");
}

const CAPACITY: u64 = 300;
const PER_SECOND: u64 = 20;

/// How many checks pass that one node for each clock asks over one bucket at the same time, 400 each, and how many
/// microseconds passed on the server meanwhile.
async fn admitted(server: &Server, clocks: Vec<Arc<dyn Clock>>) -> (u64, u64) {
    server.command(&["FLUSHALL"]);
    let before = time_of(server);
    let mut nodes = Vec::new();
    for clock in clocks {
        let store = RedisStore::builder(server.url()).timeout(Duration::from_secs(20)).open().await.unwrap();
        let bucket = Limit::token_bucket(CAPACITY as u32, Rate::per_second(PER_SECOND as u32));
        let limiter =
            Limiter::builder(Policy::single("all", bucket).unwrap()).store(store).clock(clock).build();
        nodes.push(tokio::spawn(async move {
            let policy = limiter.policy("all").unwrap();
            let mut admitted = 0;
            for _ in 0..400 {
                admitted += u64::from(policy.check("key", 1).await.unwrap().is_allowed());
            }
            admitted
        }));
    }
    let mut sum = 0;
    for node in nodes {
        sum += node.await.unwrap();
    }
    (sum, time_of(server) - before)
}

/// A clock that somebody set wrong.
struct Wrong(SystemClock, i64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::saturating_from_micros(self.0.now().as_micros().saturating_add_signed(self.1))
    }

    fn sleep_until(&self, _: Timestamp) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// Nodes that were booted a second, two seconds and an hour apart, whose clocks agree on nothing else than what the
/// server says, admit what one would: not a token more than the bucket holds and the time that passed earns.
#[tokio::test]
async fn nodes_that_are_skewed_mint_nothing() {
    let server = Server::start(Program::Redis7);
    let link = open(&server.url()).await;
    let second = 1_000_000_000;
    let (mut clocks, mut kept, mut error): (Vec<Arc<dyn Clock>>, _, _) = (Vec::new(), Vec::new(), 0);
    for base in [10_000 * second, 9_999 * second, 10_001 * second, 13_600 * second] {
        let node = Discipline::start_with(&link, Elsewhere(BootTicks::default(), base)).await.unwrap();
        clocks.push(Arc::new(node.clock()));
        error = error.max(node.error().as_micros() as u64 + 1);
        kept.push(node);
    }
    let (sum, elapsed) = admitted(&server, clocks).await;
    let most = CAPACITY + PER_SECOND * (elapsed + 2 * error) / 1_000_000 + 1;
    assert!((CAPACITY..=most).contains(&sum), "{sum}, at most {most} in {elapsed} us");

    // Without discipline the one that is an hour ahead fills the bucket once more: so the test can fail.
    let wrong = |seconds: i64| Arc::new(Wrong(SystemClock::new(), seconds * 1_000_000)) as Arc<dyn Clock>;
    let (sum, elapsed) = admitted(&server, vec![wrong(0), wrong(-1), wrong(1), wrong(3600)]).await;
    let most = CAPACITY + PER_SECOND * elapsed / 1_000_000 + 1;
    assert!(sum > most, "{sum}, at most {most} in {elapsed} us");
}
