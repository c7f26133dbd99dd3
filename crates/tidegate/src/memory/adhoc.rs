//! Keys whose figures come with each check, beside those of policies.

use tidegate_core::{Decision, Timestamp, Units};

use super::MemoryStore;
use crate::adhoc::{AdHoc, AdHocCheck, AdHocSpace, Together};
use crate::store::{Check, Grouping};

impl AdHoc for MemoryStore {
    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> Vec<Decision> {
        let decide = |AdHocCheck { space, key, limit, cost }: &AdHocCheck<'_>| {
            self.ad_hoc(*space).check(now, key, limit, *cost)
        };
        checks.iter().map(decide).collect()
    }

    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Decision {
        self.ad_hoc(of.space).credit(now, of.key, of.limit, units)
    }

    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> u64 {
        let store = self.ad_hoc(space);
        keys.iter().filter(|key| store.remove(key)).count() as u64
    }

    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Together {
        self.decide_group_with(now, checks, ad_hoc, grouping)
    }
}
