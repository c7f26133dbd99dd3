//! Tidegate, the library.
