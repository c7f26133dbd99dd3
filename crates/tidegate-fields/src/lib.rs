//! What every HTTP door of Tidegate says and reads in the same words: the fields that tell a client how it
//! stands ([`LimitFields`]), the body of a refusal ([`Problem`]), the client's address behind proxies
//! ([`client_ip`]) and keys made of several parts ([`joined`]).
//!
//! ```
//! use http::HeaderMap;
//! use tidegate::{Limit, Limiter, Period, Policy, Rate};
//! use tidegate_fields::{LimitFields, Standing};
//!
//! let limiter = Limiter::new(
//!     Policy::builder("api")
//!         .limit("burst", Limit::token_bucket(100, Rate::per_second(10)))
//!         .limit("daily", Limit::fixed_window(10_000, Period::DAY))
//!         .build()?,
//! );
//! let api = limiter.policy("api")?;
//! let (key, policy) = (b"user:42", api.policy());
//! let decision = api.check(key, 3);
//!
//! let mut headers = HeaderMap::new();
//! let standing = Standing { policy: &policy, key, decision: &decision, now: limiter.now() };
//! LimitFields::default().write(&mut headers, &standing);
//! assert_eq!(headers["ratelimit-policy"], r#""burst";q=100;w=10, "daily";q=10000;w=86400"#);
//! assert_eq!(headers["x-ratelimit-remaining"], "97");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod client_ip;
mod joined;
mod limits;
mod problem;
mod standing;

pub use joined::joined;
pub use limits::{Draft, Families, LimitFields, ResetStyle, retry_after};
pub use problem::{Problem, status_of};
pub use standing::{Standing, decided_under};
