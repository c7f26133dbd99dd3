//! Stores that answer by futures, and stores that fail.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use support::*;
use tidegate::store::{Adjustment, Check, Grouping, Snapshot, Store, StoreError, StoreErrorKind, amid};
use tidegate::{
    ActivePolicy, Decision, Limiter, MemoryStore, Penalty, PlanId, Policy, PolicyHandle, Timestamp,
};
use tidegate_tower::{GrpcDenial, MissingKey, OnStoreError, RateLimitLayer, Reason, Report};
use tower::{Layer, Service};

/// A store somewhere else: it answers when it is let, and not at all while it is down.
#[derive(Clone, Default)]
struct Remote(Arc<Inside>);

#[derive(Default)]
struct Inside {
    memory: MemoryStore,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    down: bool,
    held: bool,
    waiting: VecDeque<Waker>,
}

type Reply<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;
type Replies = Pin<Box<dyn Future<Output = Vec<Result<Decision, StoreError>>> + Send>>;

impl Remote {
    fn set(&self, change: impl FnOnce(&mut Line)) {
        let mut line = self.0.line.lock().unwrap();
        change(&mut line);
        let waiting = std::mem::take(&mut line.waiting);
        drop(line);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn reply<T: Send + 'static>(&self, value: T) -> Reply<T> {
        let inside = Arc::clone(&self.0);
        let mut value = Some(value);
        Box::pin(std::future::poll_fn(move |cx: &mut Context<'_>| {
            let mut line = inside.line.lock().unwrap();
            if line.held {
                line.waiting.push_back(cx.waker().clone());
                return Poll::Pending;
            }
            match line.down {
                true => Poll::Ready(Err(StoreError::new(StoreErrorKind::Outage, "remote", "it is down"))),
                false => Poll::Ready(Ok(value.take().unwrap())),
            }
        }))
    }
}

impl Store for Remote {
    type Answer<T: Send + 'static> = Reply<T>;
    type Answers = Replies;

    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        self.0.memory.sweep(now, policies)
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Reply<Decision> {
        self.reply(self.0.memory.check_one(now, check))
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> Replies {
        let count = checks.len();
        let reply = self.reply(self.0.memory.check_each(now, checks));
        Box::pin(async move {
            match reply.await {
                Ok(decisions) => decisions.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); count],
            }
        })
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], how: Grouping) -> Reply<Vec<Decision>> {
        self.reply(self.0.memory.check_group(now, checks, how))
    }

    fn adjust(&self, at: Timestamp, of: &Arc<ActivePolicy>, key: &[u8], by: Adjustment) -> Reply<Penalty> {
        self.reply(self.0.memory.adjust(at, of, key, by))
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Reply<Snapshot> {
        self.reply(self.0.memory.snapshot(now, policy, key))
    }

    fn ready<T: Send + 'static>(value: T) -> Reply<T> {
        Box::pin(std::future::ready(Ok(value)))
    }

    fn map<T, U>(answer: Reply<T>, go_on: impl FnOnce(T) -> U + Send + 'static) -> Reply<U>
    where
        T: Send + 'static,
        U: Send + 'static,
    {
        Box::pin(async { answer.await.map(go_on) })
    }

    fn settled<T: Send + 'static>(answer: Reply<T>) -> impl Future<Output = Result<T, StoreError>> + Send {
        answer
    }

    fn each_ready(decisions: Vec<Decision>) -> Replies {
        Box::pin(std::future::ready(decisions.into_iter().map(Ok).collect()))
    }

    fn amid(known: Vec<Option<Decision>>, answers: Replies) -> Replies {
        Box::pin(async move { amid(known, answers.await, Ok) })
    }

    fn each_settled(answers: Replies) -> impl Future<Output = Vec<Result<Decision, StoreError>>> + Send {
        answers
    }
}

fn remote() -> (Remote, PolicyHandle<Remote>, Inner) {
    let (clock, store) = (clock(), Remote::default());
    let policy = Policy::single("api", bucket(2)).unwrap();
    let limiter = Limiter::builder(policy).store(store.clone()).clock(clock.clone()).build();
    (store, limiter.policy("api").unwrap(), Inner::new(&clock))
}

#[tokio::test]
async fn a_store_that_answers_later_decides_the_same() {
    let (store, handle, inner) = remote();
    let layer = RateLimitLayer::new(handle, path, MissingKey::Deny);
    for status in [200, 200, 429] {
        assert_eq!(send(&layer, &inner, get("/a")).await.status, status);
    }
    store.set(|line| line.held = true);
    let mut call = pin!(layer.layer(inner.clone()).call(get("/b")));
    assert!(poll(call.as_mut()).is_pending());
    assert_eq!(inner.seen().len(), 2, "the service is not called before the answer is there");
    store.set(|line| line.held = false);
    assert_eq!(read(call.await.unwrap()).await.header("x-ratelimit-remaining"), "1");
}

#[tokio::test]
async fn a_failing_store_denies_or_lets_pass_as_chosen() {
    let (store, handle, inner) = remote();
    let told = Arc::new(Mutex::new(Vec::new()));
    let layer = RateLimitLayer::new(handle, path, MissingKey::Deny).on_report({
        let told = Arc::clone(&told);
        move |_, report| {
            told.lock().unwrap().push(match report {
                Report::Denied(Reason::StoreUnavailable(error)) => format!("denied: {error}"),
                Report::Passed(Reason::StoreUnavailable(error)) => format!("passed: {error}"),
                other => panic!("{other:?}"),
            });
        }
    });
    store.set(|line| line.down = true);

    let denied = send(&layer, &inner, get("/a")).await;
    assert_eq!((denied.status, denied.header("retry-after"), denied.limit_fields()), (503, "", 0));
    assert_eq!(denied.json()["type"], "about:blank");
    assert!(!denied.body.contains("it is down"), "clients are not told why: {}", denied.body);

    let grpc = send(&layer.clone().on_denial(GrpcDenial).on_report(|_, _| {}), &inner, get("/a")).await;
    assert_eq!((grpc.status, grpc.header("grpc-status")), (200, "14"));

    let open = layer.clone().on_store_error(OnStoreError::Allow);
    let passed = send(&open, &inner, get("/a")).await;
    assert_eq!((passed.status, passed.limit_fields()), (200, 0));
    assert!(inner.seen()[0].decision.is_none(), "nothing was decided");
    assert_eq!(send(&layer.shadow(), &inner, get("/a")).await.status, 200, "a shadow never denies");
    let reason = "the store remote could not answer: it is down";
    assert_eq!(
        *told.lock().unwrap(),
        [format!("denied: {reason}"), format!("passed: {reason}"), format!("passed: {reason}")]
    );
}
