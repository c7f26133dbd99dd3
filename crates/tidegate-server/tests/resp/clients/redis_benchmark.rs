//! redis-benchmark.

use std::process::Command;

use super::{program, run};
use crate::server::Server;

fn benchmark(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new(program("TIDEGATE_REDIS_BENCHMARK"));
    command.args(["-p", &server.address.port().to_string(), "-q"]).args(arguments);
    let ran = run(&mut command);
    assert!(!ran.out.contains("ERR") && !ran.errors.contains("Error"), "{}{}", ran.out, ran.errors);
    ran.out()
}

#[test]
fn pings_in_both_ways() {
    let server = Server::start();
    let out = benchmark(&server, &["-t", "ping", "-n", "2000", "-c", "10"]);
    assert!(out.contains("PING_INLINE: ") && out.contains("PING_MBULK: "), "{out}");
}

#[test]
fn throttles_alone_and_sixteen_deep() {
    let server = Server::start();
    for depth in ["1", "16"] {
        let load = ["-n", "4000", "-c", "20", "-r", "1000", "-P", depth];
        let throttle = ["CL.THROTTLE", "key:__rand_int__", "15", "30", "60"];
        let out = benchmark(&server, &[&load[..], &throttle].concat());
        assert!(out.contains("requests per second"), "{out}");
    }
    let keys = server.door.keys().unwrap().keys();
    assert!(keys > 900, "{keys}");
}

/// redis-cell#11: at 8000 a second the key expired between two steps of one command, which then failed.
#[test]
fn in_real_time_from_ten_connections_nothing_fails() {
    let server = Server::start_in_real_time();
    benchmark(&server, &["-n", "20000", "-c", "10", "CL.THROTTLE", "k", "1", "8000", "1", "1"]);
    let mut wire = crate::wire::Wire::to(&server);
    assert_eq!(wire.ask("CL.THROTTLE k 1 8000 1 0").array()[1], crate::wire::Reply::Integer(2));
}
