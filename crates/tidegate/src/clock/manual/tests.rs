#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread;

use super::*;

fn stamp(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

/// Writes its name down each time it wakes somebody.
struct Diary {
    name: &'static str,
    entries: Arc<Mutex<Vec<&'static str>>>,
}

impl Wake for Diary {
    fn wake(self: Arc<Self>) {
        self.entries.lock().unwrap().push(self.name);
    }
}

#[derive(Default)]
struct Diaries(Arc<Mutex<Vec<&'static str>>>);

impl Diaries {
    fn poll(&self, name: &'static str, sleep: &mut Sleep) -> Poll<()> {
        let waker = Waker::from(Arc::new(Diary { name, entries: Arc::clone(&self.0) }));
        sleep.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn written(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn a_manual_clock_stands_still_moves_and_steps_back() {
    let clock = ManualClock::new(stamp(1_000));
    let handle = clock.clone();
    assert_eq!(clock.now(), stamp(1_000));
    handle.advance(Duration::from_nanos(2_999));
    assert_eq!(clock.now(), stamp(1_002));
    handle.set(stamp(5));
    assert_eq!(clock.now(), stamp(5));
    handle.advance(Duration::MAX);
    assert_eq!(clock.now(), Timestamp::MAX);
}

#[test]
fn sleepers_are_woken_once_each_in_the_order_of_their_instants() {
    let clock = ManualClock::new(stamp(0));
    let diaries = Diaries::default();
    let mut sleeps: Vec<_> = [("c", 30), ("a", 10), ("b1", 20), ("b2", 20), ("d", 31)]
        .map(|(name, at)| (name, clock.sleep_until(stamp(at))))
        .into();
    for (name, sleep) in &mut sleeps {
        assert!(diaries.poll(name, sleep).is_pending());
    }
    assert_eq!(clock.next_wake(), Some(stamp(10)));
    clock.advance(Duration::from_micros(9));
    assert!(diaries.written().is_empty());
    clock.advance(Duration::from_micros(1));
    assert_eq!(diaries.written(), ["a"]);
    clock.set(stamp(30));
    assert_eq!(diaries.written(), ["b1", "b2", "c"]);
    clock.set(stamp(30));
    clock.set(stamp(0));
    clock.set(stamp(30));
    assert!(diaries.written().is_empty());
    for (name, sleep) in &mut sleeps {
        assert_eq!(diaries.poll(name, sleep).is_ready(), *name != "d");
    }
    assert_eq!(clock.next_wake(), Some(stamp(31)));
    clock.set(Timestamp::MAX);
    assert_eq!(diaries.written(), ["d"]);
    assert_eq!(clock.next_wake(), None);
}

#[test]
fn a_sleep_until_now_or_earlier_is_over_at_once() {
    let clock = ManualClock::new(stamp(10));
    let diaries = Diaries::default();
    for at in [0, 10] {
        assert!(diaries.poll("past", &mut clock.sleep_until(stamp(at))).is_ready());
    }
    let mut sleep = clock.sleep_until(stamp(20));
    clock.set(stamp(20));
    assert!(diaries.poll("reached before its first poll", &mut sleep).is_ready());
    assert_eq!(clock.next_wake(), None);
}

#[test]
fn the_last_instant_of_all_can_be_slept_until() {
    let clock = ManualClock::new(stamp(10));
    let diaries = Diaries::default();
    let mut sleep = clock.sleep_until(Timestamp::MAX);
    assert!(diaries.poll("end", &mut sleep).is_pending());
    clock.set(stamp(Timestamp::MAX.as_micros() - 1));
    assert!(diaries.written().is_empty());
    clock.set(Timestamp::MAX);
    assert_eq!(diaries.written(), ["end"]);
}

#[test]
fn a_dropped_sleep_leaves_nothing_behind() {
    let clock = ManualClock::new(stamp(0));
    let diaries = Diaries::default();
    let (mut dropped, mut kept) = (clock.sleep_until(stamp(10)), clock.sleep_until(stamp(10)));
    assert!(diaries.poll("dropped", &mut dropped).is_pending());
    assert!(diaries.poll("kept", &mut kept).is_pending());
    assert_eq!(clock.state().sleepers.len(), 2);
    drop(dropped);
    assert_eq!(clock.state().sleepers.len(), 1);
    clock.set(stamp(10));
    assert_eq!(diaries.written(), ["kept"]);
    drop(kept);
    drop(clock.sleep_until(stamp(20)));
    assert_eq!(clock.state().sleepers.len(), 0);
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let clock = ManualClock::new(stamp(0));
    let diaries = Diaries::default();
    let mut sleep = clock.sleep_until(stamp(10));
    assert!(diaries.poll("first", &mut sleep).is_pending());
    assert!(diaries.poll("second", &mut sleep).is_pending());
    clock.set(stamp(10));
    assert_eq!(diaries.written(), ["second"]);
}

#[test]
fn a_sleep_that_was_woken_is_over_even_if_the_clock_went_back() {
    let clock = ManualClock::new(stamp(0));
    let diaries = Diaries::default();
    let mut sleep = clock.sleep_until(stamp(10));
    assert!(diaries.poll("sleep", &mut sleep).is_pending());
    clock.set(stamp(10));
    clock.set(stamp(0));
    assert!(diaries.poll("sleep", &mut sleep).is_ready());
    assert!(diaries.poll("anew", &mut clock.sleep_until(stamp(10))).is_pending());
}

/// Whatever a waker does to the clock, it finds it unlocked.
#[test]
fn a_waker_may_use_the_clock() {
    struct Asks(ManualClock, AtomicUsize);
    impl Wake for Asks {
        fn wake(self: Arc<Self>) {
            self.1.store(self.0.now().as_micros() as usize, Ordering::Relaxed);
        }
    }
    let clock = ManualClock::new(stamp(0));
    let asks = Arc::new(Asks(clock.clone(), AtomicUsize::new(0)));
    let mut sleep = clock.sleep_until(stamp(10));
    let waker = Waker::from(Arc::clone(&asks));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    clock.set(stamp(12));
    assert_eq!(asks.1.load(Ordering::Relaxed), 12);
}

#[test]
fn advances_of_many_threads_add_up() {
    let clock = ManualClock::new(stamp(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..1_000).for_each(|_| clock.advance(Duration::from_micros(1))));
        }
    });
    assert_eq!(clock.now(), stamp(8_000));
}
