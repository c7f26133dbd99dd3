//! Traffic that shows what tells the algorithms apart, cut to any nominal limit.

use clap::ValueEnum;
use tidegate::{Cost, Timestamp};

use super::Nominal;

/// The built-in traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// One client at exactly the rate, and then at twice the rate
    Steady,
    /// One client that idles for long and then sends twice what it may at once
    BurstAfterIdle,
    /// One client that sends a window's worth just before a window's edge and again just after it
    WindowEdge,
    /// One client at half the rate beside one at ten times the rate
    NoisyNeighbour,
}

/// One check of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes.
    pub at: Timestamp,
    /// Who sends it.
    pub key: &'static str,
    /// What it asks for.
    pub cost: Cost,
}

/// Checks that make up one window's worth, at most; beyond that each costs more.
const MOST_A_WINDOW: u64 = 1_000;

impl Scenario {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Steady => "steady",
            Scenario::BurstAfterIdle => "burst-after-idle",
            Scenario::WindowEdge => "window-edge",
            Scenario::NoisyNeighbour => "noisy-neighbour",
        }
    }

    /// The traffic, in order of time.
    pub fn arrivals(self, nominal: &Nominal) -> Vec<Arrival> {
        let traffic = Traffic::new(nominal);
        match self {
            Scenario::Steady => {
                let mut arrivals = traffic.evenly("client", (0, 40), 4);
                arrivals.extend(traffic.evenly("client", (40, 80), 8));
                arrivals
            }
            Scenario::BurstAfterIdle => {
                // In the middle of a window, so that no edge is near.
                let mut arrivals = traffic.evenly("client", (0, 10), 0);
                arrivals.extend(traffic.evenly("client", (35, 36), 2));
                arrivals.extend(traffic.evenly("client", (36, 56), 2));
                arrivals
            }
            Scenario::WindowEdge => {
                let mut arrivals = traffic.evenly("client", (9, 10), 1);
                arrivals.extend(traffic.evenly("client", (10, 11), 1));
                arrivals
            }
            Scenario::NoisyNeighbour => {
                let mut arrivals = traffic.evenly("quiet", (0, 40), 2);
                arrivals.extend(traffic.evenly("noisy", (0, 40), 40));
                arrivals.sort_by_key(|arrival| arrival.at);
                arrivals
            }
        }
    }
}

/// Traffic in units of a window and what it holds.
struct Traffic {
    /// The edge of a window.
    start: u64,
    window: u64,
    /// Checks that ask for one window's worth.
    checks: u64,
    cost: Cost,
}

impl Traffic {
    fn new(nominal: &Nominal) -> Self {
        const START: u64 = 1_700_000_000_000_000;
        let (window, limit) = (nominal.window().as_micros(), nominal.limit().get());
        let cost = limit.div_ceil(MOST_A_WINDOW);
        Traffic {
            start: START.next_multiple_of(window),
            window,
            checks: limit.div_ceil(cost),
            // A thousandth of a legal limit.
            cost: Cost::new(cost).unwrap_or(Cost::MAX),
        }
    }

    /// `amount` windows' worth of checks, evenly from one tenth of a window after the start to another; of none,
    /// one single check.
    fn evenly(&self, key: &'static str, (from, to): (u64, u64), amount: u64) -> Vec<Arrival> {
        let checks = (self.checks * amount).max(1);
        let span = u128::from(self.window) * u128::from(to - from);
        let at = |check: u64| {
            let offset =
                u128::from(self.window) * u128::from(from) + span * u128::from(check) / u128::from(checks);
            // 80 tenths of at most 366 days.
            let offset = u64::try_from(offset / 10).unwrap_or(u64::MAX);
            Timestamp::saturating_from_micros(self.start.saturating_add(offset))
        };
        (0..checks).map(|check| Arrival { at: at(check), key, cost: self.cost }).collect()
    }
}
