//! node-redis, ioredis and iovalkey.

use std::process::Command;

use serde_json::Value;

use super::{Told, converses, program, run};
use crate::server::Server;

/// What a script in this folder reports.
fn reports(script: &str, library: &[&str], server: &Server, told: Told<'_>) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/clients");
    let port = server.address.port().to_string();
    let mut command = Command::new(program("TIDEGATE_NODE"));
    command.arg(format!("{folder}/{script}")).args(library).args([
        port.as_str(),
        told.protocol,
        told.password,
    ]);
    run(&mut command).json()
}

#[test]
fn node_redis() {
    converses(|server, told| reports("node_redis.js", &[], server, told), &["0", "2", "3"]);
}

#[test]
fn ioredis() {
    converses(|server, told| reports("ioredis.js", &["ioredis"], server, told), &["0", "2", "3"]);
}

#[test]
fn iovalkey() {
    converses(|server, told| reports("ioredis.js", &["iovalkey"], server, told), &["0"]);
}
