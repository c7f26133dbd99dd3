//! Streams at the pace of a policy.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::stream::{self, FusedStream};
use futures_util::{FutureExt, Stream, StreamExt};
use proptest::prelude::*;
use tidegate::clock::Clock;
use tidegate::{AcquireError, Limit, Rate, Wait};
use tidegate_stream::ThrottleExt;

use super::support::*;

fn poll<St: Stream + Unpin>(stream: &mut St) -> Poll<Option<St::Item>> {
    stream.next().poll_unpin(&mut Context::from_waker(Waker::noop()))
}

/// What a stream hands on, and when, until it ends.
fn run<St>(place: &mut Place, stream: St) -> Log<St::Item>
where
    St: Stream<Item: Clone + Send> + Send + 'static,
{
    let log = place.log();
    let seen = log.clone();
    place.tasks.spawn(async move {
        let mut stream = pin!(stream);
        while let Some(item) = stream.next().await {
            seen.push(item);
        }
    });
    log
}

#[test]
fn items_come_as_fast_as_they_are_admitted_and_in_order() {
    let mut place = place(&[bucket(3, 2)]);
    let stream = place.policy(0).throttle(stream::iter(0..7), "k").map(Result::unwrap);
    let log = run(&mut place, stream);
    place.tasks.go_to(10_000);
    assert_eq!(log.in_millis(), [(0, 0), (0, 1), (0, 2), (500, 3), (1_000, 4), (1_500, 5), (2_000, 6)]);
}

#[test]
fn a_leaky_bucket_spaces_them_evenly() {
    let mut place = place(&[Limit::leaky_bucket(3, Rate::per_second(1)).unwrap()]);
    let stream = place.policy(0).throttle(stream::iter(0..5), "k").map(Result::unwrap);
    let log = run(&mut place, stream);
    place.tasks.go_to(10_000);
    assert_eq!(log.in_millis(), [(0, 0), (1_000, 1), (2_000, 2), (3_000, 3), (4_000, 4)]);
}

#[test]
fn items_cost_what_is_said() {
    let mut place = place(&[bucket(10, 10)]);
    let stream = place.policy(0).throttle_by(stream::iter([6, 5, 0, 1, 10]), "k", |item| *item);
    let log = run(&mut place, stream.map(Result::unwrap));
    place.tasks.go_to(10_000);
    assert_eq!(log.in_millis(), [(0, 6), (100, 5), (100, 0), (200, 1), (1_200, 10)]);
}

#[test]
fn an_item_that_can_never_be_admitted_is_given_back_and_the_stream_goes_on() {
    let mut place = place(&[bucket(10, 10)]);
    let stream = place.policy(0).throttle_by(stream::iter([10, 11, 5]), "k", |item| *item);
    let log = run(&mut place, stream);
    place.tasks.go_to(10_000);
    let seen = log.in_millis();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0], (0, Ok(10)));
    let error = seen[1].1.as_ref().unwrap_err();
    assert_eq!((seen[1].0, error.item, &error.reason), (0, 11, &AcquireError::Never));
    assert_eq!(seen[2], (500, Ok(5)), "it was charged nothing for what it gave back");
    assert!(error.to_string().starts_with("an item was not admitted: waiting cannot help"), "{error}");
}

