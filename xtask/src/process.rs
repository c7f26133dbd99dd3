//! Running other programs: every command line is shown before it runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long a program's output must pause before we look whether it has ended.
const SILENCE: Duration = Duration::from_secs(1);

/// Cargo, the one that started us (`CARGO`) rather than whichever comes first in PATH.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command`, its output going where ours goes; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let line = announce(command);
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs `command` and shows its output as it comes; `on_line` sees every line of both streams,
/// without colour codes. The exit status is the caller's to judge.
pub fn run_watched(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<ExitStatus> {
    let line = announce(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let (sender, lines) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|it| Box::new(it) as _), child.stderr.take().map(|it| Box::new(it) as _)];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        thread::spawn(move || send_lines(stream, &sender));
    }
    drop(sender);
    loop {
        match lines.recv_timeout(SILENCE) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                print!("{text}"); // not stdout() itself: in our own tests the harness must keep such lines back
                on_line(without_colour(&text).trim_end());
            }
            // A server that a broken test left behind keeps the pipes open for ever.
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_none() => {}
            Err(_) => break,
        }
    }
    child.wait().with_context(|| format!("cannot wait for `{line}`"))
}

/// What `command` prints on stdout; its stderr is part of the error when it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` ended with {}: {}", output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether `command` starts and ends with success; what it prints is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn announce(command: &Command) -> String {
    let line = shown(command);
    println!("    $ {line}");
    line
}

/// The command line with the variables it sets, as one would type it.
fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            words.push(format!("{name}={}", quoted(&value)));
        }
    }
    let program = command.get_program().to_string_lossy();
    let named = if program.ends_with("/cargo") { "cargo".into() } else { program };
    words.push(named.into_owned());
    words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

fn send_lines(stream: impl Read, lines: &mpsc::Sender<Vec<u8>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match stream.read_until(b'\n', &mut line) {
            Ok(1..) if lines.send(line).is_ok() => {}
            _ => return,
        }
    }
}

/// `text` without terminal colour codes (`ESC [ ... m`).
fn without_colour(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..start]);
        let code = &rest[start + 2..];
        rest = match code.find(|it: char| it.is_ascii_alphabetic()) {
            Some(end) => &code[end + 1..],
            None => "",
        };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_are_watched_to_their_last_line() {
        let mut seen = Vec::new();
        let status = run_watched(&mut shell("echo out; echo err >&2; printf end; exit 3"), |line| {
            seen.push(line.to_owned());
        })
        .unwrap();
        seen.sort();
        assert_eq!(seen, ["end", "err", "out"]);
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for() {
        let mut seen = Vec::new();
        // The sleeper holds both pipes long after the shell that started it has ended.
        let status =
            run_watched(&mut shell("echo before; sleep 600 & echo $!"), |line| seen.push(line.to_owned()));
        assert!(status.unwrap().success());
        assert_eq!(seen[0], "before");
        assert!(succeeds(Command::new("kill").arg(&seen[1])), "the sleeper was waited for");
    }

    #[test]
    fn a_failure_says_what_ran_and_what_it_said() {
        let error = output(&mut shell("echo went wrong >&2; exit 2")).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("went wrong"), "{error}");
        let error = run(&mut Command::new("/no/such/program")).unwrap_err().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/opt/rust/bin/cargo");
        command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--lib"]);
        assert_eq!(shown(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --lib");
    }

    #[test]
    fn colour_codes_go_and_text_stays() {
        assert_eq!(without_colour("\u{1b}[32;1m  Summary\u{1b}[0m [1s]"), "  Summary [1s]");
        assert_eq!(without_colour("plain [1m] text"), "plain [1m] text");
        assert_eq!(without_colour("cut \u{1b}[3"), "cut ");
    }
}
