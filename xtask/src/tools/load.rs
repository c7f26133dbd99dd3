//! What benches drive beside the tests' programs: load on HTTP and gRPC, and the peer that those doors are compared with.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::unpacked::runs;
use super::{Tool, debian, in_path};
use crate::process::{cargo, run};
use crate::workspace::Workspace;

/// Puts load on an HTTP/1.1 server.
pub const WRK: Tool = Tool {
    name: "wrk",
    variable: "TIDEGATE_WRK",
    find: |_| in_path("wrk"),
    install: |_| installed("wrk", "wrk"),
};

/// Puts load on an HTTP/2 server, and so on gRPC.
pub const H2LOAD: Tool = Tool {
    name: "h2load",
    variable: "TIDEGATE_H2LOAD",
    find: |_| in_path("h2load"),
    install: |_| installed("nghttp2-client", "h2load"),
};

/// A rate limiter with the same three doors.
pub const THROTTLECRAB: Tool = Tool {
    name: "throttlecrab-server",
    variable: "TIDEGATE_THROTTLECRAB",
    find: |workspace| runs(folder(workspace).join(THROTTLECRAB_PROGRAM), "--version"),
    install: throttlecrab,
};

const THROTTLECRAB_PROGRAM: &str = "bin/throttlecrab-server";

fn installed(package: &str, program: &str) -> Result<PathBuf> {
    debian::install(&[package])?;
    in_path(program).with_context(|| format!("{package} is installed, but {program} is not in PATH"))
}

/// Built by cargo from crates.io; without protoc it would have no gRPC.
fn throttlecrab(workspace: &Workspace) -> Result<PathBuf> {
    let folder = folder(workspace);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let protoc = match in_path("protoc") {
        Some(protoc) => protoc,
        None => installed("protobuf-compiler", "protoc")?,
    };
    let install = ["install", "--locked", "throttlecrab-server", "--version", "0.4.40"];
    let mut command = cargo();
    command.args(install).arg("--root").arg(&folder).arg("--target-dir").arg(folder.join("build"));
    run(command.env("PROTOC", protoc))?;
    Ok(folder.join(THROTTLECRAB_PROGRAM))
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.own_target().join("throttlecrab")
}
