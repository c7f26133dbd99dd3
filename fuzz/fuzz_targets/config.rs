//! A configuration file, any bytes: never a panic, and every error is one line that points into the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_server::config;

fuzz_target!(|file: &[u8]| {
    let Err(errors) = config::parse(file) else { return };
    assert!(errors.count() > 0, "refused without a reason");
    // A line may end in CR LF, in LF, or in CR alone.
    let lines = 1 + file.iter().filter(|&&byte| byte == b'\n' || byte == b'\r').count() as u64;
    for error in errors.errors() {
        let place = error.place();
        assert!((1..=lines).contains(&place.line) && place.column >= 1, "{place:?} of {lines} lines");
        assert!(!error.rule().is_empty() && !error.mend().is_empty(), "{error:?}");
        let shown = error.to_string();
        assert!(!shown.contains(char::is_control), "would break the log: {shown:?}");
    }
});
