//! redis-py.

use std::process::Command;

use super::{converses, program, run};

#[test]
fn redis_py() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/clients/redis_py.py");
    let protocols = ["0", "2", "3"];
    converses(
        |server, told| {
            let port = server.address.port().to_string();
            let arguments = [script, port.as_str(), told.protocol, told.password];
            run(Command::new(program("TIDEGATE_PYTHON")).args(arguments)).json()
        },
        &protocols,
    );
}
