//! The names under which servers know scripts.

use std::sync::{Arc, PoisonError, RwLock};

use crate::script::Script;

/// Where a text lies, and its SHA-1. There are as many as there are scripts in this crate.
static KNOWN: RwLock<Vec<(usize, Arc<str>)>> = RwLock::new(Vec::new());

/// The script's SHA-1 in hexadecimal digits, computed once.
pub(super) fn sha_of(script: &'static Script) -> Arc<str> {
    let text = script.source.as_ptr() as usize;
    let find = |known: &[(usize, Arc<str>)]| {
        known.iter().find(|(other, _)| *other == text).map(|(_, sha)| Arc::clone(sha))
    };
    if let Some(sha) = find(&KNOWN.read().unwrap_or_else(PoisonError::into_inner)) {
        return sha;
    }
    let sha: Arc<str> = redis::Script::new(script.source).get_hash().into();
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if find(&known).is_none() {
        known.push((text, Arc::clone(&sha)));
    }
    sha
}
