#![allow(clippy::unwrap_used)]
use tidegate::clock::{Clock, SystemClock};
use tidegate_testkit_servers::{Mischief, Program, Proxy, Reply, Server};

use super::*;
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
