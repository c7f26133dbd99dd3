//! One key of several parts.

/// Joins parts into one key so that different parts never make the same key, whatever bytes they hold: before
/// each stands its length. Doors that join the same parts charge the same state.
///
/// ```
/// use tidegate_fields::joined;
/// assert_eq!(joined(["acme", "10.0.0.1"]), b"4:acme8:10.0.0.1");
/// assert_ne!(joined(["a", "b:c"]), joined(["a:b", "c"]));
/// assert_ne!(joined(["a"]), joined(["a", ""]));
/// ```
pub fn joined<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Vec<u8> {
    let mut key = Vec::new();
    for part in parts {
        let part = part.as_ref();
        key.extend_from_slice(part.len().to_string().as_bytes());
        key.push(b':');
        key.extend_from_slice(part);
    }
    key
}
