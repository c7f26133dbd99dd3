//! What HTTP clients send, any bytes: never a panic, what is accepted is in range, and a check means the same
//! alone and in a batch.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_server::http::decode::{
    MOST_KEY_BYTES, decode_adjust, decode_batch, decode_check, decode_peek, decode_reset,
};

const MOST_UNITS: u64 = 1_000_000_000_000;

fuzz_target!(|body: &[u8]| {
    if let Ok(check) = decode_check(body) {
        assert!(check.cost.get() <= MOST_UNITS && check.subject.key.len() <= MOST_KEY_BYTES, "{check:?}");
        let batch = [br#"{"checks":["#, body, b"]}"].concat();
        let batch = decode_batch(&batch).expect("a list of one good check is a good batch");
        let checks: Vec<_> = batch.checks().collect();
        assert!(
            matches!(&checks[..], [Ok(same)] if *same == check),
            "alone {check:?}, in a batch {checks:?}"
        );
    }
    if let Ok(batch) = decode_batch(body) {
        batch.checks().for_each(drop);
    }
    if let Ok(adjust) = decode_adjust(body) {
        assert!(adjust.units.get() <= MOST_UNITS && adjust.subject.key.len() <= MOST_KEY_BYTES, "{adjust:?}");
    }
    if let Ok(subject) = decode_reset(body) {
        assert!(subject.key.len() <= MOST_KEY_BYTES, "{subject:?}");
    }
    if let Ok(query) = std::str::from_utf8(body)
        && let Ok(subject) = decode_peek(query)
    {
        assert!(subject.key.len() <= MOST_KEY_BYTES, "{subject:?}");
    }
});
