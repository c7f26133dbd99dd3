//! Headers that say whose request it is, any bytes, a line each: never a panic, strangers are not believed, and what a
//! client claims changes nothing. The laws are those of the tests.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tidegate-fields/tests/laws/mod.rs"]
mod laws;

fuzz_target!(|bytes: &[u8]| laws::hold(bytes));
