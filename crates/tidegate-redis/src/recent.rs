//! A map that keeps what was touched lately and holds no more than so much.

use std::collections::HashMap;

/// Keeps at most `most` entries: the younger half, and of the older half those that nobody has touched since.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    young: HashMap<Vec<u8>, V>,
    old: HashMap<Vec<u8>, V>,
    most: usize,
}

impl<V> Recent<V> {
    pub(crate) fn of(most: usize) -> Self {
        Recent { young: HashMap::new(), old: HashMap::new(), most }
    }

    /// Entries kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// What is kept of `key`; touched by that.
    pub(crate) fn get(&mut self, key: &[u8]) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    /// Forgets what is kept of `key`.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(crate) fn insert(&mut self, key: &[u8], value: V) {
        if let Some(kept) = self.young.get_mut(key) {
            *kept = value;
            return;
        }
        self.old.remove(key);
        if self.young.len() >= self.most.div_ceil(2) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.to_vec(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_stays_and_there_is_never_too_much() {
        let mut recent = Recent::of(10);
        recent.insert(b"often", 0);
        for number in 0..1_000_u32 {
            recent.insert(&number.to_be_bytes(), number);
            assert_eq!(recent.get(b"often"), Some(&mut 0));
            assert!(recent.len() <= 10);
        }
        assert_eq!(recent.get(&999_u32.to_be_bytes()), Some(&mut 999));
        assert_eq!(recent.get(&1_u32.to_be_bytes()), None);
    }
}
