//! The clients people have, driven for real.

mod node;
mod python;
mod recorded;
mod redis_benchmark;
mod redis_cli;
mod redis_rs;

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::server::Server;

/// A client that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program that a variable names.
fn program(variable: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| {
        panic!("{variable} names no program: run `cargo xtask test`, which gets and names it")
    })
}

/// What a program printed, both streams, and whether it ended well.
struct Ran {
    out: String,
    errors: String,
    well: bool,
}

/// Runs a program to its end.
fn run(command: &mut Command) -> Ran {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, errors) = (gather(child.stdout.take().unwrap()), gather(child.stderr.take().unwrap()));
    let mut gathered = |stream: &mpsc::Receiver<String>| match stream.recv_timeout(PATIENCE) {
        Ok(text) => text,
        Err(_) => hangs(&mut child),
    };
    let (out, errors) = (gathered(&out), gathered(&errors));
    Ran { out, errors, well: child.wait().unwrap().success() }
}

fn hangs(child: &mut Child) -> ! {
    child.kill().unwrap();
    panic!("the client hangs");
}

/// All that a stream brings, once it ends.
fn gather(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        sender.send(text)
    });
    receiver
}

impl Ran {
    /// What it printed, having ended well.
    fn out(self) -> String {
        assert!(self.well, "{}\n{}", self.out, self.errors);
        self.out
    }

    /// The JSON it printed, having ended well.
    fn json(self) -> Value {
        let out = self.out();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// What a script is told besides the port.
#[derive(Clone, Copy, Default)]
struct Told<'a> {
    protocol: &'a str,
    password: &'a str,
}

/// What every script has to report after it has put the same questions to a new server at one instant.
///
/// `script` connects, asks `CL.THROTTLE` and `TG.CHECK`, sends a thousand in a pipeline, makes a mistake, and prints
/// JSON.
fn converses(script: impl Fn(&Server, Told<'_>) -> Value, protocols: &[&str]) {
    let guarded = Server::start_guarded();
    let open = Server::start();
    let secrets = [(&open, ""), (&guarded, crate::server::PASSWORD)];
    for (protocol, (server, password)) in protocols.iter().flat_map(|it| secrets.map(|secret| (it, secret))) {
        server.at_ms(server.app.limiter().now().as_micros() / 1_000 + 86_400_000);
        let mut told = script(server, Told { protocol, password });
        let in_order = told["pipeline"] == (0..1_000).map(|n| 999 - n).collect::<Value>();
        assert!(in_order, "protocol {protocol}: {}", told["pipeline"]);
        told.as_object_mut().unwrap().remove("pipeline");
        let expected = serde_json::json!({
            "ping": "PONG",
            "first": [0, 16, 15, -1, 2],
            "rest": [0, 16, 0, -1, 32],
            "denied": [1, 16, 0, 2, 32],
            "check": [1, 5, 3, 0, 2000, 0, "allowed", "burst"],
            "error": "zero rates are not supported (count has to be 1 or more)",
            "role": "master",
        });
        assert_eq!(told, expected, "protocol {protocol}, password {password:?}");
    }
}
