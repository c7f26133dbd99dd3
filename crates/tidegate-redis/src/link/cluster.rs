//! A cluster: each slot's keys at the node that has them, redirections followed.
//!
//! redis-rs has a cluster client of its own, which sends again by itself what may have run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::{Cmd, Value};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::backoff::Backoff;
use super::dial::{Door, Login, Way};
use super::node::Node;
use super::slots::{Map, redirect};
use super::{Failure, Options, Work};
use crate::address::Host;

/// The map is read anew so often though nobody found it wrong.
const READ_EVERY: Duration = Duration::from_secs(15);
/// After a reading the next waits at least so long, and up to the second of these while readings tell nothing new.
const READ_AT_MOST_EVERY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// A call follows so many redirections: one to where the slot is, and one more if it moves on meanwhile, is usual.
const REDIRECTIONS: usize = 8;

/// A cluster's nodes, and the task that keeps the map of its slots.
#[derive(Debug)]
pub(super) struct Cluster {
    shared: Arc<Shared>,
    keeper: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    seeds: Vec<Host>,
    login: Arc<Login>,
    options: Options,
    view: ArcSwap<View>,
    /// Held while the view is replaced.
    changing: Mutex<()>,
    doubted: Notify,
    turn: AtomicUsize,
}

/// Whose slots are whose, and the connections to them. Nodes that one was sent to may be there too.
#[derive(Debug, Clone)]
struct View {
    map: Map,
    nodes: HashMap<Host, Arc<Node>>,
}

impl Cluster {
    /// Reads the map from one of the seeds, and waits for the connections to the masters.
    pub async fn start(seeds: &[Host], login: Arc<Login>, options: &Options) -> Result<Self, String> {
        let mut troubles = Vec::new();
        for seed in seeds {
            match read(seed, &login, options.connect_within).await {
                Ok(map) => return Ok(Self::with(map, seeds, login, options).await),
                Err(trouble) => troubles.push(trouble),
            }
        }
        Err(troubles.join("; "))
    }

    async fn with(map: Map, seeds: &[Host], login: Arc<Login>, options: &Options) -> Self {
        let shared = Shared {
            seeds: seeds.to_vec(),
            login,
            options: options.clone(),
            view: ArcSwap::from_pointee(View { map: map.clone(), nodes: HashMap::new() }),
            changing: Mutex::new(()),
            doubted: Notify::new(),
            turn: AtomicUsize::new(0),
        };
        shared.renew(map);
        for node in shared.view.load().nodes.values() {
            // One that cannot be reached is known as such from now on; its replica may be about to take its place.
            let _ = node.first_connection().await;
        }
        let shared = Arc::new(shared);
        let keeper = tokio::spawn(Arc::clone(&shared).keep());
        Self { shared, keeper }
    }

    /// The nodes that serve slots.
    pub fn masters(&self) -> Vec<Arc<Node>> {
        let view = self.shared.view.load();
        view.map.masters().iter().filter_map(|host| view.nodes.get(host).cloned()).collect()
    }

