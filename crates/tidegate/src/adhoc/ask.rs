//! What is asked of a store about keys whose figures come with each check.

use tidegate_core::{Cost, Decision, Timestamp, Units};

use super::{AdHocLimit, AdHocSpace};
use crate::store::{Check, Grouping, Store};

/// One check under figures that come with it.
#[derive(Debug, Clone, Copy)]
pub struct AdHocCheck<'a> {
    /// Whose key it is.
    pub space: AdHocSpace,
    /// The key: any bytes.
    pub key: &'a [u8],
    /// The figures.
    pub limit: &'a AdHocLimit,
    /// What it would have. 0 is a peek.
    pub cost: Cost,
}

/// The decisions of a group: of its checks under policies and of those under figures of their own, each in order.
#[derive(Debug, Clone, Default)]
pub struct Together {
    /// Under policies.
    pub policies: Vec<Decision>,
    /// Under figures that came with them.
    pub ad_hoc: Vec<Decision>,
}

impl Together {
    /// Whether each is admitted.
    pub fn is_allowed(&self) -> bool {
        self.policies.iter().chain(&self.ad_hoc).all(Decision::is_allowed)
    }
}

/// A store that also keeps keys whose figures come with each check: any number of them, none said beforehand.
///
/// A key that comes with other figures than before is carried over by the first check with a cost above 0, admitted or
/// not. What is left of it is kept, cut to the new capacity, and a key that is full stays full; so figures with a smaller
/// capacity in between may make one full that was not. The time since its last charge counts at the slower of both rates,
/// for nobody knows when the figures changed.
pub trait AdHoc: Store {
    /// Decides checks that are independent of one another, in order.
    fn check_ad_hoc(&self, now: Timestamp, checks: &[AdHocCheck<'_>]) -> Self::Answers;

    /// Gives units back to a key, to no more than a full bucket; the check's cost has no part in it. Answers how the
    /// key then stands.
    fn credit_ad_hoc(&self, now: Timestamp, of: AdHocCheck<'_>, units: Units) -> Self::Answer<Decision>;

    /// Forgets keys of a space. How many of them were held.
    fn forget_ad_hoc(&self, space: AdHocSpace, keys: &[&[u8]]) -> Self::Answer<u64>;

    /// As [`Store::check_group`], with checks under figures of their own among the others. If two of these are of one
    /// key, the figures of the first count for both.
    fn check_group_with(
        &self,
        now: Timestamp,
        checks: &[Check<'_>],
        ad_hoc: &[AdHocCheck<'_>],
        grouping: Grouping,
    ) -> Self::Answer<Together>;
}
