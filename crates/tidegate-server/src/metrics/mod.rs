//! What the server counts. A key is never a label: there may be millions, and they are nobody else's business.

mod exposition;
mod latency;
mod stripes;
mod told;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate::store::StoreError;
use tidegate::{Outcome, PolicySet, Timestamp};

use latency::Latency;
use stripes::Striped;
use told::Told;

pub(crate) use exposition::{CONTENT_TYPE, render};

/// The outcomes in the order they are counted in.
const OUTCOMES: [Outcome; 4] =
    [Outcome::Allowed, Outcome::Denied, Outcome::CostExceedsCapacity, Outcome::Overloaded];

/// One policy's decisions, by outcome, and last those of an outcome that this version has no word for.
type ByOutcome = Striped<{ OUTCOMES.len() + 1 }>;

/// The counters of one policy.
#[derive(Debug)]
pub(crate) struct PolicyCounters(Arc<ByOutcome>);

impl PolicyCounters {
    /// Counts a decision, whose time is told by [`Metrics::took`].
    pub fn count(&self, outcome: Outcome) {
        self.0.add(place(outcome), 1);
    }
}

/// Where an outcome is counted.
fn place(outcome: Outcome) -> usize {
    OUTCOMES.iter().position(|known| *known == outcome).unwrap_or(OUTCOMES.len())
}

/// Counters of the whole server.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Found without a lock; copied when a policy is seen for the first time.
    decisions: ArcSwap<HashMap<Box<str>, Arc<ByOutcome>>>,
    adding: Mutex<()>,
    /// Under no policy: the figures came with the request.
    throttled: ByOutcome,
    latency: Latency,
    reloads: Reloads,
    store_errors: AtomicU64,
    told: Told,
}

/// Reloads of the configuration.
#[derive(Debug, Default)]
struct Reloads {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// Microseconds since 1970.
    last_success: AtomicU64,
}

impl Metrics {
    /// Nothing counted yet. The configuration in force is taken as loaded at `now`.
    pub fn new(now: Timestamp) -> Self {
        let reloads = Reloads { last_success: AtomicU64::new(now.as_micros()), ..Reloads::default() };
        Metrics {
            decisions: ArcSwap::default(),
            adding: Mutex::new(()),
            throttled: ByOutcome::new(),
            latency: Latency::new(),
            reloads,
            store_errors: AtomicU64::new(0),
            told: Told::default(),
        }
    }

    /// Counts a decision of the policy of this name that took so many microseconds.
    pub fn decided(&self, policy: &str, outcome: Outcome, micros: u64) {
        self.counted(policy, outcome);
        self.took(micros, 1);
    }

    /// Counts a decision of the policy of this name, whose time is told by [`took`](Self::took).
    pub fn counted(&self, policy: &str, outcome: Outcome) {
        match self.decisions.load().get(policy) {
            Some(counters) => counters.add(place(outcome), 1),
            None => self.counters(policy).add(place(outcome), 1),
        }
    }

    /// The counters of the policy of this name, for several decisions soon. Kept for longer, they may be those of a
    /// policy that is no more.
    pub fn of_policy(&self, policy: &str) -> PolicyCounters {
        let known = self.decisions.load().get(policy).cloned();
        PolicyCounters(known.unwrap_or_else(|| self.counters(policy)))
    }

    /// Counts a decision under figures that the caller brought along.
    pub fn throttled(&self, outcome: Outcome) {
        self.throttled.add(place(outcome), 1);
    }

    /// So many decisions, made together, took so many microseconds.
    pub fn took(&self, micros: u64, decisions: u64) {
        self.latency.record(micros, decisions);
    }

    /// Counts a check that the store could not answer. Whether that is to be told: outages once a second at most, and
    /// what an operator has to mend once a second each.
    pub fn store_failed(&self, now: Timestamp, error: &StoreError) -> bool {
        self.store_errors.fetch_add(1, Ordering::Relaxed);
        self.told.is_due(now, error)
    }

    /// Counts a reload that put a configuration in force at `now`.
    pub fn reloaded(&self, now: Timestamp) {
        self.reloads.succeeded.fetch_add(1, Ordering::Relaxed);
        self.reloads.last_success.store(now.as_micros(), Ordering::Relaxed);
    }

    /// Counts a reload that was refused.
    pub fn reload_failed(&self) {
        self.reloads.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts these policies from now on, and forgets those that are no more.
    fn settle(&self, policies: &PolicySet) {
        let known = self.decisions.load();
        let same = known.len() == policies.len() && policies.iter().all(|it| known.contains_key(it.name()));
        if same {
            return;
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.decisions.load_full();
        let counters = |name: &str| known.get(name).cloned().unwrap_or_else(|| Arc::new(ByOutcome::new()));
        let settled = policies.iter().map(|policy| (policy.name().into(), counters(policy.name()))).collect();
        self.decisions.store(Arc::new(settled));
    }

    fn counters(&self, policy: &str) -> Arc<ByOutcome> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.decisions.load_full();
        if let Some(counters) = known.get(policy) {
            return Arc::clone(counters);
        }
        let counters = Arc::new(ByOutcome::new());
        let mut more = (*known).clone();
        more.insert(policy.into(), Arc::clone(&counters));
        self.decisions.store(Arc::new(more));
        counters
    }
}
