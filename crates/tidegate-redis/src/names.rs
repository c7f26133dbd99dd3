//! What the keys in Redis are called.

use sha2::{Digest, Sha256};
use tidegate::AdHocSpace;

/// Client keys up to so many bytes appear in names as they are, escaped; longer ones as their digest.
const LONGEST_PLAIN: usize = 64;

/// Names of records, all under one prefix.
///
/// A record is `PREFIX:{kKEY}:POLICY`, every part escaped, so that two different (policy, key) pairs never share a
/// name. The part in braces is what Redis Cluster places a key by: a client's records are in one slot, and the
/// records of many clients are spread over all. With a partition it is `PREFIX:{pPARTITION}:kKEY:POLICY`, and all are
/// in one. A key whose figures come with each check has `~SPACE` in the policy's place: of a policy's name a `~` is
/// escaped, so none can be called so.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: Vec<u8>,
    /// Escaped; all keys are in its slot.
    partition: Option<Vec<u8>>,
}

impl Names {
    /// Names under `prefix`, whose braces, were there any, would hide the key's. With a partition all are in one slot.
    pub(crate) fn under(prefix: &str, partition: Option<&str>) -> Self {
        let mut escaped = Vec::new();
        for part in prefix.split(':') {
            if !escaped.is_empty() {
                escaped.push(b':');
            }
            escape(part.as_bytes(), &mut escaped);
        }
        let partition = partition.map(|name| {
            let mut escaped = Vec::new();
            escape(name.as_bytes(), &mut escaped);
            escaped
        });
        Names { prefix: escaped, partition }
    }

    /// Whether all are in one slot of a cluster.
    pub(crate) fn are_together(&self) -> bool {
        self.partition.is_some()
    }

    /// The name of the record of `key` under the policy called `policy`.
    pub(crate) fn record(&self, policy: &str, key: &[u8]) -> Vec<u8> {
        let mut name = self.placed(key, policy.len());
        escape(policy.as_bytes(), &mut name);
        name
    }

    /// The name of the record of `key` in a space of ad hoc keys.
    pub(crate) fn ad_hoc(&self, space: AdHocSpace, key: &[u8]) -> Vec<u8> {
        let mut name = self.placed(key, 1 + space.name().len());
        name.push(b'~');
        // Letters.
        name.extend_from_slice(space.name().as_bytes());
        name
    }

    /// What the name of a record of `key` begins with; so many bytes are to come.
    fn placed(&self, key: &[u8], more: usize) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + more + key.len().min(LONGEST_PLAIN) + 8);
        name.extend_from_slice(&self.prefix);
        name.extend_from_slice(b":{");
        if let Some(partition) = &self.partition {
            name.push(b'p');
            name.extend_from_slice(partition);
            name.extend_from_slice(b"}:");
        }
        if key.len() <= LONGEST_PLAIN {
            name.push(b'k');
            escape(key, &mut name);
        } else {
            name.push(b'h');
            Sha256::digest(key).iter().for_each(|byte| hex(*byte, &mut name));
        }
        name.extend_from_slice(if self.partition.is_some() { b":" } else { b"}:" });
        name
    }
}

/// Writes `bytes` so that no byte of theirs is taken for one that separates parts.
fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' | b'/' => out.push(byte),
            _ => {
                out.push(b'%');
                hex(byte, out);
            }
        }
    }
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn named(policy: &str, key: &[u8]) -> String {
        String::from_utf8(Names::under("tg1", None).record(policy, key)).unwrap()
    }

    #[test]
    fn names_are_readable_and_hold_the_key_in_braces() {
        assert_eq!(named("api", b"user/42"), "tg1:{kuser/42}:api");
        assert_eq!(named("api", b""), "tg1:{k}:api");
        assert_eq!(named("a:b", b"x}{y"), "tg1:{kx%7d%7by}:a%3ab");
        assert_eq!(named("api", &[0, 255]), "tg1:{k%00%ff}:api");
        let long = named("api", &[b'x'; 65]);
        assert_eq!(long.len(), "tg1:{h}:api".len() + 64);
    }

    #[test]
    fn no_two_share_a_name() {
        let keys: [&[u8]; 9] = [b"", b"a", b"a:b", b"b", b"%61", b"a%3ab", b"{a}", b"k", &[b'k'; 70]];
        let policies = ["", "a", "b", "a:b", "b}:a", "%3a", "~a", "~", "%7ea"];
        let mut names = BTreeSet::new();
        for (space, key) in ["a", "b"].into_iter().flat_map(|space| keys.map(|key| (space, key))) {
            assert!(names.insert(Names::under("tg1", None).ad_hoc(AdHocSpace::new(space), key)));
        }
        for (policy, key) in policies.iter().flat_map(|policy| keys.map(|key| (policy, key))) {
            let record = Names::under("tg1", None).record(policy, key);
            assert!(names.insert(record));
        }
        let digest = named("api", &[b'k'; 70]);
        let spelt: Vec<u8> = digest.bytes().skip(5).take(65).collect();
        assert_ne!(named("api", &spelt), digest);
    }

    #[test]
    fn a_partition_is_what_all_keys_are_placed_by() {
        let names = Names::under("tg1", Some("tenant {1}"));
        let name = String::from_utf8(names.record("api", b"a:b")).unwrap();
        assert_eq!(name, "tg1:{ptenant%20%7b1%7d}:ka%3ab:api");
        let name = String::from_utf8(names.ad_hoc(AdHocSpace::new("throttle"), b"a:b")).unwrap();
        assert_eq!(name, "tg1:{ptenant%20%7b1%7d}:ka%3ab:~throttle");
    }

    #[test]
    fn a_prefix_keeps_its_colons_and_nothing_else_that_could_mislead() {
        let name = Names::under("tidegate:replay:{x}", None).record("api", b"k");
        assert_eq!(String::from_utf8(name).unwrap(), "tidegate:replay:%7bx%7d:{kk}:api");
    }
}
