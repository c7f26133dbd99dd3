//! Random limits and traces for property tests: small figures, extreme ones, and stamps where things change.
//!
//! Strategies are boxed: unions of unions held in place outgrow a test thread's stack.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::cases::LimitSpec;
use crate::oracle::Kind;

/// The most units a limit, cost, credit or penalty may have.
pub const MOST_UNITS: u64 = 1_000_000_000_000;
/// The longest period or window.
pub const LONGEST_US: u64 = 366 * 86_400 * 1_000_000;
/// The latest stamp.
pub const LATEST_US: u64 = (1 << 53) - 1;
/// The most a log may admit or owe.
pub const MOST_LOGGED: u64 = 65_536;

/// A capacity, amount, cost or debt: mostly small, sometimes at an end of its range.
pub fn units() -> BoxedStrategy<u64> {
    prop_oneof![
        5 => 0..=5u64,
        5 => 1..=30u64,
        3 => 1..=2_000u64,
        1 => prop_oneof![Just(MOST_UNITS), Just(MOST_UNITS - 1), Just(999_999_999_989), Just(65_536)],
        1 => 0..=MOST_UNITS,
    ]
    .boxed()
}

/// A period or window in microseconds: round ones, primes, the ends of the range.
pub fn period_us() -> BoxedStrategy<u64> {
    prop_oneof![
        3 => 1..=40u64,
        2 => prop_oneof![Just(1_000u64), Just(1_000_000), Just(60_000_000), Just(3_600_000_000)],
        2 => prop_oneof![Just(7u64), Just(9_973), Just(999_983), Just(2_147_483_647)],
        1 => prop_oneof![Just(86_400_000_000u64), Just(LONGEST_US), Just(LONGEST_US - 1)],
        1 => 1..=LONGEST_US,
    ]
    .boxed()
}

/// One legal limit of any kind. Its name is left to [`policy`].
pub fn limit() -> BoxedStrategy<LimitSpec> {
    proptest::sample::select(Kind::ALL.to_vec()).prop_flat_map(limit_of).boxed()
}

/// One legal limit of this kind.
pub fn limit_of(kind: Kind) -> BoxedStrategy<LimitSpec> {
    let debt = prop_oneof![3 => Just(None), 1 => option::of(units())];
    (units(), units(), period_us(), debt)
        .prop_map(move |(capacity, amount, period_us, debt)| {
            let name = String::new();
            made_legal(LimitSpec { name, kind, capacity, amount, period_us, debt })
        })
        .boxed()
}

/// These figures, cut to what their kind may have.
fn made_legal(figures: LimitSpec) -> LimitSpec {
    let most = if figures.kind == Kind::SlidingWindowLog { MOST_LOGGED } else { MOST_UNITS };
    let amount = match figures.kind {
        Kind::LeakyBucket => figures.amount.max(1),
        kind if kind.is_bucket() => figures.amount,
        _ => 0,
    };
    let debt = figures.debt.map(|debt| debt.min(most));
    LimitSpec { capacity: figures.capacity.min(most), amount, debt, ..figures }
}

/// One to eight limits, mostly few.
pub fn policy() -> BoxedStrategy<Vec<LimitSpec>> {
    let few_or_many = prop_oneof![4 => vec(limit(), 1), 4 => vec(limit(), 2..=3), 1 => vec(limit(), 4..=8)];
    few_or_many.prop_map(named).boxed()
}

/// Names limits by position, as cases do.
pub fn named(mut limits: Vec<LimitSpec>) -> Vec<LimitSpec> {
    for (position, limit) in limits.iter_mut().enumerate() {
        limit.name = format!("limit{position}");
    }
    limits
}

/// One step of a random trace. Stamps and costs are told relative to the policy and to the answers so far, so
/// that a trace meets the instants at which something changes.
#[derive(Debug, Clone)]
pub struct TraceStep {
    /// How long after the step before it comes.
    pub gap: Gap,
    /// Which of a few keys it concerns.
    pub key: u8,
    /// What is done.
    pub act: Act,
}

