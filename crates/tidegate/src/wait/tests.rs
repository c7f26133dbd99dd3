#![allow(clippy::unwrap_used)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use tidegate_core::{Limit, Rate};

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::{Limiter, Policy, PolicyHandle};

fn emptied(clock: impl Clock) -> PolicyHandle {
    let policy = Policy::single("api", Limit::token_bucket(10, Rate::per_second(10))).unwrap();
    let api = Limiter::builder(policy).clock(clock).build().policy("api").unwrap();
    assert!(api.check("k", 10).is_allowed());
    api
}

fn poll(acquire: &mut Acquire, waker: &Waker) -> Poll<u64> {
    Pin::new(acquire).poll(&mut Context::from_waker(waker)).map(|it| it.unwrap().charged())
}

#[derive(Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counted {
    fn waker() -> (Arc<Self>, Waker) {
        let counted = Arc::new(Counted::default());
        (Arc::clone(&counted), Waker::from(counted))
    }

    fn wakes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_key_nobody_waits_for_has_no_queue() {
    let clock = ManualClock::default();
    let api = emptied(clock.clone());
    let waiting = &api.shared.waiting;
    let queues = || waiting.shards.iter().map(|shard| shard.lock().len()).sum::<usize>();
    assert!(waiting.is_idle());
    let mut acquires: Vec<_> = (0..100).map(|n| api.acquire(format!("k{n}"), 10)).collect();
    for acquire in &mut acquires {
        // There is a bucketful for each.
        assert_eq!(poll(acquire, Waker::noop()), Poll::Ready(10));
    }
    assert_eq!(queues(), 0);
    let mut acquires: Vec<_> = (0..100).map(|n| api.acquire(format!("k{n}"), 10)).collect();
    acquires.iter_mut().for_each(|acquire| assert!(poll(acquire, Waker::noop()).is_pending()));
    assert_eq!(queues(), 100);
    assert!(!waiting.is_idle());
    // Half go away, the others are served.
    acquires.truncate(50);
    assert_eq!(queues(), 50);
    clock.advance(Duration::from_secs(1));
    acquires.iter_mut().for_each(|acquire| assert_eq!(poll(acquire, Waker::noop()), Poll::Ready(10)));
    assert_eq!(queues(), 0);
    assert!(waiting.is_idle());
    // Whoever is turned away leaves nothing behind, alone or not.
    let millisecond = Duration::from_millis(1);
    assert!(matches!(poll_error(api.acquire_within("k0", 10, millisecond)), AcquireError::TooLate { .. }));
    assert!(matches!(poll_error(api.acquire("k0", 11)), AcquireError::Never));
    assert!(waiting.is_idle());
}

