//! Redis's own tools, in any version: PATH's, or Debian's.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Tool, debian, in_path};

/// Asks a server from the command line.
pub const REDIS_CLI: Tool = Tool {
    name: "redis-cli",
    variable: "TIDEGATE_REDIS_CLI",
    find: |_| in_path("redis-cli"),
    install: |_| install("redis-cli"),
};

/// Puts load on a server.
pub const REDIS_BENCHMARK: Tool = Tool {
    name: "redis-benchmark",
    variable: "TIDEGATE_REDIS_BENCHMARK",
    find: |_| in_path("redis-benchmark"),
    install: |_| install("redis-benchmark"),
};

/// The package has programs alone: no server starts with it.
fn install(program: &str) -> Result<PathBuf> {
    debian::install(&["redis-tools"])?;
    in_path(program).with_context(|| format!("redis-tools is installed, but {program} is not in PATH"))
}
