//! What the benches share: traces of keys, contenders that decide them, clocks and counts, tables of results.
//!
//! Everything that is compared is measured in one run, round by round in turn, and told as medians: figures of
//! another day or machine are not comparable.

pub mod allocation;
pub mod contender;
pub mod doors;
pub mod report;
pub mod timing;
pub mod trace;
pub mod wire;
