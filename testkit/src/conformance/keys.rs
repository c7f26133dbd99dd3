//! Keys are arbitrary bytes, and different ones never share anything.

use super::subject::Subject;
use crate::cases::LimitSpec;
use crate::oracle::{Kind, Outcome};

/// Keys that a careless store confuses: empty, long, with every separator, with bytes that are no text.
pub fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> =
        ["", "a", "A", "a ", " a", "a\0", "\0a", "a:b", "a:", ":b", "a/b", "a|b", "{a}", "é", "e\u{301}"]
            .into_iter()
            .map(|key| key.as_bytes().to_vec())
            .collect();
    keys.extend([
        vec![0xff],
        vec![0xff, 0xff],
        vec![0xc3],
        vec![0],
        vec![0, 0],
        vec![b'\r', b'\n'],
        vec![b'*'],
    ]);
    keys.extend([vec![b'x'; 4_096], vec![b'x'; 4_095], [vec![b'x'; 4_095], vec![b'y']].concat()]);
    keys.extend((0..=255_u8).map(|byte| vec![b'b', byte]));
    keys
}

/// Each of [`odd_keys`] has a state of its own.
///
/// # Panics
/// With the key that another one was charged for.
pub fn keys_apart(subject: &mut dyn Subject) {
    let limit = LimitSpec {
        name: "limit0".to_owned(),
        kind: Kind::TokenBucket,
        capacity: 1_000,
        amount: 0,
        period_us: 1_000_000,
        debt: None,
    };
    subject.install(&[limit]).unwrap_or_else(|reason| panic!("refused: {reason}"));
    let keys = odd_keys();
    let cost_of = |index: usize| u64::try_from(index % 900).map_or(1, |index| index + 1);
    for (index, key) in keys.iter().enumerate() {
        let answer = subject.check(1_000_000, key, cost_of(index));
        let is = (answer.outcome, answer.headline.remaining);
        assert_eq!(is, (Outcome::Allowed, 1_000 - cost_of(index)), "{key:?} was new");
    }
    for (index, key) in keys.iter().enumerate() {
        let answer = subject.check(2_000_000, key, 0);
        assert_eq!(answer.headline.remaining, 1_000 - cost_of(index), "{key:?} was charged once");
    }
}
