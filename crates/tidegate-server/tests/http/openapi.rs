//! The server against its own OpenAPI document, by schemathesis.

use std::path::PathBuf;
use std::process::Command;

use crate::server::{Server, TOKEN};

/// Says where the program is. Set by `cargo xtask test`.
const VARIABLE: &str = "TIDEGATE_SCHEMATHESIS";

/// Policies of every algorithm, one of them met without being named.
const POLICIES: &str = "{policies: {
    default: {limits: [{algorithm: token_bucket, capacity: 100, refill: 10/s}]},
    api: {limits: [
        {algorithm: gcra, rate: 10/s, burst: 100},
        {algorithm: leaky_bucket, capacity: 100, leak: 10/s},
        {algorithm: fixed_window, limit: 100, window: 1min},
        {algorithm: sliding_window_log, limit: 100, window: 1min},
        {algorithm: sliding_window_counter, limit: 100, window: 1min}]}},
    rules: [{name: writes, policy: api, key: [ip]}]}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_no_difference_from_the_openapi_document_see_cargo_xtask_test() {
    let Some(program) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        panic!("{VARIABLE} is not set: `cargo xtask test openapi` gets schemathesis and runs this with it");
    };
    let server = Server::start_admin(POLICIES).await;
    // It writes what it learnt into its folder.
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(["--config-file", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/schemathesis.toml")]);
    command
        .args(["run", &server.url("/openapi.json"), "--header"])
        .arg(format!("Authorization: Bearer {TOKEN}"));
    command.args(["--max-examples", "30", "--seed", "1", "--no-color"]);
    command.current_dir(folder.path());
    let ended = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
    // That it asked at all.
    assert!(said.contains("Tested: 19"), "{said}");
}
