//! Tidegate, the server.
