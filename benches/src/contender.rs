//! Who is measured: Tidegate in three ways of asking, governor in two, and what one would write oneself.
//!
//! Every one has the same limit, so large that each check is admitted and written, and so slow to refill that no key
//! is ever as new: a billion at once, one a second.
// A bench measures what others do, and they read clocks.
#![allow(clippy::disallowed_methods)]

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tidegate::{Limit, Limiter, Policy, PolicyHandle, Rate};

use crate::trace::Trace;

const BURST: u32 = 1_000_000_000;
/// Checks that are decided together where any are: as many as a server finds in one read.
const BATCH: usize = 16;

/// Something that decides checks of cost 1.
pub trait Contender: Sync {
    /// What the table calls it.
    fn name(&self) -> &'static str;

    /// Checks every key of the trace, and returns how many were admitted.
    fn decide(&self, trace: &Trace) -> u64;
}

/// Makes one contender anew.
pub type Make = fn() -> Box<dyn Contender>;

/// All of them. The second is what the others are compared with.
pub const ALL: [Make; 6] = [
    || Box::new(GovernorOwned(governor())),
    || Box::new(GovernorReused(governor())),
    || Box::new(MutexMap::default()),
    || Box::new(Tidegate(tidegate())),
    || Box::new(TidegateStamped(tidegate())),
    || Box::new(TidegateBatched(tidegate())),
];
/// The place in [`ALL`] of the one to compare with.
pub const PEER: usize = 1;

fn governor() -> DefaultKeyedRateLimiter<String> {
    let burst = NonZeroU32::new(BURST).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::with_period(Duration::from_secs(1)).unwrap_or(Quota::per_second(burst));
    RateLimiter::keyed(quota.allow_burst(burst))
}

/// Governor with a key of its own for each check.
struct GovernorOwned(DefaultKeyedRateLimiter<String>);

impl Contender for GovernorOwned {
    fn name(&self) -> &'static str {
        "governor, owned key"
    }

    fn decide(&self, trace: &Trace) -> u64 {
        trace.keys().map(|key| u64::from(self.0.check_key(&key.to_owned()).is_ok())).sum()
    }
}

/// Governor with a key that is written into the same buffer again and again.
struct GovernorReused(DefaultKeyedRateLimiter<String>);

impl Contender for GovernorReused {
    fn name(&self) -> &'static str {
        "governor, reused key"
    }

    fn decide(&self, trace: &Trace) -> u64 {
        let mut buffer = String::new();
        let mut check = |key: &str| {
            buffer.clear();
            buffer.push_str(key);
            self.0.check_key(&buffer).is_ok()
        };
        trace.keys().map(|key| u64::from(check(key))).sum()
    }
}

/// A map of buckets under a lock: twenty lines, and what most programs have.
#[derive(Default)]
struct MutexMap(Mutex<HashMap<String, Bucket>>);

struct Bucket {
    tokens: f64,
    last: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.last).as_secs_f64();
        self.tokens = (self.tokens + earned).min(f64::from(BURST));
        self.last = now;
        let admitted = self.tokens >= 1.0;
        if admitted {
            self.tokens -= 1.0;
        }
        admitted
    }
}

impl Contender for MutexMap {
    fn name(&self) -> &'static str {
        "Mutex<HashMap>"
    }

    fn decide(&self, trace: &Trace) -> u64 {
        let check = |key: &str| {
            let now = Instant::now();
            let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match buckets.get_mut(key) {
                Some(bucket) => bucket.take(now),
                None => {
                    let full = Bucket { tokens: f64::from(BURST), last: now };
                    buckets.entry(key.to_owned()).or_insert(full).take(now)
                }
            }
        };
        trace.keys().map(|key| u64::from(check(key))).sum()
    }
}

struct Handle {
    limiter: Limiter,
    policy: PolicyHandle,
}

fn tidegate() -> Handle {
    let policy = Policy::single("api", Limit::token_bucket(BURST, Rate::per_second(1)));
    let limiter = Limiter::new(policy.expect("a name of four letters"));
    let policy = limiter.policy("api").expect("it was just given");
    Handle { limiter, policy }
}

/// Tidegate as one calls it: the clock is read for each check.
struct Tidegate(Handle);

impl Contender for Tidegate {
    fn name(&self) -> &'static str {
        "tidegate, check"
    }

    fn decide(&self, trace: &Trace) -> u64 {
        trace.keys().map(|key| u64::from(self.0.policy.check(key, 1_u32).is_allowed())).sum()
    }
}

/// Tidegate as a server calls it that decides all that one read brought: the clock is read once.
struct TidegateStamped(Handle);

impl Contender for TidegateStamped {
    fn name(&self) -> &'static str {
        "tidegate, check_at"
    }

    fn decide(&self, trace: &Trace) -> u64 {
        let mut now = self.0.limiter.now();
        let mut admitted = 0;
        for (place, key) in trace.keys().enumerate() {
            if place % BATCH == 0 {
                now = self.0.limiter.now();
            }
            admitted += u64::from(self.0.policy.check_at(key, 1_u32, now).is_allowed());
        }
        admitted
    }
}

/// Tidegate as a server calls it that has all that one read brought decided at once.
struct TidegateBatched(Handle);

impl Contender for TidegateBatched {
    fn name(&self) -> &'static str {
        "tidegate, check_batch"
    }

    fn decide(&self, trace: &Trace) -> u64 {
        let mut keys = trace.keys();
        let mut admitted = 0;
        let mut batch = [""; BATCH];
        loop {
            let filled = batch.iter_mut().zip(&mut keys).map(|(place, key)| *place = key).count();
            if filled == 0 {
                return admitted;
            }
            let decided = self.0.policy.check_batch(&batch[..filled], 1_u32);
            admitted += decided.iter().map(|decision| u64::from(decision.is_allowed())).sum::<u64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Keys, Popularity};

    /// What is compared does the same work: all admit everything.
    #[test]
    fn every_contender_admits_every_check() {
        let trace = Keys { count: 50, popularity: Popularity::Uniform }.trace(1_000, 1);
        for make in ALL {
            let contender = make();
            assert_eq!(contender.decide(&trace), 1_000, "{}", contender.name());
        }
    }
}
