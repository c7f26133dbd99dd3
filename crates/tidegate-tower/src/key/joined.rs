//! A key of several parts.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;

use super::KeyExtractor;

/// See [`joined`].
#[derive(Clone, Default)]
pub struct JoinedKeys(Vec<Arc<dyn KeyExtractor>>);

/// Several parts as one key, so that different parts never make the same key, whatever bytes they hold
/// (`tidegate_fields::joined` says how). If one part is missing, so is the key.
///
/// ```
/// use tidegate_tower::key;
/// let extractor = key::joined().part(key::header("x-tenant")).part(key::peer_ip());
/// ```
pub fn joined() -> JoinedKeys {
    JoinedKeys::default()
}

impl JoinedKeys {
    /// Adds a part.
    #[must_use]
    pub fn part(mut self, part: impl KeyExtractor) -> Self {
        self.0.push(Arc::new(part));
        self
    }
}

impl KeyExtractor for JoinedKeys {
    fn key(&self, request: &mut Parts) -> Option<Vec<u8>> {
        let parts: Option<Vec<Vec<u8>>> = self.0.iter().map(|part| part.key(request)).collect();
        parts.map(tidegate_fields::joined)
    }
}

impl fmt::Debug for JoinedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedKeys").field("parts", &self.0.len()).finish()
    }
}
