//! A limited service to send requests to, in virtual time.
#![allow(dead_code, reason = "each test program uses its part")]

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use tidegate::clock::{Clock, ManualClock};
use tidegate::store::Store;
use tidegate::{Decision, Limit, Limiter, Policy, PolicyHandle, Rate, Timestamp};
use tidegate_tower::{HandedDelay, RateLimitBody, RateLimitLayer};
use tower::{Layer, Service};

pub const START: u64 = 1_700_000_000_000_000;

pub fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(START + us).unwrap()
}

pub fn clock() -> ManualClock {
    ManualClock::new(at(0))
}

/// A limiter with one policy, `api`.
pub fn limiter(clock: &ManualClock, limit: Limit) -> PolicyHandle {
    let policy = Policy::single("api", limit).unwrap();
    Limiter::builder(policy).clock(clock.clone()).build().policy("api").unwrap()
}

/// A bucket of `capacity` that refills one unit a second.
pub fn bucket(capacity: u32) -> Limit {
    Limit::token_bucket(capacity, Rate::per_second(1))
}

/// What the inner service saw of each request, and when.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Timestamp,
    pub path: String,
    pub decision: Option<Decision>,
    pub delay: Option<HandedDelay>,
}

/// The inner service: it notes what it sees and echoes the request's body.
#[derive(Clone)]
pub struct Inner {
    pub clock: ManualClock,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    /// Bears these headers in its answers.
    pub headers: http::HeaderMap,
}

impl Inner {
    pub fn new(clock: &ManualClock) -> Self {
        Inner { clock: clock.clone(), seen: Arc::default(), headers: http::HeaderMap::new() }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Service<Request<String>> for Inner {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        self.seen.lock().unwrap().push(Seen {
            at: self.clock.now(),
            path: request.uri().path().to_owned(),
            decision: request.extensions().get().copied(),
            delay: request.extensions().get().copied(),
        });
        let mut response = Response::new(request.into_body());
        *response.headers_mut() = self.headers.clone();
        std::future::ready(Ok(response))
    }
}

/// An answer with its body read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: String,
}

impl Answer {
    /// A header's value; empty if it is not there, and a panic if it is there twice.
    pub fn header(&self, name: &str) -> &str {
        let values: Vec<_> = self.headers.get_all(name).iter().collect();
        assert!(values.len() < 2, "{name}: {values:?}");
        values.first().map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// How many headers bear limits.
    pub fn limit_fields(&self) -> usize {
        self.headers.keys().filter(|name| name.as_str().contains("ratelimit")).count()
    }
}

pub async fn read(response: Response<RateLimitBody<String>>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

pub fn get(path: &str) -> Request<String> {
    Request::get(path).body("hello".to_owned()).unwrap()
}

pub fn with(mut request: Request<String>, name: &'static str, value: &str) -> Request<String> {
    request.headers_mut().append(name, value.parse().unwrap());
    request
}

/// Sends one request through a clone of the service, as servers do.
pub async fn send<S: Store>(layer: &RateLimitLayer<S>, inner: &Inner, request: Request<String>) -> Answer {
    let mut service = layer.layer(inner.clone());
    std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    read(service.call(request).await.unwrap()).await
}

/// A key that every request has: its path.
pub fn path(request: &Parts) -> Option<String> {
    Some(request.uri.path().to_owned())
}

/// Polls once.
pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
