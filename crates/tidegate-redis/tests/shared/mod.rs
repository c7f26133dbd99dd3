//! A limiter over a Redis store as a subject of the conformance suite.
#![allow(dead_code, reason = "each test program uses its part")]

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::{Cost, Limiter, PolicyHandle, Units};
use tidegate_redis::{RedisStore, RedisStoreBuilder};
use tidegate_testkit::cases::LimitSpec;
use tidegate_testkit::conformance::{Offers, Subject, SubjectAnswer};
use tidegate_testkit_servers::{Program, Server};
use tokio::runtime::Runtime;

use crate::judged::{answer, at, policy};

static STORES: AtomicU32 = AtomicU32::new(0);

/// A store at `address` that shares nothing with any other, and forgets nothing within virtual years.
pub fn store(address: &str) -> RedisStoreBuilder {
    let prefix = format!("test{}-{}", std::process::id(), STORES.fetch_add(1, Ordering::Relaxed));
    // Virtual time passes faster than the server's: nothing is to be gone before its time.
    let spare = Duration::from_secs(3600);
    RedisStore::builder(address)
        .prefix(prefix)
        .spare(spare)
        .timeout(Duration::from_secs(30))
        .connect_timeout(Duration::from_secs(60))
}

/// A limiter with one policy under judgement, over servers of its own.
pub struct Shared {
    address: String,
    _servers: Box<dyn Any>,
    runtime: Runtime,
    running: Option<Running>,
}

struct Running {
    clock: ManualClock,
    judged: PolicyHandle<RedisStore>,
}

impl Shared {
    pub fn over(program: Program) -> Self {
        let server = Server::start(program);
        Self::at(server.url(), server)
    }

    /// Over `servers`, which are found at `address`.
    pub fn at(address: String, servers: impl Any) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Shared { address, _servers: Box::new(servers), runtime, running: None }
    }

    fn running(&self, at_us: u64) -> &Running {
        let running = self.running.as_ref().unwrap();
        running.clock.set(at(at_us));
        running
    }
}

impl Subject for Shared {
    fn offers(&self) -> Offers {
        // When figures changed nobody knows, so the time before is credited otherwise than where it is known.
        Offers { reload: false, ..Offers::default() }
    }

    fn install(&mut self, limits: &[LimitSpec]) -> Result<(), String> {
        let (policy, clock) = (policy("judged", limits)?, ManualClock::default());
        let store = self.runtime.block_on(store(&self.address).open()).unwrap();
        let limiter = Limiter::builder(policy).store(store).clock(clock.clone()).build();
        self.running = Some(Running { clock, judged: limiter.policy("judged").unwrap() });
        Ok(())
    }

    fn check(&mut self, at_us: u64, key: &[u8], cost: u64) -> SubjectAnswer {
        let decision = self.running(at_us).judged.check_at(key, Cost::new(cost).unwrap(), at(at_us));
        answer(&self.runtime.block_on(decision).unwrap())
    }

    fn check_up_to(&mut self, at_us: u64, key: &[u8], max: u64) -> (u64, SubjectAnswer) {
        let decision = self.running(at_us).judged.check_up_to_at(key, Cost::new(max).unwrap(), at(at_us));
        let decision = self.runtime.block_on(decision).unwrap();
        (decision.charged(), answer(&decision))
    }

    fn credit(&mut self, at_us: u64, key: &[u8], n: u64) {
        let judged = &self.running(at_us).judged;
        let after = self.runtime.block_on(judged.credit_at(key, Units::new(n).unwrap(), at(at_us))).unwrap();
        let peeked = self.runtime.block_on(judged.peek_at(key, at(at_us))).unwrap();
        assert_eq!(answer(&after), answer(&peeked));
    }

    fn penalize(&mut self, at_us: u64, key: &[u8], n: u64) -> Vec<u64> {
        let judged = &self.running(at_us).judged;
        let penalty = judged.penalize_at(key, Units::new(n).unwrap(), at(at_us));
        let penalty = self.runtime.block_on(penalty).unwrap();
        let peeked = self.runtime.block_on(judged.peek_at(key, at(at_us))).unwrap();
        assert_eq!(answer(&penalty.after), answer(&peeked));
        penalty.cuts().to_vec()
    }

    fn reset(&mut self, at_us: u64, key: &[u8]) {
        self.runtime.block_on(self.running(at_us).judged.reset(key)).unwrap();
    }
}
