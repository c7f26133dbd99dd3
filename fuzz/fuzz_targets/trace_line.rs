//! One line of a trace, any bytes: never a panic, and what is accepted is in range.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_cli::trace::parse_line;

fuzz_target!(|line: &[u8]| {
    match parse_line(line) {
        Ok(check) => {
            assert!(check.cost.get() <= 1_000_000_000_000, "{check:?}");
            assert!(check.at.as_micros() <= i64::MAX as u64, "{check:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error that says nothing"),
    }
});
