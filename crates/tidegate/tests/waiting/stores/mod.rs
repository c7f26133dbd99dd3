//! Waiting on a store that does I/O: the same promises, but for how often somebody is woken.

mod slow;

use slow::Slow;
use tidegate::clock::{Clock, ManualClock};
use tidegate::store::StoreError;
use tidegate::{AcquireError, Decision, Limit, Limiter, Policy, PolicyHandle, Rate, Wait};

use super::executor::{Executor, Id};
use super::{micros, millis};

struct Place {
    api: PolicyHandle<Slow>,
    store: Slow,
    clock: ManualClock,
    tasks: Executor,
}

fn place_of(limit: Limit, store: Slow) -> Place {
    let clock = ManualClock::new(micros(0));
    let policy = Policy::single("api", limit).unwrap();
    let limiter = Limiter::builder(policy).store(store.clone()).clock(clock.clone()).build();
    let api = limiter.policy("api").unwrap();
    Place { api, store, tasks: Executor::new(clock.clone()), clock }
}

/// An emptied bucket of ten, refilled at ten a second.
fn place(store: Slow) -> Place {
    let mut place = place_of(Limit::token_bucket(10, Rate::per_second(10)), store);
    let taken = place.acquire(10);
    assert_eq!(place.tasks.admitted(taken), Some(millis(0)));
    place
}

impl Place {
    fn acquire(&mut self, cost: u32) -> Id {
        self.tasks.spawn(self.api.acquire("k", cost))
    }

    fn check(&self, cost: u32) -> Result<Decision, StoreError> {
        block_on(self.api.check("k", cost))
    }

    fn remaining(&self) -> u64 {
        self.store.remaining(self.clock.now(), b"k")
    }
}

/// Polls a future of a store whose gate is open until it is there.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

#[test]
fn a_future_that_waits_can_be_sent_on_any_store() {
    fn assert_send<T: Send + 'static>(_: &T) {}
    assert_send(&place(Slow::default()).api.acquire("k", 1));
    assert_send(&super::place(&[Limit::token_bucket(1, Rate::ZERO)]).api.acquire("k", 1));
}

#[test]
fn turns_are_as_in_memory_however_long_the_store_takes() {
    for yields in 0..4 {
        let mut place = place(Slow::yielding(yields));
        let waiters = [place.acquire(1), place.acquire(10), place.acquire(3), place.acquire(1)];
        place.tasks.go_to(millis(5_000));
        let admitted = waiters.map(|waiter| place.tasks.admitted(waiter).unwrap());
        assert_eq!(admitted, [100, 1_100, 1_400, 1_500].map(millis));
    }
}

#[test]
fn delays_and_deadlines_are_as_in_memory() {
    let limit = Limit::leaky_bucket(2, Rate::per_second(1)).unwrap();
    let mut place = place_of(limit, Slow::yielding(2));
    let within = |place: &mut Place, millis| {
        let timeout = std::time::Duration::from_millis(millis);
        place.tasks.spawn(place.api.acquire_within("k", 1, timeout))
    };
    let waiters = [0, 1_000, 2_000].map(|millis| within(&mut place, millis));
    let late = within(&mut place, 2_999);
    let needs = Wait::from_micros(3_000_000);
    assert_eq!(*place.tasks.error(late), AcquireError::TooLate { needs });
    place.tasks.go_to(millis(3_000));
    let left = waiters.map(|waiter| place.tasks.admitted(waiter).unwrap());
    assert_eq!(left, [0, 1_000, 2_000].map(millis));
}

#[test]
fn plain_checks_do_not_overtake() {
    let mut place = place(Slow::yielding(1));
    let waiter = place.acquire(10);
    place.tasks.go_to(millis(500));
    let refused = place.check(1).unwrap();
    assert_eq!(refused.retry_after(), Some(Wait::from_micros(600_000)));
    assert_eq!(place.remaining(), 5);
    place.tasks.go_to(millis(1_100));
    assert!(place.check(1).unwrap().is_allowed());
    assert_eq!(place.tasks.admitted(waiter), Some(millis(1_000)));
}

#[test]
fn credits_and_penalties_move_the_line() {
    let mut place = place(Slow::yielding(1));
    let waiters = [place.acquire(5), place.acquire(5), place.acquire(5)];
    block_on(place.api.credit("k", 6)).unwrap();
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(0)));
    block_on(place.api.penalize("k", 1)).unwrap();
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(500)));
    assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(1_000)));
}

#[test]
fn whoever_is_refused_at_its_turn_waits_on() {
    let mut place = place(Slow::default());
    let waiters = [place.acquire(5), place.acquire(5)];
    place.tasks.go_to(millis(400));
    assert!(place.store.charge(millis(400), b"k", 3).is_allowed());
    place.tasks.go_to(millis(2_000));
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(800)));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_300)));
    // At the turn that had been forecast, and at the one that came.
    assert_eq!(place.tasks.wakes(waiters[0]), 2);
    assert_eq!(place.tasks.wakes(waiters[1]), 1);
}

