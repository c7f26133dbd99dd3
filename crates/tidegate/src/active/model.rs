//! The order of steps in a reload, under every order of events that the memory model allows.
//!
//! What it models: a version is found in its place and then its shard is locked; in between, reloads may have gone
//! by. Under the lock the version's mark is looked at, and the place again if it is marked. A state remembers the
//! version it was written under; a later one carries it over, an earlier one would not know it and start it anew.
#![allow(clippy::unwrap_used)]

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex, RwLock};
use loom::thread;

struct Version {
    number: usize,
    superseded: AtomicBool,
}

/// Stands for the place, which is a lock-free cell in the library: taking and putting are what counts.
type Place = RwLock<Arc<Version>>;

struct World {
    place: Place,
    /// The version the one key's state was last written under, if it is kept, and what is left of it.
    shard: Mutex<(Option<usize>, u32)>,
}

impl World {
    fn new(left: u32) -> Self {
        World { place: RwLock::new(version(0)), shard: Mutex::new((None, left)) }
    }

    /// As `ActivePolicy::enter`.
    fn enter(&self, number: usize) {
        self.place.read().unwrap().superseded.store(true, Ordering::Release);
        *self.place.write().unwrap() = version(number);
    }

    /// As `MemoryStore::with`: takes one if there is one.
    fn check(&self) -> u32 {
        let found = Arc::clone(&self.place.read().unwrap());
        let mut shard = self.shard.lock().unwrap();
        let version = match found.superseded.load(Ordering::Acquire) {
            true => Arc::clone(&self.place.read().unwrap()),
            false => found,
        };
        let (written, left) = *shard;
        assert!(written.is_none_or(|written| written <= version.number), "a state would start anew");
        let passed = left.min(1);
        *shard = (Some(version.number), left - passed);
        passed
    }

    /// As a sweep of the shard: the version that state is kept under.
    fn sweep(&self) -> Option<usize> {
        self.shard.lock().unwrap().0
    }
}

fn version(number: usize) -> Arc<Version> {
    Arc::new(Version { number, superseded: AtomicBool::new(false) })
}

#[test]
fn nobody_meets_state_of_a_later_version_than_its_own() {
    let mut model = loom::model::Builder::new();
    // All orders take a minute; with the wrong order of steps three suffice to show it.
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = Arc::new(World::new(2));
        let checkers: Vec<_> = (0..2)
            .map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.check())
            })
            .collect();
        world.enter(1);
        let passed: u32 = checkers.into_iter().map(|checker| checker.join().unwrap()).sum();
        assert_eq!((passed, world.check()), (2, 0));
    });
}

/// Versions that a sweep finds without state are let go: nothing may be written under them any more.
#[test]
fn nothing_is_written_under_a_version_that_was_let_go() {
    loom::model(|| {
        let world = Arc::new(World::new(1));
        let checker = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.check())
        };
        world.enter(1);
        let oldest_kept = world.sweep().unwrap_or(1);
        assert_eq!(checker.join().unwrap(), 1);
        assert!(world.sweep().unwrap() >= oldest_kept);
    });
}
