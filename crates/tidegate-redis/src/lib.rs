//! The store of a limiter that runs in many places at once: state in Redis or Valkey, decided by atomic scripts,
//! bit for bit as in memory.
#![forbid(unsafe_code)]

mod change;
mod decide;
mod engine;
mod fallback;
mod link;
mod names;
mod prepared;
mod record;
mod script;
mod store;

pub use fallback::{OnStoreError, Replica, ReplicaError};
pub use store::{OnDamaged, RedisStore, RedisStoreBuilder};