fn poll_error(mut acquire: Acquire) -> AcquireError {
    match Pin::new(&mut acquire).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_policies_wait_for_one_key_apart() {
    let limit = || Limit::token_bucket(1, Rate::per_second(1));
    let policies = ["one", "two"].map(|name| Policy::single(name, limit()).unwrap());
    let clock = ManualClock::default();
    let limiter = Limiter::builder(crate::PolicySet::new(policies).unwrap()).clock(clock.clone()).build();
    let handles = ["one", "two"].map(|name| limiter.policy(name).unwrap());
    let mut acquires: Vec<_> =
        handles.iter().flat_map(|api| [api.acquire("k", 1), api.acquire("k", 1)]).collect();
    let polled = acquires.iter_mut().map(|acquire| poll(acquire, Waker::noop()).is_ready());
    assert_eq!(polled.collect::<Vec<_>>(), [true, false, true, false]);
    acquires.truncate(2);
    assert!(!handles[0].check("k", 1).is_allowed());
    clock.advance(Duration::from_secs(1));
    assert!(handles[1].check("k", 1).is_allowed());
    assert_eq!(poll(&mut acquires[1], Waker::noop()), Poll::Ready(1));
    assert!(limiter.shared.waiting.is_idle());
}

#[test]
fn a_waiter_may_move_to_another_task() {
    let clock = ManualClock::default();
    let api = emptied(clock.clone());
    let mut acquire = api.acquire("k", 5);
    let ((before, before_waker), (after, after_waker)) = (Counted::waker(), Counted::waker());
    assert!(poll(&mut acquire, &before_waker).is_pending());
    assert!(poll(&mut acquire, &after_waker).is_pending());
    // The line moves, and so does the alarm: to the task that asked last.
    api.credit("k", 1);
    clock.advance(Duration::from_millis(400));
    assert_eq!((before.wakes(), after.wakes()), (0, 1));
    assert_eq!(poll(&mut acquire, &after_waker), Poll::Ready(5));
}

#[test]
#[should_panic(expected = "after it had ended")]
fn polling_on_after_the_end_is_a_mistake() {
    let mut acquire = emptied(ManualClock::default()).acquire("other", 1);
    assert!(poll(&mut acquire, Waker::noop()).is_ready());
    let _ = poll(&mut acquire, Waker::noop());
}

/// As the system's clock on tokio, a clock whose sleeps belong to a runtime: they can be polled in it only,
/// and not when it is gone.
#[cfg(feature = "tokio")]
mod at_home {
    use std::sync::Mutex;

    use tokio::runtime::{Builder, Handle, Runtime};

    use super::*;
    use crate::clock::Sleep;

    #[derive(Clone, Default)]
    struct Homely(ManualClock, Arc<Mutex<Vec<tokio::runtime::Id>>>);

    impl Clock for Homely {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn sleep_until(&self, at: Timestamp) -> Sleep {
            let (clock, homes) = (self.0.clone(), Arc::clone(&self.1));
            Box::pin(async move {
                // Panics outside, and, as any timer, when its runtime was shut down.
                homes.lock().unwrap().push(Handle::current().id());
                tokio::time::sleep(Duration::from_secs(86_400)).await_not_over().await;
                clock.sleep_until(at).await;
            })
        }
    }

    /// Polls a timer once, which registers it with its runtime.
    trait NotOver: Future<Output = ()> + Sized {
        async fn await_not_over(self) {
            let mut timer = std::pin::pin!(self);
            std::future::poll_fn(|context| {
                assert!(timer.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
        }
    }

    impl NotOver for tokio::time::Sleep {}

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn whoever_sets_an_alarm_sets_it_where_its_waiter_lives() {
        let clock = Homely::default();
        let (home, other) = (runtime(), runtime());
        let api = emptied(clock.clone());
        let mut acquire = api.acquire("k", 5);
        let (counted, waker) = Counted::waker();
        home.block_on(async { assert!(poll(&mut acquire, &waker).is_pending()) });
        // From no runtime, from another thread, and from another runtime.
        api.credit("k", 1);
        std::thread::scope(|scope| scope.spawn(|| api.penalize("k", 2)).join()).unwrap();
        other.block_on(async { api.credit("k", 1) });
        drop(other);
        assert_eq!(*clock.1.lock().unwrap(), vec![home.handle().id(); 4]);
        assert_eq!(counted.wakes(), 0);
        clock.0.advance(Duration::from_millis(500));
        assert_eq!(counted.wakes(), 1);
        home.block_on(async { assert_eq!(poll(&mut acquire, &waker), Poll::Ready(5)) });
    }

    #[test]
    fn a_waiter_whose_runtime_is_gone_is_told_and_does_no_harm() {
        let clock = Homely::default();
        let home = runtime();
        let api = emptied(clock.clone());
        let mut stranded = api.acquire("k", 5);
        let (counted, waker) = Counted::waker();
        home.block_on(async { assert!(poll(&mut stranded, &waker).is_pending()) });
        drop(home);
        api.credit("k", 1);
        assert_eq!(counted.wakes(), 1, "it has to see for itself");
        let home = runtime();
        let mut behind = api.acquire("k", 5);
        home.block_on(async { assert!(poll(&mut behind, Waker::noop()).is_pending()) });
        clock.0.advance(Duration::from_secs(1));
        home.block_on(async { assert_eq!(poll(&mut behind, Waker::noop()), Poll::Ready(5)) });
        drop(stranded);
        assert_eq!(api.peek("k").remaining(), 5);
    }

    #[test]
    fn a_task_with_no_budget_left_moves_the_line_all_the_same() {
        // Tokio's timers then wake whoever polls them, to try again when others have had their turn.
        use tokio::task::coop::{consume_budget, has_budget_remaining};
        let api = emptied(Homely::default());
        runtime().block_on(async {
            let counted: Vec<_> = (0..3).map(|_| Counted::waker()).collect();
            let mut acquires: Vec<_> = counted.iter().map(|_| api.acquire("k", 1)).collect();
            for (acquire, (_, waker)) in acquires.iter_mut().zip(&counted) {
                assert!(poll(acquire, waker).is_pending());
            }
            while has_budget_remaining() {
                let _ = std::pin::pin!(consume_budget()).poll(&mut Context::from_waker(Waker::noop()));
            }
            drop(acquires.remove(0));
            tokio::task::yield_now().await;
            assert_eq!(counted.iter().map(|(counted, _)| counted.wakes()).collect::<Vec<_>>(), [0, 0, 0]);
        });
    }
}
