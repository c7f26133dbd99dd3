//! Where a replay keeps its state: in memory, or in a store that it leaves as it found it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate::clock::ManualClock;
use tidegate::store::{StoreError, StoreErrorKind};
use tidegate::{Decision, Limiter, MemoryStore, Policy, PolicyHandle, PolicySet};
use tidegate_redis::{OnStoreError, RedisStore, RedisStoreBuilder};
use tokio::runtime::Runtime;

use crate::trace::TraceCheck;

/// How long the server keeps what nobody touches: virtual time outruns its clock.
const SPARE: Duration = Duration::from_secs(24 * 3600);
/// How long an answer is waited for: a replay has time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The limiter of a replay.
pub(super) enum Place {
    Memory(Limiter, Vec<PolicyHandle>),
    Shared(Box<Shared>),
}

/// Keys by the places of their policies.
type Charged = BTreeSet<(usize, Box<[u8]>)>;

/// A limiter over a store that is somewhere else.
pub(super) struct Shared {
    runtime: Runtime,
    store: RedisStore,
    policies: PolicySet,
    handles: Vec<PolicyHandle<RedisStore>>,
    /// The keys that were charged, by the places of their policies: what is to be removed.
    charged: Arc<Mutex<Charged>>,
    /// The program is about to end.
    stopped: Arc<AtomicBool>,
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
        let limiter = Limiter::builder(policies.clone()).store(store.clone()).clock(ManualClock::default());
        let handles = handles(&limiter.build());
        let shared =
            Shared { runtime, store, policies, handles, charged: Arc::default(), stopped: Arc::default() };
        shared.remove_when_interrupted();
        Ok(Place::Shared(Box::new(shared)))
    }

    #[inline]
    pub(super) fn decide(&self, check: &TraceCheck) -> Result<Decision, StoreError> {
        match self {
            Place::Memory(_, handles) => Ok(handles[check.policy].check_at(&check.key, check.cost, check.at)),
            Place::Shared(shared) => shared.decide(check),
        }
    }

    /// States held: one for each (policy, key) that was ever charged.
    pub(super) fn states(&self) -> u64 {
        match self {
            Place::Memory(limiter, _) => limiter.store().keys(),
            Place::Shared(shared) => shared.charged().len() as u64,
        }
    }
}

impl Shared {
    fn decide(&self, check: &TraceCheck) -> Result<Decision, StoreError> {
        while self.stopped.load(Ordering::SeqCst) {
            std::thread::park();
        }
        let decision = self.handles[check.policy].check_at(&check.key, check.cost, check.at);
        let decision = self.runtime.block_on(decision)?;
        if decision.charged() > 0 {
            self.charged().insert((check.policy, check.key.clone()));
        }
        Ok(decision)
    }

    /// Whoever ends the replay early finds the store as it was, too.
    fn remove_when_interrupted(&self) {
        let (store, policies, charged) =
            (self.store.clone(), self.policies.clone(), Arc::clone(&self.charged));
        let stopped = Arc::clone(&self.stopped);
        self.runtime.spawn(async move {
            let code = interrupted().await;
            stopped.store(true, Ordering::SeqCst);
            // A check on its way is back by then, and no other begins.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let charged = charged.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Err(error) = remove(&store, &policies, &charged).await {
                eprintln!("{}", left_behind(&error));
            }
            std::process::exit(code);
        });
    }

    fn charged(&self) -> MutexGuard<'_, Charged> {
        self.charged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whatever becomes of a replay, nothing of it stays in the store.
impl Drop for Shared {
    fn drop(&mut self) {
        let charged = std::mem::take(&mut *self.charged());
        if let Err(error) = self.runtime.block_on(remove(&self.store, &self.policies, &charged)) {
            eprintln!("{}", left_behind(&error));
        }
    }
}

async fn remove(store: &RedisStore, policies: &PolicySet, charged: &Charged) -> Result<(), StoreError> {
    let policies: Vec<&Policy> = policies.iter().map(|policy| &**policy).collect();
    let keys: Vec<(&Policy, &[u8])> =
        charged.iter().map(|(place, key)| (policies[*place], &key[..])).collect();
    store.remove(&keys).await
}

fn left_behind(error: &StoreError) -> String {
    format!(
        "tidegate: the replay's keys, tidegate:replay:*, could not be removed: {error}\n\
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
    tokio::select! {
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 143,
    }
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
