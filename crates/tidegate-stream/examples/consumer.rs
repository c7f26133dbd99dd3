//! A consumer that must not overload what follows: messages pour into a queue, and are handled four at once, then five
//! a second, whatever their number.
//!
//! ```text
//! cargo run -p tidegate-stream --example consumer
//! ```

use std::error::Error;

use futures_util::{Stream, StreamExt, stream};
use tidegate::{Limit, Limiter, Policy, PolicyHandle, Rate};
use tidegate_stream::ThrottleExt;
use tokio::sync::mpsc;

/// Four at once, then five a second.
pub fn policy() -> Result<Policy, Box<dyn Error>> {
    Ok(Policy::single("handling", Limit::token_bucket(4, Rate::per_second(5)))?)
}

/// Handles each message of a queue as soon as the policy has it.
pub async fn consume(
    handling: &PolicyHandle,
    queue: impl Stream<Item = String> + Unpin,
    mut handle: impl FnMut(&str),
) -> Result<(), Box<dyn Error>> {
    let mut queue = handling.throttle(queue, "database");
    while let Some(message) = queue.next().await {
        handle(&message?);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Limiter::new(policy()?);
    let (sender, receiver) = mpsc::channel(1); // any queue's client: here one with room for one message
    tokio::spawn(async move {
        for number in 1..=12 {
            if sender.send(format!("message {number}")).await.is_err() {
                return;
            }
            println!("        queued {number}");
        }
    });
    let queue = Box::pin(stream::unfold(receiver, |mut receiver| async {
        let message = receiver.recv().await?;
        Some((message, receiver))
    }));
    consume(&limiter.policy("handling")?, queue, |message| println!("handled {message}")).await
}
