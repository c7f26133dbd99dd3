//! A link to one server, and everything that can happen on the way.
#![allow(clippy::unwrap_used)]

mod cluster;
mod sentinel;
mod standalone;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;
use std::time::Duration;

use tidegate_testkit_servers::Reply;

use super::*;
use crate::script::Script;

/// Long enough for an answer that comes, on a machine that has other things to do too.
pub(super) const LONG: Duration = Duration::from_secs(20);

/// Counts how often it ran. It answers with the count, and takes it up to ten calls' arguments are told apart by.
pub(super) static COUNT: Script =
    Script { name: "count", source: "return redis.call('INCRBY', KEYS[1], ARGV[1])" };

pub(super) fn count(key: &str) -> Call {
    call(&COUNT, &[key.as_bytes()], &[b"1"])
}

pub(super) fn call(script: &'static Script, keys: &[&[u8]], args: &[&[u8]]) -> Call {
    let owned = |list: &[&[u8]]| list.iter().map(|bytes| bytes.to_vec()).collect();
    Call { script, keys: owned(keys), args: owned(args) }
}

pub(super) async fn open(url: &str) -> Link {
    Link::open(&url.parse().unwrap(), &Options::default()).await.unwrap()
}

/// Waits until the link is up again.
pub(super) async fn recovered(link: &Link) {
    for _ in 0..2000 {
        if link.ping(LONG).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the link does not recover: {:?}", link.ping(LONG).await);
}

pub(super) fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

/// Does something many times at once, each a task of its own.
pub(super) async fn at_once<T: Send + 'static, F>(
    times: usize,
    link: &Arc<Link>,
    act: impl Fn(Arc<Link>) -> F,
) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..times).map(|_| tokio::spawn(act(Arc::clone(link)))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}
