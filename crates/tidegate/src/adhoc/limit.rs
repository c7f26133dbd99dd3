//! A limit that a caller brings along.

use tidegate_core::{Limit, Period, Plan, Rate, Units};

/// A limit whose figures come with each check instead of from a policy.
///
/// Whoever checks often under the same figures keeps one: a check with it allocates nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdHocLimit {
    plan: Plan,
    figures: Figures,
}

/// The figures of a limit as an entry keeps them: capacity (40 bits), amount (40) and period (45).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Figures(pub(super) [u64; 2]);

const AMOUNT_BITS: u32 = 40;
const PERIOD_BITS: u32 = 45;

const _: () = assert!(Units::MAX.get() < 1 << AMOUNT_BITS && Period::MAX.as_micros() < 1 << PERIOD_BITS);

impl AdHocLimit {
    /// GCRA at `rate` with `burst` units admitted at once; see [`Limit::gcra`].
    pub fn gcra(rate: Rate, burst: impl Into<Units>) -> Self {
        let burst = burst.into();
        // Nothing here charges by force, so there is no debt to leave room for.
        let limit = Limit::gcra(rate, burst).with_debt(0).expect("only a log bounds the debt it may have");
        AdHocLimit { plan: Plan::single(limit), figures: Figures::new(rate, burst) }
    }

    /// The limit.
    pub fn limit(&self) -> &Limit {
        &self.plan.limits()[0]
    }

    /// A plan of the limit alone.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn figures(&self) -> Figures {
        self.figures
    }
}

impl Figures {
    fn new(rate: Rate, burst: Units) -> Self {
        let amount = u128::from(burst.get()) << AMOUNT_BITS | u128::from(rate.amount().get());
        let all = amount << PERIOD_BITS | u128::from(rate.per().as_micros());
        Figures([(all >> 64) as u64, all as u64])
    }

    /// The limit of these figures.
    pub(super) fn limit(self) -> AdHocLimit {
        let all = u128::from(self.0[0]) << 64 | u128::from(self.0[1]);
        let field = |from: u32, bits: u32| (all >> from) as u64 & ((1 << bits) - 1);
        let units = |from| Units::new(field(from, AMOUNT_BITS)).unwrap_or(Units::MAX);
        // What was put in came from `Units` and `Period`, so it is in range.
        let per = Period::from_micros(field(0, PERIOD_BITS)).unwrap_or(Period::MAX);
        AdHocLimit::gcra(Rate::new(units(PERIOD_BITS), per), units(PERIOD_BITS + AMOUNT_BITS))
    }
}
