//! Tidegate, the library.

mod memory;
