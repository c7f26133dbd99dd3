//! The conformance suite, put to a limited service: every decision is one about a request, and every header that
//! follows from it is looked at.
#![allow(clippy::unwrap_used)]

mod judged;

use judged::Door;
use tidegate_testkit::conformance;

#[test]
fn worked_examples() {
    conformance::worked_examples(&mut Door::new());
}

#[test]
fn cases() {
    conformance::cases(&mut Door::new());
}

#[test]
fn keys_apart() {
    conformance::keys_apart(&mut Door::new());
}

#[test]
fn random_traces() {
    conformance::random_traces(&mut Door::new(), 500);
}

#[test]
fn waits_are_honest() {
    conformance::edges(&mut Door::new(), 200);
}

#[test]
fn bounds_hold() {
    conformance::bound(&mut Door::new(), 200);
}
