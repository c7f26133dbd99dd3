//! An amount growing over time, in memory that does not.

use std::collections::BTreeMap;

use tidegate::Timestamp;

/// How much has come by when. Exact while it has few steps; with more of them neighbours are merged, until their
/// distance is less than a pixel of a plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// Amounts by the number of the slot of time they came in.
    steps: BTreeMap<u64, u128>,
    /// The width of a slot, in microseconds.
    slot: u64,
}

/// More steps than this are merged.
const MOST_STEPS: usize = 400;

impl Curve {
    /// Nothing has come yet.
    pub fn new() -> Self {
        Curve { steps: BTreeMap::new(), slot: 1 }
    }

    /// `amount` comes at `at`; times may come in any order.
    pub fn add(&mut self, at: Timestamp, amount: u64) {
        if amount == 0 {
            return;
        }
        *self.steps.entry(at.as_micros() / self.slot).or_default() += u128::from(amount);
        while self.steps.len() > MOST_STEPS {
            self.slot *= 2;
            let mut merged = BTreeMap::new();
            for (slot, amount) in &self.steps {
                *merged.entry(slot / 2).or_default() += amount;
            }
            self.steps = merged;
        }
    }

    /// The amount that has come by each step, with the time of the step.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, u128)> {
        self.steps.iter().scan(0_u128, |sum, (slot, amount)| {
            *sum += amount;
            Some((Timestamp::saturating_from_micros(slot * self.slot), *sum))
        })
    }

    /// All that has come.
    pub fn total(&self) -> u128 {
        self.steps.values().sum()
    }
}

impl Default for Curve {
    fn default() -> Self {
        Curve::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Timestamp {
        Timestamp::from_micros(us).unwrap()
    }

    #[test]
    fn is_exact_while_it_is_short() {
        let mut curve = Curve::new();
        for (us, amount) in [(30, 2), (10, 1), (30, 4), (20, 0)] {
            curve.add(at(us), amount);
        }
        assert_eq!(curve.points().collect::<Vec<_>>(), [(at(10), 1), (at(30), 7)]);
    }

    #[test]
    fn stays_short_and_loses_nothing() {
        let mut curve = Curve::new();
        for us in 0..100_000 {
            curve.add(at(us * 1_000), 3);
        }
        let points: Vec<_> = curve.points().collect();
        assert!(points.len() <= MOST_STEPS && points.len() >= MOST_STEPS / 4, "{}", points.len());
        assert_eq!((points[points.len() - 1].1, curve.total()), (300_000, 300_000));
        assert!(points.is_sorted());
    }
}
