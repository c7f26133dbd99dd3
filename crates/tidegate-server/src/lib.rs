//! Tidegate, the server: a limiter behind HTTP, gRPC and RESP.
//!
//! [`run`] takes bound listeners, an [`App`] and any future as the signal to stop. Each door decodes a request, asks
//! the [`tidegate::Limiter`] and encodes its answer, on the same task; it decides nothing itself.
#![forbid(unsafe_code)]

mod admin_token;
mod app;
pub mod config;
mod envoy;
mod forward_auth;
mod gathered;
pub mod grpc;
pub mod http;
mod listen;
mod metrics;
mod reload;
pub mod resp;
mod store;
mod unanswered;
mod view;

pub use admin_token::{AdminToken, AdminTokenError};
pub use app::{App, DEFAULT_POLICY};
pub use envoy::{Charge, Effect, EnvoyRules, Level, Node, Rule as EnvoyRule};
pub use listen::{Drain, Listeners, Stopped, run};
pub use reload::{ReloadError, Reloader};
pub use store::{AnyStore, Handle, Later, LaterEach, Soon, SoonEach};
