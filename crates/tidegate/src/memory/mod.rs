//! The store in this process's memory.

// Until the store uses it.
#[allow(dead_code)]
mod table;
