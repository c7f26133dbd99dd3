//! Waiting under random orders of events: a scheduler takes over at every lock, and a wake that is lost is found
//! as a schedule that does not end.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner, thread};
use tidegate_core::{Limit, Period, Rate};

use crate::clock::ManualClock;
use crate::store::Store;
use crate::wait::Acquire;
use crate::{Limiter, MemoryStore, Policy, PolicyHandle};

#[path = "../../tests/waiting/stores/slow.rs"]
#[allow(dead_code)]
mod slow;

use slow::Slow;

thread_local! {
    /// Whether this thread runs under the scheduler, which runs all its threads on one.
    static IS_MODELLED: Cell<bool> = const { Cell::new(false) };
}

/// A lock that the scheduler knows, beside each real one that is made under it.
#[derive(Debug)]
pub(super) struct Modelled(Option<shuttle::sync::Mutex<()>>);

pub(super) type ModelledGuard<'a> = Option<shuttle::sync::MutexGuard<'a, ()>>;

impl Default for Modelled {
    fn default() -> Self {
        Modelled(IS_MODELLED.get().then(|| shuttle::sync::Mutex::new(())))
    }
}

impl Modelled {
    pub(super) fn lock(&self) -> ModelledGuard<'_> {
        self.0.as_ref().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn check(schedules: usize, life: impl Fn() + Send + Sync + 'static) {
    IS_MODELLED.set(true);
    let mut config = Config::default();
    config.max_steps = MaxSteps::FailAfter(20_000);
    let life = Arc::new(life);
    let again = Arc::clone(&life);
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || life());
    Runner::new(PctScheduler::new(4, schedules), config).run(move || again());
    IS_MODELLED.set(false);
}

fn api<S: Store>(limit: Limit, store: S) -> (PolicyHandle<S>, ManualClock) {
    let clock = ManualClock::default();
    let policy = Policy::single("api", limit).unwrap();
    let limiter = Limiter::builder(policy).store(store).clock(clock.clone()).build();
    (limiter.policy("api").unwrap(), clock)
}

/// Polls something so many times and then drops it: what it came to, if anything.
struct Impatient<F>(Option<Pin<Box<F>>>, usize);

impl<F: Future> Future for Impatient<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Ready(None) };
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        if self.1 == 0 {
            self.0 = None;
            return Poll::Ready(None);
        }
        self.1 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls `acquire` `polls` times, and no more until it is dropped, which is now; what it was charged.
fn impatient<S: Store>(acquire: Acquire<S>, polls: usize) -> u64 {
    block_on(Impatient(Some(Box::pin(acquire)), polls)).map_or(0, |it| it.unwrap().charged())
}

fn patient<S: Store>(acquire: Acquire<S>) -> u64 {
    block_on(acquire).unwrap().charged()
}

/// Polls `acquire` once, and keeps its place until `others` are done.
fn sleepy<S: Store>(mut acquire: Acquire<S>, done: &AtomicUsize, others: usize) -> u64 {
    let mut context = Context::from_waker(Waker::noop());
    let polled = Pin::new(&mut acquire).poll(&mut context);
    while done.load(Ordering::Relaxed) < others {
        thread::yield_now();
    }
    match polled {
        Poll::Ready(it) => it.unwrap().charged(),
        Poll::Pending => 0,
    }
}

/// Two who wait and one who does `first` with its turn, while the clock goes on from one alarm to the next.
fn served_in_time<S: Store>(store: S, first: fn(Acquire<S>, &AtomicUsize) -> u64) {
    let (api, clock) = api(Limit::token_bucket(1, Rate::per_second(1)), store);
    let done = Arc::new(AtomicUsize::new(0));
    let waiters: Vec<_> = (0..3)
        .map(|n| {
            let (acquire, done) = (api.acquire("k", 1), Arc::clone(&done));
            thread::spawn(move || {
                let admitted = if n == 0 { first(acquire, &done) } else { patient(acquire) };
                done.fetch_add(1, Ordering::Relaxed);
                admitted
            })
        })
        .collect();
    while done.load(Ordering::Relaxed) < waiters.len() {
        if let Some(at) = clock.next_wake() {
            clock.set(at);
        }
        thread::yield_now();
    }
    let admitted: u64 = waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum();
    let earned = 1 + crate::clock::Clock::now(&clock).as_micros() / 1_000_000;
    assert!((2..=3).contains(&admitted) && admitted <= earned);
    assert!(api.shared.waiting.is_idle());
}

/// Three who wait for what somebody gives back, and the clock stands still. What is there in the end.
fn given_back<S: Store>(store: S, first: fn(Acquire<S>) -> u64) {
    let (api, _) = api(Limit::fixed_window(10, Period::MAX), store);
    block_on(S::settled(api.check("k", 10))).unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|n| {
            let acquire = api.acquire("k", 1);
            thread::spawn(move || if n == 0 { first(acquire) } else { patient(acquire) })
        })
        .collect();
    for _ in 0..3 {
        block_on(S::settled(api.credit("k", 1))).unwrap();
    }
    let admitted: u64 = waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum();
    assert!(api.shared.waiting.is_idle());
    let left = block_on(S::settled(api.peek("k"))).unwrap();
    assert_eq!(left.remaining(), 3 - admitted);
}

#[test]
fn all_are_served_in_time() {
    check(1_000, || served_in_time(MemoryStore::default(), |acquire, _| patient(acquire)));
}

#[test]
fn one_who_loses_patience_holds_nobody_up() {
    check(1_000, || served_in_time(MemoryStore::default(), |acquire, _| impatient(acquire, 2)));
}

#[test]
fn one_who_is_not_polled_holds_nobody_up() {
    check(1_000, || served_in_time(MemoryStore::default(), |acquire, done| sleepy(acquire, done, 2)));
}

#[test]
fn nothing_is_lost() {
    check(1_000, || given_back(MemoryStore::default(), |acquire| impatient(acquire, 3)));
}

#[test]
fn over_a_store_that_does_io_all_are_served_in_time() {
    check(500, || served_in_time(Slow::yielding(1), |acquire, _| impatient(acquire, 4)));
    check(500, || served_in_time(Slow::yielding(1), |acquire, done| sleepy(acquire, done, 2)));
}

#[test]
fn over_a_store_that_does_io_nothing_is_lost() {
    check(500, || given_back(Slow::yielding(1), patient));
}
