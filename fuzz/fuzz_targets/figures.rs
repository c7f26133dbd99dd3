//! Amounts, durations and rates as text: never a panic, and what is shown reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_server::config::{parse_period, parse_rate, parse_units, show_period, show_rate};

fuzz_target!(|text: &str| {
    if let Ok(units) = parse_units(text) {
        assert_eq!(parse_units(&units.to_string()), Ok(units));
    }
    if let Ok(period) = parse_period(text) {
        assert_eq!(parse_period(&show_period(period)), Ok(period));
    }
    if let Ok(rate) = parse_rate(text) {
        assert_eq!(parse_rate(&show_rate(rate)), Ok(rate));
    }
});
