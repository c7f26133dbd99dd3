//! Waiting on several threads at once, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::clock::{Clock, ManualClock};
use tidegate::{Limit, Limiter, Period, Policy, PolicyHandle, Rate, Wait};
use tokio::task::{JoinHandle, yield_now};

use super::micros;

fn api(limit: Limit) -> (PolicyHandle, ManualClock) {
    let clock = ManualClock::new(micros(0));
    let policy = Policy::single("api", limit).unwrap();
    let limiter = Limiter::builder(policy).clock(clock.clone()).build();
    (limiter.policy("api").unwrap(), clock)
}

/// Waits, and loses patience after a few turns of the executor; what it was admitted.
async fn impatient(api: PolicyHandle, cost: u32, patience: Option<usize>) -> u64 {
    let mut acquire = api.acquire("k", cost);
    let Some(patience) = patience else { return acquire.await.unwrap().charged() };
    let lose_patience = async {
        for _ in 0..patience {
            yield_now().await;
        }
    };
    tokio::select! {
        decision = &mut acquire => decision.unwrap().charged(),
        () = lose_patience => 0,
    }
}

async fn all(tasks: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_unit_is_somebodys_or_still_there() {
    let limit = 10_000;
    let (api, _) = api(Limit::fixed_window(limit, Period::MAX));
    assert!(api.check("k", limit).is_allowed());
    let tasks: Vec<_> = (0..600u32)
        .map(|n| tokio::spawn(impatient(api.clone(), 1 + n % 3, (n % 4 > 0).then_some(n as usize % 40))))
        .collect();
    let credited = Arc::new(AtomicU64::new(0));
    let givers: Vec<_> = (0..3)
        .map(|_| {
            let (api, credited) = (api.clone(), Arc::clone(&credited));
            tokio::spawn(async move {
                for _ in 0..150 {
                    api.credit("k", 2);
                    credited.fetch_add(2, Ordering::Relaxed);
                    yield_now().await;
                }
                0
            })
        })
        .collect();
    all(givers).await;
    // Enough for all who are left.
    api.credit("k", 2_000);
    let admitted = all(tasks).await;
    let used = u64::from(limit) - api.peek("k").remaining();
    assert_eq!(used, u64::from(limit) + admitted - credited.load(Ordering::Relaxed) - 2_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_are_served_and_no_more_than_there_is() {
    let (capacity, per_second) = (5, 100);
    let (api, clock) = api(Limit::token_bucket(capacity, Rate::per_second(per_second)));
    let began = clock.now();
    let mut tasks: Vec<_> = (0..400u32)
        .map(|n| tokio::spawn(impatient(api.clone(), 1 + n % 5, (n % 3 == 0).then_some(n as usize % 50))))
        .collect();
    tasks.push(tokio::spawn({
        let api = api.clone();
        async move {
            let mut admitted = 0;
            for _ in 0..500 {
                admitted += api.check("k", 1).charged();
                yield_now().await;
            }
            admitted
        }
    }));
    while tasks.iter().any(|task| !task.is_finished()) {
        if let Some(at) = clock.next_wake() {
            clock.set(at);
        }
        yield_now().await;
    }
    let admitted = all(tasks).await;
    let earned = clock.now().micros_since(began) * u64::from(per_second) / 1_000_000;
    assert!(admitted <= u64::from(capacity) + earned, "{admitted} of {capacity} and {earned}");
    // Whoever was patient got it: two in three.
    assert!(admitted >= (0..400u64).filter(|n| n % 3 > 0).map(|n| 1 + n % 5).sum());
    // Nobody is left in line.
    clock.set(clock.now().saturating_add(Wait::from_micros(1_000_000)));
    assert_eq!(api.check("k", capacity).charged(), u64::from(capacity));
}

/// Threads that block rather than run tasks, and are woken by each other.
#[test]
fn it_needs_no_runtime() {
    let (api, clock) = api(Limit::token_bucket(1, Rate::per_second(1)));
    assert!(api.check("k", 1).is_allowed());
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..8)
            .map(|_| {
                let api = &api;
                scope.spawn(move || block_on(api.acquire("k", 1)).unwrap().charged())
            })
            .collect();
        while waiters.iter().any(|waiter| !waiter.is_finished()) {
            if let Some(at) = clock.next_wake() {
                clock.set(at);
            }
            std::thread::yield_now();
        }
        assert_eq!(waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum::<u64>(), 8);
    });
    assert!(clock.now() >= micros(8_000_000));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
