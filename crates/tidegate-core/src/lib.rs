//! The exact arithmetic of Tidegate.
#![no_std]
#![forbid(unsafe_code)]
