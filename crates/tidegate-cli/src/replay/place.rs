//! Where a run in virtual time keeps its state: in memory, or in a store that it leaves as it found it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::store::{Ask, Check, StoreError, StoreErrorKind};
use tidegate::{
    ActivePolicy, Cost, Decision, Limiter, MemoryStore, Policy, PolicyHandle, PolicySet, Timestamp,
};
use tidegate_redis::{OnStoreError, RedisStore, RedisStoreBuilder};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::trace::{Pace, TraceCheck};

/// How long the server keeps what nobody touches: virtual time outruns its clock.
const SPARE: Duration = Duration::from_secs(24 * 3600);
/// How long an answer is waited for: a replay has time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// So many lines of a trace go to a store together.
const AT_ONCE: usize = 512;

/// The limiter of a run.
pub(super) enum Place {
    Memory(Limiter, Vec<PolicyHandle>),
    Shared(Box<Shared>),
}

/// By the places of their policies, the keys that were asked about, and whether each was ever charged.
type Touched = Vec<HashMap<Box<[u8]>, bool>>;

/// A limiter over a store that is somewhere else.
pub(super) struct Shared {
    runtime: Runtime,
    store: RedisStore,
    policies: Vec<Arc<ActivePolicy>>,
    /// What is to be removed. Held while checks are on their way, and for good once the program is about to end.
    touched: Arc<Mutex<Touched>>,
}

impl Place {
    pub(super) fn memory(policies: PolicySet) -> Self {
        let store = MemoryStore::builder().spare(Duration::MAX).build();
        let limiter = Limiter::builder(policies).store(store).clock(ManualClock::default()).build();
        let handles = handles(&limiter);
        Place::Memory(limiter, handles)
    }

    /// Opens the store, under a prefix that nobody else has.
    pub(super) fn shared(policies: PolicySet, store: RedisStoreBuilder) -> Result<Self, StoreError> {
        let failed = |reason: String| StoreError::new(StoreErrorKind::Outage, "of the replay", reason);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| failed(error.to_string()))?;
        let store = store
            .prefix(format!("tidegate:replay:{:016x}", u64::from_ne_bytes(random)))
            .spare(SPARE)
            .expire_unending(SPARE)
            .timeout(TIMEOUT)
            .on_store_error(OnStoreError::Deny);
        let store = runtime.block_on(store.open())?;
        let limiter = Limiter::builder(policies).store(store.clone()).clock(ManualClock::default()).build();
        let policies: Vec<_> = handles(&limiter).iter().map(PolicyHandle::in_force).collect();
        let touched = Arc::new(Mutex::new(vec![HashMap::new(); policies.len()]));
        let shared = Shared { runtime, store, policies, touched };
        shared.remove_when_interrupted();
        Ok(Place::Shared(Box::new(shared)))
    }

    /// Decides checks in their order, each under the policy beside it.
    #[inline]
    pub(super) fn decide<'c>(
        &self,
        checks: impl Iterator<Item = (usize, &'c TraceCheck)>,
        decisions: &mut Vec<Decision>,
    ) -> Result<(), StoreError> {
        match self {
            Place::Memory(_, handles) => decisions.extend(
                checks.map(|(policy, check)| handles[policy].check_at(&check.key, check.cost, check.at)),
            ),
            Place::Shared(shared) => decisions.extend(shared.decide(&checks.collect::<Vec<_>>())?),
        }
        Ok(())
    }

    /// So many checks are best decided together.
    pub(super) fn at_once(&self) -> usize {
        match self {
            Place::Memory(..) => 1,
            Place::Shared(_) => AT_ONCE,
        }
    }

    pub(super) fn pace(&self) -> Pace {
        match self {
            Place::Memory(..) => Pace::Memory,
            Place::Shared(_) => Pace::Store,
        }
    }

    /// States held: one for each (policy, key) that was ever charged.
    pub(super) fn states(&self) -> u64 {
        match self {
            Place::Memory(limiter, _) => limiter.store().keys(),
            Place::Shared(shared) => shared.states(),
        }
    }
}

