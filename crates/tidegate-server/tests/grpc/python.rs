//! A program in Python, with the messages of Envoy's own protocol.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::server::start;

/// What the program asks about.
pub const CONFIG: &str = "
policies: {tenant: {limits: [{name: minute, algorithm: fixed_window, limit: 10, window: 1min}]}}
envoy: {edge: [{key: tenant, policy: tenant, descriptors: [{key: path, value: /free, unlimited: true}]}]}";

/// What the program prints and says; `arguments` follow the port.
pub async fn run(port: u16, arguments: &[&Path]) -> Result<Value, String> {
    let program = std::env::var_os("TIDEGATE_PYTHON").unwrap_or_else(|| {
        panic!("TIDEGATE_PYTHON names no program: run `cargo xtask test`, which gets and names it")
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/rls.py");
    let mut command = Command::new(program);
    command.arg(script).arg(port.to_string()).args(arguments).stdin(Stdio::null());
    // Each call has a deadline, so the program ends.
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    match ran.status.success() {
        true => Ok(serde_json::from_slice(&ran.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpcio_with_xds_protos() {
    let server = start(CONFIG).await;
    let told = run(server.address.port(), &[]).await.unwrap();

    let tenant = |code: &str, left: u32| json!({"code": code, "limit": 10, "unit": "MINUTE", "name": "minute", "remaining": left, "reset": 60.0});
    let unmet =
        json!({"code": "OK", "limit": 0, "unit": "UNKNOWN", "name": "", "remaining": 0, "reset": 0.0});
    let statuses = |asked: &str| told[asked]["statuses"].clone();
    assert_eq!(statuses("first"), json!([tenant("OK", 9), unmet]));
    assert_eq!(told["first"]["headers"]["x-ratelimit-remaining"], "9");
    assert_eq!(told["first"]["body"], Value::Null);
    assert_eq!(statuses("of the request"), json!([tenant("OK", 5)]));
    assert_eq!(statuses("of the descriptor"), json!([tenant("OK", 3)]));
    assert_eq!(statuses("look"), json!([tenant("OK", 3)]));
    assert_eq!(told["over"]["overall"], "OVER_LIMIT");
    assert_eq!(statuses("over")[0], tenant("OVER_LIMIT", 3));
    assert_eq!(statuses("over")[1]["code"], "OK");
    assert_eq!(told["over"]["headers"]["retry-after"], "60");
    assert_eq!(told["over"]["body"]["violated-policies"], json!(["minute"]));
    let brought = json!([{"code": "OK", "limit": 5, "unit": "HOUR", "name": "override", "remaining": 4, "reset": 720.0}]);
    assert_eq!(statuses("brought"), brought);
    assert_eq!(statuses("unlimited")[0]["remaining"], u32::MAX);
    let error = told["nothing"].as_array().unwrap();
    assert_eq!(error[0], "UNKNOWN");
    assert!(error[1].as_str().unwrap().contains("descriptors: there is none"), "{error:?}");
}
