//! What is asked, on whichever wire.

use tidegate::Period;
use tidegate::store::StoreErrorKind;

use crate::unanswered::told;

/// One question: may a request with these descriptors go ahead?
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub domain: &'a str,
    pub descriptors: Vec<Descriptor<'a>>,
    /// The hits of descriptors that do not say; 0 is 1.
    pub hits_addend: u32,
}

/// What one limit is looked up by, and what is charged to it.
#[derive(Debug, Clone)]
pub(crate) struct Descriptor<'a> {
    pub entries: Vec<(&'a str, &'a str)>,
    /// Figures that come with the request.
    pub limit: Option<Override>,
    /// 0 looks and charges nothing.
    pub hits: Option<u64>,
    /// The hits are given back.
    pub gives_back: bool,
}

/// Figures that come with the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Override {
    pub requests: u32,
    pub unit: Unit,
}

/// A span that limits are given per.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("domain: it is empty (write the domain of your limits)")]
    NoDomain,
    #[error("descriptors: there is none (send at least one)")]
    NoDescriptors,
    #[error("no limits for Envoy are configured (give envoy: in the configuration, or --envoy-config)")]
    NoRules,
    #[error(
        "descriptors[{index}].limit.unit: {unit:?}: unknown (use SECOND, MINUTE, HOUR, DAY, MONTH, YEAR)"
    )]
    Unit { index: usize, unit: String },
    #[error("no policy is named {policy:?} (reload the policies before the rules that name them)")]
    NoPolicy { policy: String },
    #[error("the server keeps as many clients' limits as it may, and this one is new (raise max_keys)")]
    NoRoom,
    /// The store could not answer.
    #[error("{}", told(*.0))]
    Unanswered(StoreErrorKind),
}

impl Unit {
    const ALL: [Unit; 7] =
        [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month, Unit::Year];

    /// The unit of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// Its name: `second`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Year => "year",
        }
    }

    /// Its length: a month has 30 days, a year 365.
    pub fn period(self) -> Period {
        const DAY: u32 = 24 * 60 * 60;
        let seconds = match self {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => 60 * 60,
            Unit::Day => DAY,
            Unit::Week => 7 * DAY,
            Unit::Month => 30 * DAY,
            Unit::Year => 365 * DAY,
        };
        Period::from_secs(seconds).expect("a year of 365 days is within 366")
    }

    /// The unit that is this long.
    pub fn lasting(micros: u128) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| u128::from(unit.period().as_micros()) == micros)
    }
}
