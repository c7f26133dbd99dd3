//! The store of a limiter that runs in many places at once: state in Redis or Valkey, decided by atomic scripts,
//! bit for bit as in memory.
#![forbid(unsafe_code)]

mod ad_hoc;
mod address;
mod builder;
mod change;
mod classic;
mod decide;
mod each;
mod engine;
mod fallback;
#[allow(dead_code)] // until the store stands on all of it
mod gather;
mod group;
mod link;
mod names;
mod prepared;
mod probe;
mod question;
mod recent;
mod record;
mod script;
mod store;

pub use address::{Address, AddressError};
pub use builder::RedisStoreBuilder;
pub use engine::OnDamaged;
pub use fallback::{OnStoreError, Replica, ReplicaError};
pub use store::RedisStore;
#[doc(hidden)]
pub use store::WireCall;
