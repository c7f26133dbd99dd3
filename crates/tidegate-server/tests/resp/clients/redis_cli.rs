//! redis-cli.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{gather, program, run};
use crate::server::{PASSWORD, Server, TOKEN};

fn cli(server: &Server) -> Command {
    let mut command = Command::new(program("TIDEGATE_REDIS_CLI"));
    command.args(["-p", &server.address.port().to_string(), "--no-auth-warning"]);
    // Nobody's own settings, nor history.
    command.env("REDISCLI_RCFILE", "/dev/null").env("REDISCLI_HISTFILE", "/dev/null");
    command
}

#[test]
fn one_command_a_call() {
    let server = Server::start();
    let throttle = ["CL.THROTTLE", "k", "15", "30", "60"];
    assert_eq!(run(cli(&server).args(throttle)).out(), "0\n16\n15\n-1\n2\n");
    assert_eq!(run(cli(&server).arg("-3").args(throttle)).out(), "0\n16\n14\n-1\n4\n");
    assert_eq!(run(cli(&server).args(["-n", "0", "PING"])).out(), "PONG\n");
    assert_eq!(
        run(cli(&server).args(["TG.CHECK", "api", "k"])).out(),
        "1\n5\n4\n0\n1000\n0\nallowed\nburst\n"
    );
    let info = run(cli(&server).args(["-3", "INFO", "replication"])).out();
    assert!(info.contains("role:master"), "{info}");
}

#[test]
fn with_secrets() {
    let server = Server::start_guarded();
    let refused = run(cli(&server).arg("PING"));
    assert!(refused.out.contains("NOAUTH Authentication required."), "{}", refused.out);
    assert_eq!(run(cli(&server).args(["-a", PASSWORD, "PING"])).out(), "PONG\n");
    assert_eq!(run(cli(&server).args(["-a", PASSWORD, "-3", "PING"])).out(), "PONG\n");
    let admin = ["--user", "admin", "-a", TOKEN];
    assert_eq!(run(cli(&server).args(admin).args(["DEL", "k"])).out(), "0\n");
}

/// As somebody types: it asks for the commands' documentation first.
#[test]
fn a_session_of_several() {
    let server = Server::start();
    let mut child = cli(&server)
        .env("FAKETTY", "1") // it takes our pipe for a terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, errors) = (gather(child.stdout.take().unwrap()), gather(child.stderr.take().unwrap()));
    let typed = "PING\nCL.THROTTLE k 0 1 60\ncl.throttle k 0 1 60\nHELP cl.throttle\nNONSENSE\n";
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let out = out.recv_timeout(super::PATIENCE).unwrap();
    assert!(child.wait().unwrap().success(), "{}", errors.recv().unwrap());
    for told in [
        "PONG\n1) (integer) 0\n2) (integer) 1\n",
        "4) (integer) -1\n5) (integer) 60\n1) (integer) 1\n",
        "CL.THROTTLE\u{1b}[0m \u{1b}[90mkey max_burst count period [quantity]",
        "Decides by GCRA under the figures given",
    ] {
        assert!(out.contains(told), "no {told} in {out}");
    }
    assert!(out.contains("unknown command 'NONSENSE'"), "{out}");
}

#[test]
fn a_file_through_a_pipe() {
    let server = Server::start();
    let mut child = cli(&server)
        .arg("--pipe")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, errors) = (gather(child.stdout.take().unwrap()), gather(child.stderr.take().unwrap()));
    let one = crate::wire::command(&[b"CL.THROTTLE", b"k", b"99999", b"1", b"60"]);
    child.stdin.take().unwrap().write_all(&one.repeat(20_000)).unwrap();
    let out = out.recv_timeout(super::PATIENCE).unwrap();
    assert!(child.wait().unwrap().success(), "{out}{}", errors.recv().unwrap());
    assert!(out.contains("errors: 0, replies: 20000"), "{out}");
}
