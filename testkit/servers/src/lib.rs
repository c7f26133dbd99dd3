//! Real Redis and Valkey servers for tests, and whatever may befall them.
//!
//! * [`Server`]: one server on a free port and a Unix socket, without persistence, in a folder of its own; stopped,
//!   continued, killed and started again at will.
//! * [`Cluster`] and [`Sentinel`]: several of them that fail over.
//! * [`Proxy`]: a way to a server on which connections are cut, replies lost, delayed or never given.
//! * [`Certificates`]: for a server that speaks TLS, and for its clients.
//!
//! Everything is gone when it is dropped, and when the test's process dies. All calls block, for milliseconds
//! as a rule. Nothing here returns errors: what fails is the machine's fault or the test's, and panics with what
//! the server said.
//!
//! The programs come from `cargo xtask test`, which tells where they are in variables such as
//! `TIDEGATE_REDIS_SERVER`.
#![forbid(unsafe_code)]

mod certificates;
mod cluster;
mod patience;
mod ports;
mod process;
mod program;
mod proxy;
mod resp;
mod sentinel;
mod server;

pub use certificates::Certificates;
pub use cluster::Cluster;
pub use program::Program;
pub use proxy::{Mischief, Proxy};
pub use resp::Reply;
pub use sentinel::Sentinel;
pub use server::{Server, Setup};