#[test]
fn a_store_that_is_down_says_so_to_whose_turn_it_is() {
    let mut place = place(Slow::yielding(1));
    let waiters = [place.acquire(5), place.acquire(5)];
    place.store.fail(true);
    let other_key = place.tasks.spawn(place.api.acquire("other", 1));
    assert!(matches!(place.tasks.error(other_key), AcquireError::Store(_)));
    assert!(place.check(0).is_err());
    place.tasks.go_to(millis(500));
    assert!(matches!(place.tasks.error(waiters[0]), AcquireError::Store(_)));
    assert!(place.tasks.is_waiting(waiters[1]));
    place.store.fail(false);
    place.tasks.go_to(millis(1_000));
    // Nobody was told that the five of the first are there, before its own turn.
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_000)));
}

#[test]
fn a_line_that_cannot_be_looked_at_is_told_so() {
    let mut place = place(Slow::yielding(1));
    place.store.shut();
    let waiters = [place.acquire(5), place.acquire(5)];
    place.store.fail(true);
    place.store.open();
    place.tasks.run();
    for waiter in waiters {
        assert!(matches!(place.tasks.error(waiter), AcquireError::Store(_)));
    }
    place.store.fail(false);
    let waiter = place.acquire(5);
    place.tasks.go_to(millis(500));
    assert_eq!(place.tasks.admitted(waiter), Some(millis(500)));
}

#[test]
fn an_answer_wakes_whoever_can_go_on_with_it() {
    let mut place = place(Slow::default());
    let waiters = [place.acquire(5), place.acquire(5)];
    place.store.shut();
    place.tasks.go_to(millis(500));
    assert!(place.tasks.is_waiting(waiters[0]));
    assert_eq!(place.remaining(), 0, "it is charged, and nobody knows");
    place.clock.set(millis(700));
    place.tasks.run();
    assert_eq!(place.store.held_up(), 1);
    place.store.open();
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiters[0]), Some(millis(700)));
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_000)));
}

#[test]
fn others_go_on_with_the_question_of_one_who_is_not_polled() {
    let mut place = place(Slow::default());
    let waiters = [place.acquire(5), place.acquire(5)];
    place.store.shut();
    place.tasks.go_to(millis(500));
    place.tasks.freeze(waiters[0]);
    place.store.open();
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_000)));
    place.tasks.thaw(waiters[0]);
    assert!(place.tasks.admitted(waiters[0]).is_some());
}

#[test]
fn others_go_on_with_the_question_of_one_who_is_gone_and_what_it_got_is_given_back() {
    for is_opened_first in [true, false] {
        let mut place = place(Slow::default());
        let waiters = [place.acquire(5), place.acquire(5), place.acquire(10)];
        place.store.shut();
        place.tasks.go_to(millis(500));
        if is_opened_first {
            // It is woken to go on, and gone before it does.
            place.tasks.freeze(waiters[0]);
            place.store.open();
            place.tasks.run();
            place.tasks.cancel(waiters[0]);
        } else {
            place.tasks.cancel(waiters[0]);
            place.store.open();
            place.tasks.run();
        }
        assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(500)), "{is_opened_first}");
        place.tasks.go_to(millis(1_500));
        assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(1_500)));
    }
}

#[test]
fn what_was_granted_to_one_who_is_gone_is_given_back_by_those_who_wait() {
    let mut place = place(Slow::yielding(1));
    let waiters = [place.acquire(5), place.acquire(5), place.acquire(5)];
    place.tasks.freeze(waiters[0]);
    place.clock.set(millis(1_000));
    place.tasks.run();
    assert_eq!(place.tasks.admitted(waiters[1]), Some(millis(1_000)));
    place.tasks.cancel(waiters[0]);
    assert_eq!(place.tasks.admitted(waiters[2]), Some(millis(1_000)));
    assert_eq!(place.remaining(), 0);
}

#[test]
fn when_all_are_gone_no_question_is_left() {
    let mut place = place(Slow::default());
    place.store.shut();
    let waiter = place.acquire(5);
    assert_eq!(place.store.held_up(), 1);
    place.tasks.cancel(waiter);
    assert_eq!(place.store.held_up(), 0);
    place.store.open();
    assert_eq!(place.clock.next_wake(), None);
    let waiter = place.acquire(5);
    place.tasks.go_to(millis(500));
    assert_eq!(place.tasks.admitted(waiter), Some(millis(500)));
}

#[test]
fn a_batch_is_answered_in_order_and_overtakes_nobody() {
    let mut place = place(Slow::yielding(1));
    let waiter = place.acquire(10);
    let keys = ["other", "k", "other", "third"];
    let decided: Result<Vec<Decision>, _> = block_on(place.api.check_batch(&keys, 6)).into_iter().collect();
    let decided = decided.unwrap();
    assert_eq!(decided.iter().map(Decision::is_allowed).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(decided[1].retry_after(), Some(Wait::from_micros(1_600_000)), "behind the waiter");
    assert_eq!(decided[2].retry_after(), Some(Wait::from_micros(200_000)));
    place.store.fail(true);
    let told = block_on(place.api.check_batch(&keys, 1));
    assert_eq!(told.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false, false]);
    let known = block_on(place.api.check_batch(&["k"; 2], 1));
    assert!(known.len() == 2 && known.iter().all(Result::is_ok), "without the store");
    place.store.fail(false);
    place.tasks.go_to(millis(1_000));
    assert_eq!(place.tasks.admitted(waiter), Some(millis(1_000)));
}
