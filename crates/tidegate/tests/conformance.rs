//! The conformance suite put to a limiter over the memory store.
#![allow(clippy::unwrap_used)]

mod judged;

use judged::{Beside, Memory};
use std::time::Duration;
use tidegate::MemoryStore;
use tidegate_testkit::conformance::{self, StepsBack};

/// As it comes, alone; with other traffic in one shard, so that tables grow, are walked and drop keys between
/// any two steps; with every state kept for ever, so that no stamp is too old; and with all figures in overrides.
fn subjects() -> [Memory; 4] {
    let crowded = MemoryStore::builder().shards(1).secret(2);
    let kept = MemoryStore::builder().spare(Duration::MAX).secret(3);
    [
        Memory::new(),
        Memory::over(crowded, StepsBack::AtMost(1_000_000)).beside(Beside::Traffic),
        Memory::over(kept, StepsBack::Any),
        Memory::new().beside(Beside::Overridden),
    ]
}

#[test]
fn worked_examples() {
    subjects().iter_mut().for_each(|subject| conformance::worked_examples(subject));
}

#[test]
fn cases() {
    subjects().iter_mut().for_each(|subject| conformance::cases(subject));
}

#[test]
fn keys_apart() {
    subjects().iter_mut().for_each(|subject| conformance::keys_apart(subject));
}

#[test]
fn random_traces() {
    let [mut plain, mut crowded, mut kept, mut overridden] = subjects();
    conformance::random_traces(&mut plain, 1_000);
    conformance::random_traces(&mut crowded, 500);
    conformance::random_traces(&mut kept, 500);
    conformance::random_traces(&mut overridden, 500);
}

#[test]
fn waits_are_honest() {
    subjects().iter_mut().for_each(|subject| conformance::edges(subject, 300));
}

#[test]
fn bounds_hold() {
    subjects().iter_mut().for_each(|subject| conformance::bound(subject, 500));
}
