//! One server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::patience::until;
use crate::ports;
use crate::process::Process;
use crate::program::Program;
use crate::resp::{Connection, Reply};

/// How a server is to be started: see [`Server::setup`].
#[derive(Clone, Debug)]
pub struct Setup {
    program: Program,
    password: Option<String>,
    options: Vec<String>,
    bus: bool,
    sentinel: Option<String>,
    encrypted: bool,
}

impl Setup {
    /// Asks for this password, of the default user.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.option("requirepass", password)
    }

    /// Sets an option of the configuration file, such as `maxmemory`.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    /// Speaks TLS on its port, and asks clients for a certificate if `mutual`; its Unix socket stays as it was.
    pub fn encrypted(mut self, certificates: &Certificates, mutual: bool) -> Self {
        self.encrypted = true;
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let (cert, key) = certificates.server();
        self.option("tls-cert-file", &path(cert))
            .option("tls-key-file", &path(key))
            .option("tls-ca-cert-file", &path(certificates.ca()))
            .option("tls-auth-clients", if mutual { "yes" } else { "no" })
    }

    /// Is a node of a cluster.
    pub(crate) fn cluster_node(mut self) -> Self {
        self.bus = true;
        self.option("cluster-enabled", "yes").option("cluster-config-file", "nodes.conf")
    }

    /// Watches others, as the configuration's text says.
    pub(crate) fn sentinel(mut self, configuration: &str) -> Self {
        self.sentinel = Some(configuration.to_owned());
        self
    }

    /// Starts it, and waits until it answers.
    pub fn start(self) -> Server {
        let mut said = String::new();
        for _ in 0..10 {
            let mut server = Server::new(self.clone());
            if server.run() {
                return server;
            }
            said = server.why_not();
        }
        panic!("{:?} does not start: {said}", self.program)
    }
}

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    setup: Setup,
    port: u16,
    bus_port: u16,
    process: Option<Process>,
    folder: TempDir,
}

impl Server {
    /// Starts a server that asks for no password.
    pub fn start(program: Program) -> Self {
        Self::setup(program).start()
    }

    /// A server to be started otherwise.
    pub fn setup(program: Program) -> Setup {
        Setup { program, password: None, options: Vec::new(), bus: false, sentinel: None, encrypted: false }
    }

    fn new(setup: Setup) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tg")
            .tempdir()
            .unwrap_or_else(|error| panic!("no folder for a server: {error}"));
        let bus_port = if setup.bus { ports::free() } else { 0 };
        Self { setup, port: ports::free(), bus_port, process: None, folder }
    }

    /// The port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The Unix socket it listens on too.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// `redis://127.0.0.1:port`, without its password.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub(crate) fn bus_port(&self) -> u16 {
        self.bus_port
    }

    /// Sends a command by the Unix socket and waits for the answer, ten seconds at most.
    ///
    /// # Panics
    /// When no answer comes.
    pub fn command<T: AsRef<[u8]>>(&self, words: &[T]) -> Reply {
        self.try_command(words).unwrap_or_else(|error| panic!("{:?}: {error}", self.setup.program))
    }

    pub(crate) fn try_command<T: AsRef<[u8]>>(&self, words: &[T]) -> std::io::Result<Reply> {
        Connection::open(&self.socket(), self.setup.password.as_deref())?.call(words)
    }

    /// The value of `field` in `INFO`.
    pub fn info(&self, field: &str) -> Option<String> {
        let Ok(Reply::Text(info)) = self.try_command(&["INFO"]) else { return None };
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    }

    /// Waits until its replicas, of which there is one at least, have said that they have all that was written up to
    /// now. (`WAIT` on a connection of its own asks for nothing that others wrote.)
    pub fn wait_until_replicated(&self) {
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
        let written = number(self.info("master_repl_offset"));
        until("the replicas have everything", || {
            let replicas = number(self.info("connected_slaves")).unwrap_or_default();
            let seen: Vec<_> = (0..replicas).map(|index| self.offset_of_replica(index)).collect();
            if !seen.is_empty() && seen.iter().all(|seen| *seen >= written) {
                return Ok(());
            }
            Err(format!("{seen:?} of {written:?}"))
        });
    }

    fn offset_of_replica(&self, index: u64) -> Option<u64> {
        let line = self.info(&format!("slave{index}"))?;
        line.split(',').find_map(|field| field.strip_prefix("offset=")?.parse().ok())
    }

    /// `SIGSTOP`: it answers nothing, and what is sent waits for it.
    pub fn freeze(&self) {
        self.process().stop();
    }

    /// `SIGCONT`.
    pub fn thaw(&self) {
        self.process().resume();
    }

    fn process(&self) -> &Process {
        self.process.as_ref().unwrap_or_else(|| panic!("{:?} does not run", self.setup.program))
    }

    /// `kill -9`: connections end, what it held is gone.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same port, empty.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "{:?} does not start again: {}", self.setup.program, self.why_not());
    }

    /// Starts the process and waits until it answers; `false` if it ends instead.
    fn run(&mut self) -> bool {
        // What a killed server leaves would be taken for its successor's.
        let _ = std::fs::remove_file(self.socket());
        let mut process = Process::start(&mut self.command_line(), self.folder.path());
        let answers = until("a server answers", || {
            if process.has_ended() {
                return Ok(false);
            }
            // Its own number: on this port, or this socket, it is not somebody else who answers.
            match self.info("process_id") {
                Some(id) if id == process.id().to_string() => Ok(true),
                other => Err(format!("INFO says process_id {other:?}")),
            }
        });
        self.process = answers.then_some(process);
        answers
    }

    fn command_line(&self) -> Command {
        let mut line = Command::new(self.setup.program.path());
        line.current_dir(self.folder.path());
        if let Some(configuration) = &self.setup.sentinel {
            let file = self.folder.path().join("sentinel.conf");
            if !file.exists() {
                std::fs::write(&file, configuration)
                    .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
            }
            line.arg(file).arg("--sentinel");
        } else {
            line.args(["--save", "", "--appendonly", "no", "--databases", "16"]);
            line.args(["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"]);
        }
        let (port, tls_port) = if self.setup.encrypted { (0, self.port) } else { (self.port, 0) };
        line.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        if tls_port != 0 {
            line.args(["--tls-port", &tls_port.to_string()]);
        }
        if self.setup.bus {
            line.args(["--cluster-port", &self.bus_port.to_string()]);
        }
        line.arg("--unixsocket").arg(self.socket()).args(["--logfile", "log"]);
        line.args(&self.setup.options);
        line
    }

    /// The last lines of its log.
    fn why_not(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log"));
        log.map_or_else(
            |error| format!("it leaves no log: {error}"),
            |log| log.lines().rev().take(5).collect::<Vec<_>>().join(" / "),
        )
    }
}
