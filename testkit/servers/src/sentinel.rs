//! A master, its replicas, and those who watch over them.

use crate::patience::until;
use crate::program::Program;
use crate::resp::Reply;
use crate::server::Server;

/// The name under which the sentinels know the master.
const NAME: &str = "mymaster";

/// A master with one replica, and sentinels that replace it after half a second of silence.
#[derive(Debug)]
pub struct Sentinel {
    /// The first master, then its replica.
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinel {
    /// Starts them with `sentinels` sentinels, of which more than half must agree, and waits until they know each
    /// other and the replica.
    pub fn start(program: Program, sentinels: usize) -> Self {
        Self::start_guarded(program, sentinels, None)
    }

    /// As [`Sentinel::start`], servers asking for the first password and sentinels for the second.
    pub fn start_guarded(program: Program, sentinels: usize, passwords: Option<[&str; 2]>) -> Self {
        let server = || match passwords {
            None => Server::setup(program),
            Some([password, _]) => Server::setup(program).password(password).option("masterauth", password),
        };
        let master = server().start();
        let port = master.port().to_string();
        let replica = server().option("replicaof", &format!("127.0.0.1 {port}")).start();
        until("the replica follows", || match replica.info("master_link_status") {
            Some(status) if status == "up" => Ok(()),
            other => Err(format!("{other:?}")),
        });
        let quorum = sentinels / 2 + 1;
        let guard = passwords.map(|[servers, sentinels]| {
            format!("sentinel auth-pass {NAME} {servers}\nsentinel sentinel-pass {sentinels}\n")
        });
        let configuration = format!(
            "sentinel monitor {NAME} 127.0.0.1 {port} {quorum}\n\
             sentinel down-after-milliseconds {NAME} 500\n\
             sentinel failover-timeout {NAME} 3000\n\
             {}",
            guard.unwrap_or_default()
        );
        let watch = || {
            let setup = Server::setup(program).sentinel(&configuration);
            passwords.into_iter().fold(setup, |setup, [_, password]| setup.password(password)).start()
        };
        let watching =
            Self { servers: vec![master, replica], sentinels: (0..sentinels).map(|_| watch()).collect() };
        watching.wait_until_known();
        watching
    }

    /// The name under which the sentinels know the master.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// A server: 0 was the master at the start, 1 its replica.
    pub fn server(&self, index: usize) -> &Server {
        &self.servers[index]
    }

    /// A server, to be killed or started again.
    pub fn server_mut(&mut self, index: usize) -> &mut Server {
        &mut self.servers[index]
    }

    /// A sentinel.
    pub fn sentinel(&self, index: usize) -> &Server {
        &self.sentinels[index]
    }

    /// A sentinel, to be killed.
    pub fn sentinel_mut(&mut self, index: usize) -> &mut Server {
        &mut self.sentinels[index]
    }

    /// `redis+sentinel://`, the addresses of the sentinels, and the master's name.
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.sentinels.iter().map(|it| it.address().to_string()).collect();
        format!("redis+sentinel://{}/{NAME}", addresses.join(","))
    }

    /// The port of the master as the first sentinel knows it.
    pub fn master_port(&self) -> u16 {
        self.master_port_by(0)
    }

    /// The port of the master as this sentinel knows it.
    pub fn master_port_by(&self, sentinel: usize) -> u16 {
        match self.sentinels[sentinel].command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]) {
            Reply::List(mut address) => {
                let port = address.pop().map(Reply::text).unwrap_or_default();
                port.parse().unwrap_or_else(|_| panic!("not a port: {port:?}"))
            }
            other => panic!("not an address: {other:?}"),
        }
    }

    /// Has the sentinels put the other server in the master's place while the master lives, and waits until they have.
    pub fn fail_over(&self) {
        let before = self.master_port();
        until("the sentinels begin", || match self.sentinels[0].command(&["SENTINEL", "FAILOVER", NAME]) {
            Reply::Text(_) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        self.wait_until_replaced(before);
    }

    /// Waits until another than the server at port `before` is the master, knows it, and the sentinels say so.
    pub fn wait_until_replaced(&self, before: u16) {
        until("the master is replaced", || {
            let port = self.master_port();
            let role = self.servers.iter().find(|it| it.port() == port).and_then(|it| it.info("role"));
            if port != before && role.as_deref() == Some("master") {
                return Ok(());
            }
            Err(format!("the master is at {port} and thinks itself a {role:?}"))
        });
    }

    fn wait_until_known(&self) {
        let others = self.sentinels.len() - 1;
        for sentinel in &self.sentinels {
            until("the sentinels know all", || {
                let line = sentinel.info("master0").unwrap_or_default();
                if line.contains("status=ok") && line.contains(&format!("slaves=1,sentinels={}", others + 1))
                {
                    return Ok(());
                }
                Err(line)
            });
        }
    }
}