impl Shared {
    fn decide(&self, checks: &[(usize, &TraceCheck)]) -> Result<Vec<Decision>, StoreError> {
        self.runtime.block_on(async {
            let mut touched = self.touched.lock().await;
            for (policy, check) in checks.iter().filter(|(_, check)| check.cost != Cost::PEEK) {
                if !touched[*policy].contains_key(&check.key) {
                    touched[*policy].insert(check.key.clone(), false);
                }
            }
            let asked: Vec<_> = checks.iter().map(|(policy, check)| self.asked(*policy, check)).collect();
            let decisions = self.store.check_timed(&asked).await?;
            for ((policy, check), _) in checks.iter().zip(&decisions).filter(|(_, it)| it.charged() > 0) {
                if let Some(charged) = touched[*policy].get_mut(&check.key) {
                    *charged = true;
                }
            }
            Ok(decisions)
        })
    }

    fn asked<'a>(&'a self, policy: usize, check: &'a TraceCheck) -> (Timestamp, Check<'a>) {
        let (policy, key, ask) = (&self.policies[policy], &check.key[..], Ask::Exactly(check.cost));
        (check.at, Check { policy, key, ask })
    }

    fn states(&self) -> u64 {
        let touched = self.touched.blocking_lock();
        touched.iter().flat_map(HashMap::values).filter(|charged| **charged).count() as u64
    }

    /// Whoever ends the run early finds the store as it was, too; whoever cannot wait for that asks twice.
    fn remove_when_interrupted(&self) {
        let (store, policies) = (self.store.clone(), self.policies.clone());
        let touched = Arc::clone(&self.touched);
        self.runtime.spawn(async move {
            let code = interrupted().await;
            let removing = async {
                // Checks on their way are back by then, and no other begins.
                let touched = std::mem::ManuallyDrop::new(touched.lock().await);
                remove(&store, &policies, &touched).await.map_err(|error| error.to_string())
            };
            let removed = tokio::select! {
                removed = removing => removed,
                _ = interrupted() => Err("interrupted again".to_owned()),
            };
            if let Err(reason) = removed {
                say(&left_behind(&reason));
            }
            std::process::exit(code);
        });
    }
}

/// Whatever becomes of a run, nothing of it stays in the store.
impl Drop for Shared {
    fn drop(&mut self) {
        let removed = self.runtime.block_on(async {
            let touched = self.touched.lock().await;
            remove(&self.store, &self.policies, &touched).await
        });
        if let Err(error) = removed {
            say(&left_behind(&error));
        }
    }
}

async fn remove(
    store: &RedisStore,
    policies: &[Arc<ActivePolicy>],
    touched: &Touched,
) -> Result<(), StoreError> {
    let keys: Vec<(&Policy, &[u8])> = policies
        .iter()
        .zip(touched)
        .flat_map(|(policy, keys)| keys.keys().map(|key| (&**policy.policy(), &key[..])))
        .collect();
    store.remove(&keys).await
}

/// Also where nobody hears it: the terminal may be gone.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn left_behind(reason: &dyn fmt::Display) -> String {
    format!(
        "tidegate: the keys of this run, tidegate:replay:*, could not be removed: {reason}\n\
         tidegate: they expire a day after they are as new, or were last charged if they never are"
    )
}

/// Waits for a signal that ends the program, and gives the code that a shell expects then.
#[cfg(unix)]
async fn interrupted() -> i32 {
    use tokio::signal::unix::{SignalKind, signal};
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
        return std::future::pending().await;
    };
    let mut hangup = if ends_by_hangup() { signal(SignalKind::hangup()).ok() } else { None };
    let hung_up = async {
        match &mut hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = hung_up => 129,
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 143,
    }
}

/// Whether a closed terminal ends the program: not under `nohup`, which has the signal ignored, and to listen to it
/// would undo that. Where it cannot be told, nobody listens.
#[cfg(unix)]
fn ends_by_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 0)
}

#[cfg(not(unix))]
async fn interrupted() -> i32 {
    match tokio::signal::ctrl_c().await {
        Ok(()) => 130,
        Err(_) => std::future::pending().await,
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Memory(..) => "Memory",
            Place::Shared(_) => "Shared",
        })
    }
}

fn handles<S: tidegate::store::Store>(limiter: &Limiter<S>) -> Vec<PolicyHandle<S>> {
    let policies = limiter.policies();
    policies.iter().filter_map(|policy| limiter.policy(policy.name()).ok()).collect()
}
