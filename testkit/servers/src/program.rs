//! Which server.

use std::path::PathBuf;

/// A server's program, in the version that `xtask/src/tools/servers.rs` fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Redis 7.0, Debian's; the only one here that speaks TLS.
    Redis7,
    /// Redis 8.2.
    Redis8,
    /// Valkey 8.1.
    Valkey8,
    /// Valkey 9.1.
    Valkey9,
}

impl Program {
    /// All of them, for tests that go through them.
    pub const ALL: [Self; 4] = [Self::Redis7, Self::Redis8, Self::Valkey8, Self::Valkey9];

    /// The variable that says where it is.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Redis7 => "TIDEGATE_REDIS_SERVER",
            Self::Redis8 => "TIDEGATE_REDIS8_SERVER",
            Self::Valkey8 => "TIDEGATE_VALKEY8_SERVER",
            Self::Valkey9 => "TIDEGATE_VALKEY9_SERVER",
        }
    }

    /// Where it is.
    ///
    /// # Panics
    /// When the variable is not set: a test is never skipped in silence.
    pub fn path(self) -> PathBuf {
        let variable = self.variable();
        match std::env::var_os(variable) {
            Some(path) => path.into(),
            None => {
                panic!("{variable} is not set: run `cargo xtask test`, or set it to the path of {self:?}")
            }
        }
    }
}
