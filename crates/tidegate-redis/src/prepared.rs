//! What of a plan goes into every call, made once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use tidegate::{ActivePolicy, AdHocLimit, Algorithm, Plan, Policy};

use crate::record::{Tag, double, doubles, name_hash, width};
use crate::script::{Swift, most_counted};

/// The name of the one limit that figures which come with a check are.
const AD_HOC: &str = "ad hoc";

/// A plan as the scripts are told of it.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Of which it is; to know whether it still is. Figures that came with a check are of none.
    policy: Option<Arc<Policy>>,
    pub(crate) plan: Plan,
    /// Hashes of the limits' names, in order.
    pub(crate) names: Vec<u32>,
    /// The tag of records under it.
    pub(crate) tag: Vec<u8>,
    /// Its figures, as the script reads them.
    pub(crate) figures: Vec<u8>,
    /// How many of its limits keep a log.
    pub(crate) logs: usize,
    /// The script made for it, if it keeps no log.
    pub(crate) swift: Option<Swift>,
    /// Whether its buckets are kept in the classic layout.
    pub(crate) is_classic: bool,
}

impl Prepared {
    /// Of a policy.
    pub(crate) fn new(policy: &Arc<Policy>, plan: &Plan, is_classic: bool) -> Self {
        let names = policy.limit_names().map(name_hash).collect();
        Prepared { policy: Some(Arc::clone(policy)), ..Prepared::of(plan, names, is_classic) }
    }

    /// The tag of records under figures that come with each check.
    pub(crate) fn ad_hoc_tag(limit: &AdHocLimit) -> Vec<u8> {
        Tag { plan: limit.plan().clone(), names: vec![name_hash(AD_HOC)] }.encode()
    }

    /// Of figures that come with each check.
    pub(crate) fn ad_hoc(limit: &AdHocLimit) -> Self {
        Prepared::of(limit.plan(), vec![name_hash(AD_HOC)], false)
    }

    fn of(plan: &Plan, names: Vec<u32>, is_classic: bool) -> Self {
        let tag = Tag { plan: plan.clone(), names: names.clone() }.encode();
        let logs = plan.limits().iter().filter(|limit| limit.keeps_log()).count();
        let figures = figures(plan, logs);
        let swift = Swift::of(plan).filter(|_| !is_classic);
        Prepared { policy: None, plan: plan.clone(), names, tag, figures, logs, swift, is_classic }
    }

    /// The policy's name; `None` for figures that came with a check.
    pub(crate) fn policy_name(&self) -> Option<&str> {
        self.policy.as_deref().map(Policy::name)
    }

    /// Whether it is of this very policy.
    fn is_of(&self, policy: &Arc<Policy>) -> bool {
        self.policy.as_ref().is_some_and(|own| Arc::ptr_eq(own, policy))
    }
}

/// The bytes of the state without its rings, then each limit's kind and figures, then the number of logs.
fn figures(plan: &Plan, logs: usize) -> Vec<u8> {
    let mut out = Vec::new();
    doubles(&[double(8 * width(plan) as u64)], &mut out);
    for limit in plan.limits() {
        let capacity = double(limit.capacity().get());
        let window = limit.window().map_or(0.0, |window| double(window.as_micros()));
        match limit.algorithm() {
            Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
                let (amount, period) = limit.rate().map_or((0, 1), |rate| rate.lowest_terms());
                out.push(b'b');
                doubles(&[capacity, double(amount), double(period)], &mut out);
            }
            Algorithm::FixedWindow => {
                out.push(b'f');
                doubles(&[capacity, window, most_counted(limit)], &mut out);
            }
            Algorithm::SlidingWindowLog => {
                out.push(b'l');
                doubles(&[capacity, window, most_counted(limit)], &mut out);
            }
            Algorithm::SlidingWindowCounter => {
                out.push(b'c');
                doubles(&[capacity, window, most_counted(limit)], &mut out);
            }
        }
    }
    doubles(&[double(logs as u64)], &mut out);
    out
}

/// Plans that were asked about, by their ids.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// The policies whose buckets are kept in the classic layout.
    classic: HashSet<String>,
    plans: RwLock<HashMap<u32, Arc<Prepared>>>,
}

impl Shelf {
    pub(crate) fn new(classic: impl IntoIterator<Item = String>) -> Self {
        Shelf { classic: classic.into_iter().collect(), plans: RwLock::default() }
    }

    /// The plan in force for `key`.
    pub(crate) fn plan_for(&self, active: &ActivePolicy, key: &[u8]) -> Arc<Prepared> {
        let (id, plan) = active.plan_for(key);
        let known = self.plans.read().unwrap_or_else(PoisonError::into_inner).get(&id.get()).cloned();
        match known {
            // An id is given again once nobody writes under it.
            Some(prepared) if prepared.is_of(active.policy()) => prepared,
            _ => {
                let is_classic = self.classic.contains(active.policy().name());
                let prepared = Arc::new(Prepared::new(active.policy(), plan, is_classic));
                let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
                plans.insert(id.get(), Arc::clone(&prepared));
                prepared
            }
        }
    }

    /// Lets plans go whose policies are not among these.
    pub(crate) fn keep(&self, policies: &[Arc<ActivePolicy>]) {
        let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|_, plan| policies.iter().any(|active| plan.is_of(active.policy())));
    }
}
