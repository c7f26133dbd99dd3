//! Stores that answer by futures, each as one of many: which it is, and what its futures are, is forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate::store::{AdHoc, Adjustment, Check, Grouping, Snapshot, Store, Together};
use tidegate::{ActivePolicy, AdHocCheck, AdHocSpace, Decision, Penalty, PlanId, Timestamp, Units};

use super::{Later, LaterEach};

/// Any store, its kind of answer forgotten.
pub(super) trait Elsewhere: Send + Sync {
    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId>;
    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Later<Decision>;
    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> LaterEach;
    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Later<Vec<Decision>>;
    fn adjust(&self, now: Timestamp, of: &Arc<ActivePolicy>, key: &[u8], by: Adjustment) -> Later<Penalty>;
    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Later<Snapshot>;
    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> LaterEach;
    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Later<Decision>;
    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> Later<u64>;
    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Later<Together>;
}

impl<S: AdHoc> Elsewhere for S {
    fn sweep(&self, now: Timestamp, policies: &[Arc<ActivePolicy>]) -> BTreeSet<PlanId> {
        Store::sweep(self, now, policies)
    }

    fn check_one(&self, now: Timestamp, check: Check<'_>) -> Later<Decision> {
        Box::pin(S::settled(Store::check_one(self, now, check)))
    }

    fn check_each(&self, now: Timestamp, checks: &[Check<'_>]) -> LaterEach {
        Box::pin(S::each_settled(Store::check_each(self, now, checks)))
    }

    fn check_group(&self, now: Timestamp, checks: &[Check<'_>], grouping: Grouping) -> Later<Vec<Decision>> {
        Box::pin(S::settled(Store::check_group(self, now, checks, grouping)))
    }

    fn adjust(&self, now: Timestamp, of: &Arc<ActivePolicy>, key: &[u8], by: Adjustment) -> Later<Penalty> {
        Box::pin(S::settled(Store::adjust(self, now, of, key, by)))
    }

    fn snapshot(&self, now: Timestamp, policy: &Arc<ActivePolicy>, key: &[u8]) -> Later<Snapshot> {
        Box::pin(S::settled(Store::snapshot(self, now, policy, key)))
    }

    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> LaterEach {
        Box::pin(S::each_settled(AdHoc::check_ad_hoc(self, now, checks)))
    }

    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Later<Decision> {
        Box::pin(S::settled(AdHoc::credit_ad_hoc(self, now, of, units)))
    }

    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> Later<u64> {
        Box::pin(S::settled(AdHoc::forget_ad_hoc(self, space, keys)))
    }

    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Later<Together> {
        Box::pin(S::settled(AdHoc::check_group_with(self, now, checks, ad_hoc, grouping)))
    }
}
