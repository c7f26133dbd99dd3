//! Servers that share the keys among them.

use crate::patience::until;
use crate::program::Program;
use crate::resp::Reply;
use crate::server::{Server, Setup};

/// The slots there are.
/// So many looks are waited before nodes are introduced once more.
const AGAIN: u32 = 150;
const SLOTS: usize = 16_384;

/// A cluster of masters, each with as many replicas.
#[derive(Debug)]
pub struct Cluster {
    /// The masters, then the first replica of each, then the second of each.
    nodes: Vec<Server>,
    masters: usize,
}

impl Cluster {
    /// Starts `masters` times (1 + `replicas`) servers, shares the slots among the masters, and waits until all
    /// are well. A master that is gone is replaced after about a second.
    pub fn start(program: Program, masters: usize, replicas: usize) -> Self {
        Self::start_with(program, masters, replicas, |setup| setup)
    }

    /// As [`Cluster::start`], each server set up as `how` says.
    pub fn start_with(
        program: Program,
        masters: usize,
        replicas: usize,
        how: impl Fn(Setup) -> Setup,
    ) -> Self {
        let node = || {
            let setup = Server::setup(program).cluster_node().option("cluster-node-timeout", "1000");
            how(setup.option("cluster-replica-validity-factor", "0")).start()
        };
        let nodes: Vec<_> = (0..masters * (1 + replicas)).map(|_| node()).collect();
        let cluster = Self { nodes, masters };
        cluster.meet();
        cluster.share_slots();
        cluster.replicate();
        cluster.wait_until_well();
        cluster
    }

    /// A node: the masters come first, then the first replica of each, and so on.
    pub fn node(&self, index: usize) -> &Server {
        &self.nodes[index]
    }

    /// A node, to be killed or started again.
    pub fn node_mut(&mut self, index: usize) -> &mut Server {
        &mut self.nodes[index]
    }

    /// The first master's first replica is this many behind it.
    pub fn masters(&self) -> usize {
        self.masters
    }

    /// `redis+cluster://` and the addresses of all nodes.
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.nodes.iter().map(|node| node.address().to_string()).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    /// The index of the master that serves `slot` at the start.
    pub fn master_of(&self, slot: u16) -> usize {
        (0..self.masters).find(|&index| self.range(index).contains(&usize::from(slot))).unwrap_or_default()
    }

    /// The number that a node goes by among the nodes.
    pub fn id(&self, index: usize) -> String {
        self.nodes[index].command(&["CLUSTER", "MYID"]).text()
    }

    /// Has the replica at `index` take its master's place, and waits until it has.
    pub fn fail_over_to(&self, index: usize) {
        let node = &self.nodes[index];
        assert_eq!(node.command(&["CLUSTER", "FAILOVER"]), Reply::Text("OK".to_owned()));
        self.wait_until_master(index);
    }

    /// Waits until the node at `index` is a master and thinks the cluster well.
    pub fn wait_until_master(&self, index: usize) {
        let node = &self.nodes[index];
        until("a replica is the master", || match (node.info("role"), self.state(node)) {
            (Some(role), Some(state)) if role == "master" && state == "ok" => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    fn range(&self, master: usize) -> std::ops::Range<usize> {
        SLOTS * master / self.masters..SLOTS * (master + 1) / self.masters
    }

    fn meet(&self) {
        let first = &self.nodes[0];
        for (epoch, node) in self.nodes.iter().enumerate() {
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(epoch + 1).to_string()]);
        }
        let introduce = |node: &Server| {
            let (port, bus) = (node.port().to_string(), node.bus_port().to_string());
            let answer = first.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            assert_eq!(answer, Reply::Text("OK".to_owned()));
        };
        self.nodes[1..].iter().for_each(introduce);
        let all = self.nodes.len().to_string();
        for node in &self.nodes {
            let mut looks = 0;
            until("the nodes know each other", || match self.cluster_info(node, "cluster_known_nodes") {
                Some(known) if known == all => Ok(()),
                other => {
                    looks += 1;
                    // A handshake that takes too long, on a machine that is busy, is given up and not begun again.
                    if looks % AGAIN == 0 {
                        self.nodes[1..].iter().for_each(introduce);
                    }
                    Err(format!("{other:?} of {all}"))
                }
            });
        }
    }

    fn share_slots(&self) {
        for (index, node) in self.nodes[..self.masters].iter().enumerate() {
            let slots = self.range(index);
            let (first, last) = (slots.start.to_string(), (slots.end - 1).to_string());
            let answer = node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            assert_eq!(answer, Reply::Text("OK".to_owned()));
        }
    }

    fn replicate(&self) {
        for (index, node) in self.nodes.iter().enumerate().skip(self.masters) {
            let master = self.id(index % self.masters);
            until("a replica may follow its master", || {
                match node.command(&["CLUSTER", "REPLICATE", &master]) {
                    Reply::Text(_) => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            });
        }
    }

    /// Waits until every node that runs finds the cluster well, and replicas follow their masters.
    fn wait_until_well(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            until("the cluster is well", || {
                let state = self.state(node);
                let link = node.info("master_link_status");
                let follows = index < self.masters || link.as_deref() == Some("up");
                // All know who serves what: else one would send callers to a node that knows it is not in charge.
                let served = self.cluster_info(node, "cluster_slots_ok");
                let known = served.as_deref() == Some("16384")
                    && self.replicas_known_to(node) == self.nodes.len() - self.masters;
                if state.as_deref() == Some("ok") && follows && known {
                    return Ok(());
                }
                Err(format!("state {state:?}, link {link:?}, slots {served:?}"))
            });
        }
    }

    fn replicas_known_to(&self, node: &Server) -> usize {
        match node.try_command(&["CLUSTER", "NODES"]) {
            Ok(Reply::Text(nodes)) => nodes.lines().filter(|line| line.contains("slave")).count(),
            _ => 0,
        }
    }

    fn state(&self, node: &Server) -> Option<String> {
        self.cluster_info(node, "cluster_state")
    }

    fn cluster_info(&self, node: &Server, field: &str) -> Option<String> {
        let Ok(Reply::Text(info)) = node.try_command(&["CLUSTER", "INFO"]) else { return None };
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    }
}
