//! What a request says, read strictly from its bytes: pure functions, so that they can be fuzzed.
//!
//! Nothing is guessed: an unknown field, one given twice or a number that is no whole number is a problem that
//! names the field, what was written, the rule and the mend.

mod body;
mod field;
mod query;

use std::borrow::Cow;

use tidegate::{Cost, Units};

pub use body::{AdjustBody, Batch, BatchBody, CheckBody, ResetBody};
pub use body::{decode_adjust, decode_batch, decode_check, decode_reset};
pub(crate) use field::shown;
pub use query::decode_peek;

/// A key has at most this many bytes.
pub const MOST_KEY_BYTES: usize = 4_096;

/// A batch has at most this many checks.
pub const MOST_CHECKS: usize = 1_000;

/// Whom a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The policy asked for, if one was.
    pub policy: Option<Cow<'a, str>>,
    /// The key: any bytes.
    pub key: Cow<'a, [u8]>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRequest<'a> {
    /// Whom it is about.
    pub subject: Subject<'a>,
    /// What it asks for; 1 unless said.
    pub cost: Cost,
}

/// A credit or a penalty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjustRequest<'a> {
    /// Whom it is about.
    pub subject: Subject<'a>,
    /// How much is given back or charged.
    pub units: Units,
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes: Vec<u8>, text: String) {
            let _ = decode_check(&bytes);
            let _ = decode_adjust(&bytes);
            let _ = decode_reset(&bytes);
            let _ = decode_batch(&bytes).map(|batch| batch.checks().for_each(drop));
            let _ = decode_peek(&text);
            let _ = decode_peek(&format!("key={text}"));
        }

        #[test]
        fn what_was_meant_is_read(policy: String, key: String, cost in 0..=1_000_000_000_000_u64) {
            let body = json!({"cost": cost, "policy": policy, "key": key}).to_string();
            let read = decode_check(body.as_bytes()).unwrap();
            prop_assert_eq!(read.subject.policy.as_deref(), Some(&*policy));
            prop_assert_eq!(&*read.subject.key, key.as_bytes());
            prop_assert_eq!(read.cost.get(), cost);
        }

        #[test]
        fn keys_of_any_bytes_are_read(key: Vec<u8>) {
            for base64 in [STANDARD.encode(&key), URL_SAFE_NO_PAD.encode(&key)] {
                let body = json!({"key_b64": base64}).to_string();
                prop_assert_eq!(&*decode_reset(body.as_bytes()).unwrap().key, &*key);
                let query = format!("key_b64={}", base64.replace('+', "%2B"));
                prop_assert_eq!(&*decode_peek(&query).unwrap().key, &*key);
            }
        }

        #[test]
        fn escapes_of_any_text_are_read(key: String) {
            let query: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let query = format!("key={query}");
            prop_assert_eq!(&*decode_peek(&query).unwrap().key, key.as_bytes());
        }
    }
}
