//! What is kept of one client under one policy, as bytes: a tag that says under which figures, then the state.

mod ring;
mod state;
mod tag;

pub(crate) use ring::{KeptLog, logs_in, numbers};
pub(crate) use state::{decode, encode, width};
pub(crate) use tag::{Tag, name_hash};

/// A record that is not one of ours, or not whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it holds {0}")]
pub(crate) struct Damaged(pub(crate) &'static str);

/// Writes numbers as the scripts read them.
pub(crate) fn doubles(numbers: &[f64], out: &mut Vec<u8>) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
}

/// An integer below 2^53, which a double holds exactly.
pub(crate) fn double(integer: u64) -> f64 {
    integer as f64
}
