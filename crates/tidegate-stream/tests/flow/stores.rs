//! On a store that does I/O the same comes out; one that is down gives items back.

use futures_util::{StreamExt, stream};
use tidegate::AcquireError;
use tidegate_stream::ThrottleExt;

use super::support::slow::Slow;
use super::support::*;

#[test]
fn however_long_the_store_takes_the_pace_is_the_same() {
    for yields in 0..4 {
        let mut place = place_of(&[bucket(2, 10)], |builder| builder.store(Slow::yielding(yields)));
        let log = place.log();
        for name in ["a", "b"] {
            let (mut stream, log) = (place.policy(0).throttle(stream::repeat(name), "k"), log.clone());
            place.tasks.spawn(async move {
                while let Some(item) = stream.next().await {
                    log.push(item.unwrap());
                }
            });
        }
        let (mut pace, jobs) = (place.policy(0).pace("other"), log.clone());
        place.tasks.spawn(async move {
            loop {
                pace.next().await.unwrap();
                jobs.push("job");
            }
        });
        place.tasks.go_to(500);
        let log = log.in_millis();
        let count = |name| log.iter().filter(|(_, item)| *item == name).count();
        assert_eq!(count("a") + count("b"), 2 + 5, "{log:?}");
        let turns: Vec<_> = log.iter().filter(|(at, name)| *at > 0 && *name != "job").collect();
        assert!(turns.windows(2).all(|turns| turns[0].1 != turns[1].1), "{log:?}");
        assert_eq!(count("job"), 2 + 5);
    }
}

#[test]
fn a_store_that_is_down_gives_the_item_back_and_the_stream_goes_on() {
    let store = Slow::default();
    let mut place = place_of(&[bucket(2, 10)], |builder| builder.store(store.clone()));
    let (log, mut stream) = (place.log(), place.policy(0).throttle(stream::iter(0..3), "k"));
    let seen = log.clone();
    store.fail(true);
    place.tasks.spawn(async move {
        while let Some(item) = stream.next().await {
            seen.push(item);
            store.fail(false);
        }
    });
    let events = log.events();
    let error = events[0].as_ref().unwrap_err();
    assert_eq!(error.item, 0);
    assert!(matches!(&error.reason, AcquireError::Store(error) if error.store == "slow"));
    assert_eq!(events[1..], [Ok(1), Ok(2)]);
}