/// The time between two steps.
#[derive(Debug, Clone, Copy)]
pub enum Gap {
    /// None.
    None,
    /// So many microseconds.
    Micros(u64),
    /// So many 64ths of the period of the n-th limit.
    OfPeriod(u8, u16),
    /// To the end of the n-th limit's aligned window, and so many microseconds less.
    ToEdge(u8, u64),
    /// Until the key's last answer said to retry, and so many microseconds less.
    ToRetry(u64),
    /// Until the key's last answer said it is as new, and so many microseconds less.
    ToReset(u64),
    /// Until the key's last answer said more is left, and so many microseconds less.
    ToGrowth(u64),
    /// The clock steps back by so many microseconds.
    Back(u64),
    /// The clock steps back by so many 64ths of the period of the n-th limit.
    BackOfPeriod(u8, u16),
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Act {
    /// A check.
    Check(Cost),
    /// A peek.
    Peek,
    /// A check that takes what is there.
    CheckUpTo(Cost),
    /// A credit.
    Credit(Cost),
    /// A forced charge.
    Penalize(Cost),
    /// Forgets the key.
    Reset,
    /// Other figures, the n-th limit's among them; kinds mostly stay.
    Reload(Reload),
}

/// A number of units, told relative to the policy.
#[derive(Debug, Clone, Copy)]
pub enum Cost {
    /// So many.
    Units(u64),
    /// So many 16ths of the capacity of the n-th limit.
    OfCapacity(u8, u8),
    /// What the key's last answer said was left in the n-th limit, and so many more.
    Left(u8, u64),
    /// The capacity of the n-th limit, and so many more.
    Above(u8, u64),
}

/// How a policy changes.
#[derive(Debug, Clone)]
pub enum Reload {
    /// The same figures again.
    Same,
    /// The n-th limit gets these figures and keeps its kind.
    Figures(u8, LimitSpec),
    /// The n-th limit becomes this one.
    Becomes(u8, LimitSpec),
    /// Another limit at the end, if there is room.
    Added(LimitSpec),
    /// The last limit goes, if it is not the only one.
    Dropped,
}

/// A trace of at most `longest` steps.
pub fn trace(longest: usize) -> impl Strategy<Value = Vec<TraceStep>> {
    vec(step(act()), 1..=longest)
}

/// A trace of checks and peeks alone.
pub fn trace_of_checks(longest: usize) -> impl Strategy<Value = Vec<TraceStep>> {
    let act = prop_oneof![6 => cost().prop_map(Act::Check), 1 => Just(Act::Peek), 2 => cost().prop_map(Act::CheckUpTo)];
    vec(step(act.boxed()), 1..=longest)
}

/// Where a trace begins: at the epoch, today, or close to the last stamp there is.
pub fn start_us() -> BoxedStrategy<u64> {
    prop_oneof![
        2 => 0..=1_000_000u64,
        3 => 1_700_000_000_000_000..=1_700_000_100_000_000u64,
        1 => (LATEST_US - 100_000_000)..=(LATEST_US - 1_000_000),
        1 => 0..=LATEST_US / 2,
    ]
    .boxed()
}

fn step(act: BoxedStrategy<Act>) -> impl Strategy<Value = TraceStep> {
    (gap(), 0..3u8, act).prop_map(|(gap, key, act)| TraceStep { gap, key: key / 2, act })
}

fn gap() -> BoxedStrategy<Gap> {
    prop_oneof![
        4 => Just(Gap::None),
        2 => (0..=20u64).prop_map(Gap::Micros),
        4 => (0..8u8, 0..=160u16).prop_map(|(limit, share)| Gap::OfPeriod(limit, share)),
        2 => (0..8u8, 0..=1u64).prop_map(|(limit, less)| Gap::ToEdge(limit, less)),
        4 => (0..=1u64).prop_map(Gap::ToRetry),
        1 => (0..=1u64).prop_map(Gap::ToReset),
        2 => (0..=1u64).prop_map(Gap::ToGrowth),
        1 => (0..=2_000_000u64).prop_map(Gap::Back),
        1 => (0..8u8, 0..=160u16).prop_map(|(limit, share)| Gap::BackOfPeriod(limit, share)),
    ]
    .boxed()
}

fn cost() -> BoxedStrategy<Cost> {
    prop_oneof![
        6 => (0..=4u64).prop_map(Cost::Units),
        4 => (0..8u8, 0..=16u8).prop_map(|(limit, share)| Cost::OfCapacity(limit, share)),
        3 => (0..8u8, 0..=1u64).prop_map(|(limit, more)| Cost::Left(limit, more)),
        1 => (0..8u8, 0..=2u64).prop_map(|(limit, more)| Cost::Above(limit, more)),
        1 => units().prop_map(Cost::Units),
    ]
    .boxed()
}

fn act() -> BoxedStrategy<Act> {
    prop_oneof![
        24 => cost().prop_map(Act::Check),
        4 => Just(Act::Peek),
        4 => cost().prop_map(Act::CheckUpTo),
        3 => cost().prop_map(Act::Credit),
        3 => cost().prop_map(Act::Penalize),
        1 => Just(Act::Reset),
        3 => reload().prop_map(Act::Reload),
    ]
    .boxed()
}

fn reload() -> BoxedStrategy<Reload> {
    prop_oneof![
        1 => Just(Reload::Same),
        8 => (0..8u8, limit()).prop_map(|(position, figures)| Reload::Figures(position, figures)),
        1 => (0..8u8, limit()).prop_map(|(position, limit)| Reload::Becomes(position, limit)),
        1 => limit().prop_map(Reload::Added),
        1 => Just(Reload::Dropped),
    ]
    .boxed()
}

impl Reload {
    /// The policy after the change.
    pub fn applied_to(&self, limits: &[LimitSpec]) -> Vec<LimitSpec> {
        let mut limits = limits.to_vec();
        let count = limits.len();
        match self {
            Reload::Same => {}
            Reload::Figures(position, figures) => {
                let limit = &mut limits[usize::from(*position) % count];
                *limit = made_legal(LimitSpec { kind: limit.kind, ..figures.clone() });
            }
            Reload::Becomes(position, limit) => limits[usize::from(*position) % count] = limit.clone(),
            Reload::Added(limit) if count < 8 => limits.push(limit.clone()),
            Reload::Dropped if count > 1 => {
                limits.pop();
            }
            Reload::Added(_) | Reload::Dropped => {}
        }
        named(limits)
    }
}
