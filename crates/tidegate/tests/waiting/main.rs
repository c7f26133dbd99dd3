//! Waiting for a turn, in virtual time, on an executor that counts every wake.
#![allow(clippy::unwrap_used)]

mod executor;
mod giving_up;
mod leaky;
mod moving;
mod order;
mod random;
mod stores;
mod threads;

use executor::{Executor, Id};
use tidegate::clock::ManualClock;
use tidegate::{Limit, Limiter, Policy, PolicyHandle, Timestamp};

/// A limiter of one policy on a clock that stands still, and an executor to wait on.
struct Place {
    limiter: Limiter,
    api: PolicyHandle,
    clock: ManualClock,
    tasks: Executor,
}

/// 2023-11-14 22:13:20 UTC: windows of up to ten seconds begin here.
const START: u64 = 1_700_000_000_000_000;

fn place(limits: &[Limit]) -> Place {
    let mut policy = Policy::builder("api");
    for (index, limit) in limits.iter().enumerate() {
        policy = policy.limit(format!("limit{index}"), *limit);
    }
    place_of(policy.build().unwrap(), |builder| builder)
}

fn place_of(policy: Policy, set: impl FnOnce(tidegate::LimiterBuilder) -> tidegate::LimiterBuilder) -> Place {
    let clock = ManualClock::new(micros(0));
    let limiter = set(Limiter::builder(policy).clock(clock.clone())).build();
    let api = limiter.policy("api").unwrap();
    Place { limiter, api, tasks: Executor::new(clock.clone()), clock }
}

impl Place {
    /// Begins to wait for `cost` of the key "k".
    fn acquire(&mut self, cost: u32) -> Id {
        self.tasks.spawn(self.api.acquire("k", cost))
    }

    /// The same for at most so many milliseconds.
    fn acquire_within(&mut self, cost: u32, millis: u64) -> Id {
        let timeout = std::time::Duration::from_millis(millis);
        self.tasks.spawn(self.api.acquire_within("k", cost, timeout))
    }

    /// Empties the bucket of the key "k" of `cost` units, or fills its window.
    fn take(&self, cost: u32) {
        assert!(self.api.check("k", cost).is_allowed());
    }
}

/// The instant `micros` microseconds after the start.
fn micros(micros: u64) -> Timestamp {
    Timestamp::from_micros(START + micros).unwrap()
}

/// The instant `millis` milliseconds after the start.
fn millis(millis: u64) -> Timestamp {
    micros(millis * 1_000)
}
