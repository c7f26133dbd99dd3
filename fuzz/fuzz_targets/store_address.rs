//! Addresses of stores: never a panic, never a password shown, and what is shown reads back as the same. The laws are
//! those of the tests.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tidegate-redis/tests/laws/mod.rs"]
mod laws;

fuzz_target!(|text: &str| laws::hold(text));
