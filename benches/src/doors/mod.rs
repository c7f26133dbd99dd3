//! What the bench of the doors is made of: servers on a core of their own, and the programs that put load on them.

pub mod ask;
pub mod lanes;
pub mod pinned;
