//! Sets of ad hoc keys that have nothing to do with one another.

use std::sync::{Arc, PoisonError, RwLock};

use super::{AdHocStore, AdHocStoreBuilder};

/// One of the sets of ad hoc keys that a store keeps apart: the same key in two of them is two keys, and neither has
/// anything to do with a policy's.
///
/// ```
/// use tidegate::AdHocSpace;
/// const THROTTLE: AdHocSpace = AdHocSpace::new("throttle");
/// assert_eq!(THROTTLE.name(), "throttle");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdHocSpace(&'static str);

impl AdHocSpace {
    /// The space of this name, under which stores elsewhere keep its keys: 1 to 32 lower-case letters.
    ///
    /// # Panics
    /// If the name is any other text; of a constant that is told when it is compiled.
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty() && bytes.len() <= 32, "a space's name has 1 to 32 letters");
        let mut at = 0;
        while at < bytes.len() {
            assert!(bytes[at].is_ascii_lowercase(), "a space's name is of the letters a to z");
            at += 1;
        }
        AdHocSpace(name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// The spaces that were asked for so far, in this process's memory.
#[derive(Debug)]
pub(crate) struct Spaces {
    /// How each is built.
    builder: AdHocStoreBuilder,
    /// Never fewer than before, so places stay what they are.
    stores: RwLock<Vec<(AdHocSpace, Arc<AdHocStore>)>>,
}

impl Spaces {
    pub(crate) fn new(builder: AdHocStoreBuilder) -> Self {
        Spaces { builder, stores: RwLock::default() }
    }

    /// The keys of a space.
    pub(crate) fn store(&self, space: AdHocSpace) -> Arc<AdHocStore> {
        self.placed(space).1
    }

    /// The keys of a space, and its place among all: locks of several are taken in the order of places.
    pub(super) fn placed(&self, space: AdHocSpace) -> (usize, Arc<AdHocStore>) {
        let find = |stores: &[(AdHocSpace, Arc<AdHocStore>)]| {
            let place = stores.iter().position(|(known, _)| *known == space)?;
            Some((place, Arc::clone(&stores[place].1)))
        };
        if let Some(known) = find(&self.stores.read().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        find(&stores).unwrap_or_else(|| {
            let store = Arc::new(self.builder.clone().build());
            stores.push((space, Arc::clone(&store)));
            (stores.len() - 1, store)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_space_is_built_once_and_keeps_its_place() {
        let spaces = Spaces::new(AdHocStore::builder());
        let [one, other] = [AdHocSpace::new("one"), AdHocSpace::new("other")];
        let (place, store) = spaces.placed(one);
        assert_eq!(spaces.placed(other).0, place + 1);
        assert!(Arc::ptr_eq(&spaces.placed(one).1, &store));
        assert!(!Arc::ptr_eq(&spaces.store(other), &store));
    }

    #[test]
    fn names_are_of_lower_case_letters() {
        let long = "abcdefghijklmnopqrstuvwxyzabcdefg";
        for wrong in ["", "A", "a b", "a:b", "~a", "\u{e4}", long] {
            assert!(std::panic::catch_unwind(|| AdHocSpace::new(wrong)).is_err(), "{wrong}");
        }
    }
}
