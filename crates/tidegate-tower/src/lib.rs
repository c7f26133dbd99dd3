//! Rate limits as [tower](https://docs.rs/tower-layer) middleware: for axum, hyper, tonic and whatever else is
//! a tower service over HTTP.
//!
//! ```
//! use tidegate::{Limit, Limiter, Policy, Rate};
//! use tidegate_tower::{MissingKey, RateLimitLayer, key};
//! # use http::{Request, Response, StatusCode};
//! # use tower::{Layer, Service, ServiceExt, service_fn};
//!
//! let limiter = Limiter::new(Policy::single("api", Limit::token_bucket(1, Rate::per_minute(1)))?);
//! let layer = RateLimitLayer::new(limiter.policy("api")?, key::header("x-api-key"), MissingKey::Deny);
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let handler = service_fn(|_: Request<String>| async {
//! #     Ok::<_, std::convert::Infallible>(Response::new(String::from("hello")))
//! # });
//! # let mut service = layer.layer(handler);
//! # let mut get = async |key: &str| {
//! #     let request = Request::get("/").header("x-api-key", key).body(String::new()).expect("a request");
//! #     service.ready().await.expect("ready").call(request).await.expect("answered")
//! # };
//!
//! // with this layer around a service:
//! assert_eq!(get("a").await.headers()["ratelimit"], r#""api";r=0;t=60"#);
//! assert_eq!(get("a").await.status(), StatusCode::TOO_MANY_REQUESTS);
//! assert_eq!(get("b").await.status(), StatusCode::OK);
//! # });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a request goes through
//!
//! 1. It is passed on unasked if it is to be [skipped](RateLimitLayer::skip_if).
//! 2. Its key is found by a [`KeyExtractor`] (see [`key`] for those at hand); if it has none, [`MissingKey`]
//!    says what then. Its [policy](RateLimitLayer::policy_by) and its [cost](RateLimitLayer::cost) are found.
//! 3. The limiter decides. If it refuses, the answer is made by a [`DenialHandler`], unless the request is only
//!    [shadowed](RateLimitLayer::shadow_if). Nothing is charged before: `poll_ready` asks the inner service and
//!    nothing else.
//! 4. Admitted, it carries the [`Decision`](tidegate::Decision) in its extensions; the delay of a leaky bucket is
//!    slept or handed on ([`Pacing`]); the inner service is called, and its answer is given the limit fields.
//!
//! # Features
//!
//! - `axum`: the peer's address as axum tells it, [`key::path_param`], answers made of axum's bodies.
//! - `grpc`: `GrpcDenial`, which refuses with `RESOURCE_EXHAUSTED`.
//! - `tonic`: `grpc`, and the peer's address as tonic tells it.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answering;
mod asking;
mod body;
mod choice;
mod denial;
mod future;
#[cfg(feature = "grpc")]
mod grpc;
pub mod key;
mod layer;
mod peer;
mod report;
mod service;

pub use answering::{HandedDelay, Pacing};
pub use asking::OnStoreError;
pub use body::{DenialBody, RateLimitBody};
pub use choice::{MissingKey, UnreadableCost};
pub use denial::{Denial, DenialHandler, ProblemDenial, Reason};
pub use future::ResponseFuture;
#[cfg(feature = "grpc")]
pub use grpc::GrpcDenial;
pub use key::KeyExtractor;
pub use layer::RateLimitLayer;
pub use peer::PeerAddr;
pub use report::{Checked, Report};
pub use service::RateLimit;
pub use tidegate_fields::{Draft, Families, LimitFields, Problem, ResetStyle, client_ip};

/// The page for users, whose code is run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tower.md")]
struct Page;