    /// Does the work at the node that has the slot, wherever one is sent; without a slot, at any node.
    pub async fn run(&self, slot: Option<u16>, work: &impl Work) -> Result<Value, Failure> {
        let asking = redis::cmd("ASKING");
        let mut backoff = Backoff::between(Duration::from_millis(5), Duration::from_millis(200));
        let mut sent_to: Option<(Host, bool)> = None;
        let mut left = REDIRECTIONS;
        while left > 0 {
            left -= 1;
            let (host, ask) = match sent_to.take() {
                Some(sent_to) => sent_to,
                None => (self.shared.master_of(slot)?, false),
            };
            let node = self.shared.node(&host);
            match work.at(&node, ask.then_some(&asking)).await {
                Ok(Answer::Moved { to }) => {
                    let to = pointed(&to, &host)?;
                    self.shared.moved(slot, &to);
                    sent_to = Some((to, false));
                }
                Ok(Answer::Ask { to }) => sent_to = Some((pointed(&to, &host)?, true)),
                // Some keys are here and some there. Soon all are at one end; the caller says how long to wait for it.
                Ok(Answer::TryAgain(_)) => {
                    left = REDIRECTIONS;
                    tokio::time::sleep(backoff.next()).await;
                }
                Ok(answer) => {
                    if matches!(answer, Answer::NotMaster(_) | Answer::NotNow(_)) {
                        self.shared.doubted.notify_one();
                    }
                    return answer.or_failure();
                }
                Err(failure) => {
                    self.shared.doubted.notify_one();
                    return Err(failure);
                }
            }
        }
        Err(Failure::NotRun(format!("the cluster sent it from node to node {REDIRECTIONS} times")))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Shared {
    async fn keep(self: Arc<Self>) {
        let [least, most] = READ_AT_MOST_EVERY;
        let mut waits = Backoff::between(least, most);
        loop {
            tokio::select! {
                () = self.doubted.notified() => {}
                () = tokio::time::sleep(READ_EVERY) => {}
            }
            if self.read_anew().await {
                waits.reset();
            }
            tokio::time::sleep(waits.next()).await;
        }
    }

    /// Asks one node after the other for the map, until one gives it; whether it is another than before. Each time
    /// another comes first: one that is cut off from the rest knows nothing new.
    async fn read_anew(&self) -> bool {
        let known = self.view.load().map.masters().to_vec();
        let seeds = self.seeds.iter().filter(|seed| !known.contains(seed));
        let hosts: Vec<&Host> = known.iter().chain(seeds).collect();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        for step in 0..hosts.len() {
            let host = hosts[first.wrapping_add(step) % hosts.len()];
            if let Ok(map) = read(host, &self.login, self.options.connect_within).await {
                let new = map != self.view.load().map;
                self.renew(map);
                return new;
            }
        }
        false
    }

    /// Puts a map in force: connections to nodes that have slots no more are closed when their calls are through.
    fn renew(&self, map: Map) {
        self.change(|view| {
            let mut known = std::mem::take(&mut view.nodes);
            for host in map.masters() {
                let node = known.remove(host).unwrap_or_else(|| self.node_at(host));
                view.nodes.insert(host.clone(), node);
            }
            view.map = map;
        });
    }

    fn moved(&self, slot: Option<u16>, to: &Host) {
        // Where one slot went, others may have gone.
        self.doubted.notify_one();
        if let Some(slot) = slot
            && self.view.load().map.master_of(slot) != Some(to)
        {
            self.change(|view| view.map = view.map.moved(slot, to));
        }
    }

    /// Replaces the view by what `change` makes of it.
    fn change<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut view = View::clone(&self.view.load());
        let result = change(&mut view);
        self.view.store(Arc::new(view));
        result
    }

    fn master_of(&self, slot: Option<u16>) -> Result<Host, Failure> {
        let view = self.view.load();
        let found = match slot {
            Some(slot) => view.map.master_of(slot),
            None => {
                let masters = view.map.masters();
                masters.get(self.turn.fetch_add(1, Ordering::Relaxed) % masters.len().max(1))
            }
        };
        found.cloned().ok_or_else(|| {
            self.doubted.notify_one();
            Failure::NotRun(format!("no node of the cluster serves slot {}", slot.unwrap_or_default()))
        })
    }

    /// The node at `host`, which one may not have heard of so far.
    fn node(&self, host: &Host) -> Arc<Node> {
        if let Some(node) = self.view.load().nodes.get(host) {
            return Arc::clone(node);
        }
        self.change(|view| Arc::clone(view.nodes.entry(host.clone()).or_insert_with(|| self.node_at(host))))
    }

    fn node_at(&self, host: &Host) -> Arc<Node> {
        let way = Way { door: Door::Host(host.clone()), login: Arc::clone(&self.login) };
        Arc::new(Node::start(way, &self.options))
    }
}

fn pointed(to: &str, asked: &Host) -> Result<Host, Failure> {
    redirect(to, asked)
        .ok_or_else(|| Failure::NotRun(format!("{asked}: sent us to {to:?}, which is nowhere")))
}

async fn read(host: &Host, login: &Arc<Login>, within: Duration) -> Result<Map, String> {
    let way = Way { door: Door::Host(host.clone()), login: Arc::clone(login) };
    let mut command = Cmd::new();
    command.arg("CLUSTER").arg("SLOTS");
    let answer = way.ask(&command, within).await?;
    Map::read(answer, host).ok_or_else(|| format!("{host}: a cluster in which nobody serves a slot"))
}
