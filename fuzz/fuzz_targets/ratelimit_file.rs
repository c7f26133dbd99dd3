//! A file for envoyproxy/ratelimit, any bytes: never a panic, every error is one line that points into the file, and
//! what is taken means the same when it is converted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_server::config::{Config, ratelimit};

fuzz_target!(|file: &[u8]| {
    let files = match ratelimit::parse(file, "-") {
        Ok(files) => files,
        Err(errors) => {
            assert!(errors.count() > 0, "refused without a reason");
            for error in errors.errors() {
                assert!(!error.rule().is_empty() && !error.mend().is_empty(), "{error:?}");
                let shown = error.to_string();
                assert!(!shown.contains(char::is_control), "would break the log: {shown:?}");
            }
            return;
        }
    };
    let text = ratelimit::to_yaml(&files, "-");
    let config = Config::parse(&text, "-").unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    assert_eq!(config.envoy(), &files.rules, "{text}");
    for policy in &files.policies {
        assert_eq!(config.policies().get(policy.name()).map(|it| &**it), Some(policy), "{text}");
    }
});
