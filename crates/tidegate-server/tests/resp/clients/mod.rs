//! The clients people have, driven for real.
