//! The examples do what they say.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "its main is not run")]
#[path = "../examples/consumer.rs"]
mod consumer;
#[allow(dead_code, reason = "its main is not run")]
#[path = "../examples/jobs.rs"]
mod jobs;
#[allow(dead_code, reason = "its main is not run")]
#[path = "../examples/relay.rs"]
mod relay;
mod support;

use futures_util::stream;
use support::*;
use tidegate::{Limiter, Policy, PolicyHandle};
use tidegate_stream::ThrottleExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The place of an example, with its policy's handle.
fn place_with(policy: Policy) -> (Place, PolicyHandle) {
    let place = place(&[]);
    let name = policy.name().to_owned();
    let limiter = Limiter::builder(policy).clock(place.clock.clone()).build();
    (place, limiter.policy(&name).unwrap())
}

#[test]
fn the_consumer_handles_four_at_once_and_then_five_a_second() {
    let (mut place, handling) = place_with(consumer::policy().unwrap());
    let log = place.log();
    let handled = log.clone();
    place.tasks.spawn(async move {
        let queue = stream::iter((0..7).map(|number| number.to_string()));
        consumer::consume(&handling, queue, |message| handled.push(message.to_owned())).await.unwrap();
    });
    place.tasks.go_to(1_000);
    let at: Vec<_> = log.in_millis().into_iter().map(|(at, _)| at).collect();
    assert_eq!(at, [0, 0, 0, 0, 200, 400, 600]);
}

#[test]
fn the_loops_do_a_job_each_quarter_of_a_second_together() {
    let (mut place, handle) = place_with(jobs::policy().unwrap());
    let log = place.log();
    for name in ["one", "two"] {
        let (pace, log) = (handle.pace("disk"), log.clone());
        place.tasks.spawn(async move { jobs::work(pace, 3, |_| log.push(name)).await.unwrap() });
    }
    place.tasks.go_to(2_000);
    let expected = [(0, "one"), (250, "one"), (500, "two"), (750, "one"), (1_000, "two"), (1_250, "two")];
    assert_eq!(log.in_millis(), expected);
}

#[tokio::test]
async fn the_relay_hands_on_what_is_sent_in_both_directions() {
    let listen = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (outside, inside) = (listen().await, listen().await);
    let (at, to) = (outside.local_addr().unwrap(), inside.local_addr().unwrap());
    let relayed = tokio::spawn(async move {
        let (client, from) = outside.accept().await.unwrap();
        let server = TcpStream::connect(to).await.unwrap();
        relay::Limits::new().unwrap().relay(client, from, server).await.unwrap()
    });
    let server = tokio::spawn(async move {
        let (mut socket, _) = inside.accept().await.unwrap();
        let mut question = Vec::new();
        socket.read_to_end(&mut question).await.unwrap();
        let answer: Vec<u8> = question.iter().rev().copied().collect();
        socket.write_all(&answer).await.unwrap();
    });
    // No more than goes at once, so that this takes no time.
    let question: Vec<u8> = (0..50_000).map(|index| index as u8).collect();
    let mut client = TcpStream::connect(at).await.unwrap();
    client.write_all(&question).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    answer.reverse();
    assert_eq!(answer, question);
    server.await.unwrap();
    assert_eq!(relayed.await.unwrap(), (50_000, 50_000));
}