#[test]
fn no_more_than_one_item_is_taken_ahead() {
    let place = place(&[bucket(1, 1)]);
    let taken = Arc::new(AtomicUsize::new(0));
    let items = stream::iter(0..10).inspect({
        let taken = Arc::clone(&taken);
        move |_| {
            taken.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut stream = place.policy(0).throttle(items, "k");
    assert!(poll(&mut stream).is_ready());
    assert_eq!(taken.load(Ordering::Relaxed), 1);
    for _ in 0..5 {
        assert!(poll(&mut stream).is_pending());
        assert_eq!(taken.load(Ordering::Relaxed), 2);
    }
}

#[test]
fn nothing_is_lost_when_a_poll_is_dropped() {
    let mut place = place(&[bucket(1, 1)]);
    let mut first = place.policy(0).throttle(stream::iter(["a", "b", "c"]), "k");
    assert_eq!(poll(&mut first), Poll::Ready(Some(Ok("a"))));
    // Each `poll` drops the future of `next`. The place in line stays: another stream stands behind.
    assert!(poll(&mut first).is_pending());
    let mut second = place.policy(0).throttle(stream::iter(["x"]), "k");
    assert!(poll(&mut second).is_pending());
    place.tasks.go_to(1_000);
    assert!(poll(&mut second).is_pending());
    assert_eq!(poll(&mut first), Poll::Ready(Some(Ok("b"))));
    place.tasks.go_to(2_000);
    assert_eq!(poll(&mut second), Poll::Ready(Some(Ok("x"))));
    assert_eq!(poll(&mut second), Poll::Ready(None));
}

#[test]
fn dropped_it_gives_its_place_up_and_what_it_was_granted() {
    let mut place = place(&[bucket(2, 1)]);
    let mut gone = place.policy(0).throttle_by(stream::iter([2, 2]), "k", |item| *item);
    assert!(poll(&mut gone).is_ready() && poll(&mut gone).is_pending());
    let mut other = place.policy(0).throttle(stream::iter(["x"]), "k");
    assert!(poll(&mut other).is_pending());
    let (mut rest, held) = gone.into_inner();
    assert_eq!((held, poll(&mut rest)), (Some(2), Poll::Ready(None)));
    place.tasks.go_to(1_000);
    assert_eq!(poll(&mut other), Poll::Ready(Some(Ok("x"))), "nobody is ahead any more");

    let mut granted = place.policy(0).throttle(stream::iter(["y"]), "k");
    assert!(poll(&mut granted).is_pending());
    place.tasks.go_to(2_000);
    assert!(!place.policy(0).check("k", 1).is_allowed(), "its turn has come, though nobody has looked");
    drop(granted);
    assert!(place.policy(0).check("k", 1).is_allowed());
}

#[test]
fn a_stream_that_has_nothing_is_charged_nothing_and_holds_nobody_up() {
    let mut place = place(&[bucket(5, 1)]);
    let (clock, mut number) = (place.clock.clone(), 0);
    // An item a minute.
    let slow = stream::repeat_with(move || {
        number += 1;
        clock.sleep_until(millis(number * 60_000))
    });
    let slow = place.policy(0).throttle(slow.then(|sleep| sleep).take(3), "k");
    let log = run(&mut place, slow.map(|item| item.is_ok()));
    assert_eq!(place.remaining(0, "k"), 5);
    assert!(place.policy(0).check("k", 5).is_allowed());
    place.tasks.go_to(1_000_000);
    assert_eq!(log.in_millis(), [(60_000, true), (120_000, true), (180_000, true)]);
}

#[test]
fn after_idling_a_burst_is_what_the_bucket_holds() {
    let mut place = place(&[bucket(4, 1)]);
    let mut stream = place.policy(0).throttle(stream::repeat(()), "k");
    for hour in 1..4 {
        let burst = std::iter::from_fn(|| poll(&mut stream).is_ready().then_some(())).count();
        assert_eq!(burst, 4);
        // What is held meanwhile is admitted a second later, and then an hour passes.
        place.tasks.go_to(hour * 3_600_000 - 3_599_000);
        assert!(poll(&mut stream).is_ready());
        place.tasks.go_to(hour * 3_600_000);
    }
}

#[test]
fn streams_of_one_key_take_turns() {
    let mut place = place(&[bucket(1, 10)]);
    let log = place.log();
    for name in ["a", "b", "c"] {
        let (mut stream, log) = (place.policy(0).throttle(stream::repeat(name), "k"), log.clone());
        place.tasks.spawn(async move {
            while let Some(item) = stream.next().await {
                log.push(item.unwrap());
            }
        });
    }
    place.tasks.go_to(1_000);
    assert_eq!(log.events(), ["a", "a", "b", "c", "a", "b", "c", "a", "b", "c", "a"]);
}

#[test]
fn a_full_line_gives_the_item_back() {
    let place = place_of(&[bucket(1, 1)], |builder| builder.max_waiters_per_key(1));
    let of = |name| place.policy(0).throttle(stream::iter([name, name]), "k");
    let (mut first, mut second) = (of("a"), of("b"));
    assert!(poll(&mut first).is_ready() && poll(&mut first).is_pending());
    let Poll::Ready(Some(Err(error))) = poll(&mut second) else { panic!("there was room") };
    assert_eq!((error.item, error.reason), ("b", AcquireError::QueueFull));
}

#[test]
fn it_tells_how_many_items_are_to_come() {
    let mut place = place(&[bucket(1, 1)]);
    let mut stream = place.policy(0).throttle(stream::iter(0..3).fuse(), "k");
    assert_eq!(stream.size_hint(), (3, Some(3)));
    assert!(poll(&mut stream).is_ready() && poll(&mut stream).is_pending());
    assert_eq!(stream.size_hint(), (2, Some(2)), "the one that is held counts");
    place.tasks.go_to(1_000);
    assert!(poll(&mut stream).is_ready() && poll(&mut stream).is_pending());
    assert_eq!((stream.size_hint(), stream.is_terminated()), ((1, Some(1)), false));
    place.tasks.go_to(2_000);
    assert!(poll(&mut stream).is_ready());
    assert_eq!((stream.size_hint(), stream.is_terminated()), ((0, Some(0)), false));
    assert_eq!(poll(&mut stream), Poll::Ready(None));
    assert!(stream.is_terminated());
    let endless = place.policy(0).throttle(stream::repeat(()), "k");
    assert_eq!(endless.size_hint(), (usize::MAX, None));
}

#[test]
fn it_can_be_sent_and_shown() {
    fn assert_send<T: Send + 'static>(_: &T) {}
    let place = place(&[bucket(1, 1)]);
    let stream = place.policy(0).throttle(stream::empty::<()>(), "k");
    assert_send(&stream);
    assert!(format!("{stream:?}").contains("holds_an_item: false"), "{stream:?}");
}

/// Polled at odd times, by futures that are dropped, it hands on every item once, in order, and charges each once.
fn check_dropped_polls(costs: Vec<u32>, pauses: Vec<u64>) {
    let mut place = place(&[bucket(20, 100)]);
    let expected: Vec<_> = costs.iter().copied().enumerate().collect();
    let items = stream::iter(expected.clone());
    let mut stream = place.policy(0).throttle_by(items, "k", |(_, cost)| *cost);
    let (mut seen, mut charged) = (Vec::new(), 0);
    let mut pauses = pauses.into_iter().cycle();
    loop {
        match Pin::new(&mut stream).poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok((index, cost)))) => {
                charged += u64::from(cost);
                seen.push((index, cost));
            }
            Poll::Ready(Some(Err(error))) => seen.push(error.item),
            Poll::Ready(None) => break,
            Poll::Pending => place.tasks.go_to(place.now() + pauses.next().unwrap()),
        }
        let allowed = 20 + place.now() * 100 / 1_000;
        assert!(charged <= allowed, "{charged} of {allowed}");
    }
    assert_eq!(seen, expected);
    let full_again = place.policy(0).peek("k").reset_after().unwrap();
    assert!(full_again <= Wait::from_micros(200_000), "nothing is charged twice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_item_comes_once(
        costs in prop::collection::vec(0u32..25, 0..40),
        pauses in prop::collection::vec(1u64..400, 1..10),
    ) {
        check_dropped_polls(costs, pauses);
    }
}
