//! The policies that commands name, looked up for all connections at once and not for each read of each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tidegate::{Decision, Policy, PolicySet};
use tidegate_fields::decided_under;

use crate::app::App;
use crate::metrics::PolicyCounters;
use crate::store::Handle;

/// The policies of one configuration, by name.
#[derive(Debug, Default)]
pub(super) struct Directory {
    set: Arc<PolicySet>,
    known: Vec<Known>,
    places: HashMap<Box<[u8]>, usize>,
}

/// A policy that commands decide under.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) handle: Handle,
    pub(super) counters: PolicyCounters,
    policy: Arc<Policy>,
}

impl Directory {
    /// Of the policies now in force.
    pub(super) fn of(app: &App) -> Self {
        let set = app.limiter().policies();
        let mut directory = Directory { set: Arc::clone(&set), ..Directory::default() };
        for policy in set.iter() {
            // One that is just being removed is as good as gone.
            let Ok(handle) = app.limiter().policy(policy.name()) else { continue };
            let counters = app.metrics().of_policy(policy.name());
            directory.places.insert(policy.name().as_bytes().into(), directory.known.len());
            directory.known.push(Known { policy: handle.policy(), handle, counters });
        }
        directory
    }

    /// Whether these are the policies in force.
    pub(super) fn is_of(&self, set: &Arc<PolicySet>) -> bool {
        Arc::ptr_eq(&self.set, set)
    }

    /// The place of the policy of this name.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        match &self.known[..] {
            [only] => (only.policy.name().as_bytes() == name).then_some(0),
            _ => self.places.get(name).copied(),
        }
    }

    /// The policy at a place that [`find`](Self::find) returned.
    #[inline]
    pub(super) fn at(&self, place: usize) -> &Known {
        &self.known[place]
    }
}

impl Known {
    /// The version of the policy that a decision was just made under.
    #[inline]
    pub(super) fn version(&self, key: &[u8], decision: &Decision) -> Cow<'_, Arc<Policy>> {
        match self.handle.is_current() {
            true => Cow::Borrowed(&self.policy),
            false => {
                let before = Arc::clone(&self.policy);
                Cow::Owned(decided_under(before, self.handle.policy(), key, decision))
            }
        }
    }
}
