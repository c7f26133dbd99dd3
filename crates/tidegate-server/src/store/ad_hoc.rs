//! Keys whose figures come with each check, in whichever store the server runs on.

use tidegate::store::{AdHoc, Check, Grouping, Together};
use tidegate::{AdHocCheck, AdHocSpace, Decision, MemoryStore, Timestamp, Units};

use super::{AnyStore, Soon, SoonEach, degraded};

impl AdHoc for AnyStore {
    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> SoonEach {
        self.ask_each(
            |memory| MemoryStore::check_ad_hoc(memory, now, checks),
            |store| store.check_ad_hoc(now, checks),
        )
    }

    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Soon<Decision> {
        let answer = self.ask(
            |memory| MemoryStore::credit_ad_hoc(memory, now, of, units),
            |store| store.credit_ad_hoc(now, of, units),
        );
        self.counted(answer, |decision| degraded([decision]))
    }

    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> Soon<u64> {
        self.ask(
            |memory| MemoryStore::forget_ad_hoc(memory, space, keys),
            |store| store.forget_ad_hoc(space, keys),
        )
    }

    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Soon<Together> {
        let answer = self.ask(
            |memory| MemoryStore::check_group_with(memory, now, checks, ad_hoc, grouping),
            |store| store.check_group_with(now, checks, ad_hoc, grouping),
        );
        self.counted(answer, |Together { policies, ad_hoc }| degraded(policies) + degraded(ad_hoc))
    }
}
