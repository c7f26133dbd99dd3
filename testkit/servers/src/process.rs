//! A server's process, and the end of it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A process that does not outlive this one, whatever becomes of it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Waits for the end of its standard input, which is ours to hold, and kills then.
    warden: Child,
}

impl Process {
    /// Starts `command`; `folder` is removed too should this process be killed.
    pub fn start(command: &mut Command, folder: &Path) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let warden = Command::new("sh")
            .args(["-c", "read -r _; kill -KILL \"$1\"; rm -rf \"$2\"", "warden"])
            .arg(child.id().to_string())
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start sh: {error}"));
        Self { child, warden }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Lets it sleep: it answers nothing until it is woken, and its connections stay.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Wakes it.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal)
            .unwrap_or_else(|error| panic!("cannot send {signal:?} to {pid:?}: {error}"));
    }
}

impl Drop for Process {
    /// `kill -9`.
    fn drop(&mut self) {
        // The warden first: its server's number may soon be another's. Either may have ended by itself.
        for process in [&mut self.warden, &mut self.child] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
