//! The store of a limiter that runs in many places at once: state in Redis or Valkey, decided by atomic scripts,
//! bit for bit as in memory.
#![forbid(unsafe_code)]

mod link;
mod script;
