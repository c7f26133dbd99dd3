//! What a client is told of a check that has no answer: what helps, and nothing of where the store is or what it keeps.

use tidegate::store::StoreErrorKind;

/// Why there is no answer, in words for clients.
pub(crate) fn told(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::Damaged => {
            "what the store keeps of this key is damaged or not tidegate's (trying again does not help: an operator has \
             to mend it; the server's log names the record)"
        }
        StoreErrorKind::Unfit => {
            "the store cannot decide this as it is set up (trying again does not help: an operator has to act; the \
             server's log says what is wrong)"
        }
        _ => "the store of the limits did not answer; the check may have been charged once (try again later)",
    }
}
