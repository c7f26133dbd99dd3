//! A server that has the first core to itself; whoever asks it has the second.
#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The core of servers.
const SERVERS_CORE: &str = "0";
/// The core of those who ask.
pub const CLIENTS_CORE: &str = "1";
/// A server listens within so long, or does not start.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// A running server. Dropped, it is killed.
#[derive(Debug)]
pub struct Pinned(Child);

/// An address of this machine that nobody listens on.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?)
}

impl Pinned {
    /// Starts `program` and waits until it listens at each of `addresses`.
    pub fn start<W: AsRef<std::ffi::OsStr>>(words: &[W], addresses: &[SocketAddr]) -> Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["-c", SERVERS_CORE]).args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("taskset is not here (it comes with util-linux)")?;
        let mut pinned = Pinned(child);
        let ends = Instant::now() + STARTS_WITHIN;
        for address in addresses {
            while TcpStream::connect(address).is_err() {
                if let Some(status) = pinned.0.try_wait()? {
                    bail!("{:?} ended with {status}", words[0].as_ref());
                }
                if Instant::now() > ends {
                    bail!("{:?} does not listen at {address}", words[0].as_ref());
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(pinned)
    }

    /// Time of the processor that it has taken since its start, in nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64> {
        let tasks = format!("/proc/{}/task", self.0.id());
        let mut sum = 0;
        for task in fs::read_dir(&tasks).with_context(|| format!("{tasks} is not there"))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let own = text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
            sum += own.with_context(|| format!("{text:?} is no schedstat"))?;
        }
        Ok(sum)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
