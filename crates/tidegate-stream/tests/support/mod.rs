//! Virtual time, and an executor that knows when nobody has anything left to do in an instant of it.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod executor;
#[path = "../../../tidegate/tests/waiting/stores/slow.rs"]
pub mod slow;

use std::sync::{Arc, Mutex};

use executor::Executor;
use tidegate::clock::{Clock, ManualClock};
use tidegate::store::Store;
use tidegate::{
    Limit, Limiter, LimiterBuilder, MemoryStore, Policy, PolicyHandle, PolicySet, Rate, Timestamp,
};

/// 2023-11-14 22:13:20 UTC.
const START: u64 = 1_700_000_000_000_000;

/// So many milliseconds after the start.
pub fn millis(millis: u64) -> Timestamp {
    Timestamp::from_micros(START + millis * 1_000).unwrap()
}

/// A limiter on a clock that stands still, and who runs on it.
pub struct Place<S: Store = MemoryStore> {
    pub limiter: Limiter<S>,
    pub clock: ManualClock,
    pub tasks: Executor,
}

/// A place with a policy for each limit: "p0", "p1" and so on.
pub fn place(limits: &[Limit]) -> Place {
    place_of(limits, |builder| builder)
}

pub fn place_of<S: Store>(
    limits: &[Limit],
    set: impl FnOnce(LimiterBuilder) -> LimiterBuilder<S>,
) -> Place<S> {
    let clock = ManualClock::new(millis(0));
    let limiter = set(Limiter::builder(policies(limits)).clock(clock.clone())).build();
    Place { limiter, tasks: Executor::new(clock.clone()), clock }
}

pub fn policies(limits: &[Limit]) -> PolicySet {
    let policy = |(index, limit): (usize, &Limit)| Policy::single(format!("p{index}"), *limit).unwrap();
    PolicySet::new(limits.iter().enumerate().map(policy)).unwrap()
}

impl<S: Store> Place<S> {
    pub fn policy(&self, index: usize) -> PolicyHandle<S> {
        self.limiter.policy(&format!("p{index}")).unwrap()
    }

    pub fn log<T>(&self) -> Log<T> {
        Log { clock: self.clock.clone(), seen: Arc::default() }
    }

    /// Milliseconds since the start.
    pub fn now(&self) -> u64 {
        since_start(self.clock.now()) / 1_000
    }
}

impl Place {
    /// What is left of a key.
    pub fn remaining(&self, policy: usize, key: &str) -> u64 {
        self.policy(policy).peek(key).remaining()
    }
}

pub fn since_start(at: Timestamp) -> u64 {
    at.as_micros() - START
}

/// A bucket of `capacity` that gets `rate` units a second.
pub fn bucket(capacity: u32, rate: u32) -> Limit {
    Limit::token_bucket(capacity, Rate::per_second(rate))
}

/// What happened when.
pub struct Log<T> {
    clock: ManualClock,
    seen: Arc<Mutex<Vec<(u64, T)>>>,
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log { clock: self.clock.clone(), seen: Arc::clone(&self.seen) }
    }
}

impl<T: Clone> Log<T> {
    pub fn push(&self, event: T) {
        self.seen.lock().unwrap().push((since_start(self.clock.now()), event));
    }

    /// With the microsecond of each.
    pub fn all(&self) -> Vec<(u64, T)> {
        self.seen.lock().unwrap().clone()
    }

    /// With the millisecond of each, which has to be a whole one.
    pub fn in_millis(&self) -> Vec<(u64, T)> {
        let whole = |(at, event): (u64, T)| {
            assert_eq!(at % 1_000, 0);
            (at / 1_000, event)
        };
        self.all().into_iter().map(whole).collect()
    }

    pub fn events(&self) -> Vec<T> {
        self.all().into_iter().map(|(_, event)| event).collect()
    }
}

impl Log<usize> {
    pub fn total(&self) -> usize {
        self.events().into_iter().sum()
    }
}

/// In no span of time more than `capacity` and what comes in meanwhile at `rate` a second, to the byte.
pub fn assert_within(events: &[(u64, usize)], capacity: u32, rate: u32) {
    let (capacity, rate) = (u128::from(capacity), u128::from(rate));
    for (first, (from, _)) in events.iter().enumerate() {
        let mut bytes = 0;
        for (to, more) in &events[first..] {
            bytes += *more as u128;
            let allowed = capacity * 1_000_000 + rate * u128::from(to - from);
            assert!(bytes * 1_000_000 <= allowed, "{bytes} bytes from {from} to {to} us");
        }
    }
}
