//! Free ports.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// A port that nobody listens on at the moment. It lies below those that outgoing connections are given, so that a
/// server that is killed finds it free when it starts again. Two tests may be given the same: the later server then
/// cannot start, and asks for another.
pub(crate) fn free() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u64 = 20_000;
    let random = RandomState::new();
    (0_u32..)
        .map(|attempt| FIRST + (random.hash_one(attempt) % COUNT) as u16)
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .unwrap_or_else(|| panic!("no port of {FIRST} to {} is free", u64::from(FIRST) + COUNT))
}
