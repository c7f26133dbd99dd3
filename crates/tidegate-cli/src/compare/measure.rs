//! What one algorithm made of the traffic.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;
use tidegate::{Algorithm, Decision, Period, Timestamp, Wait};

use super::curve::Curve;
use crate::trace::TraceCheck;

/// Up to this many keys are told apart.
pub const MOST_KEYS_APART: usize = 4;

/// Counts the decisions of one algorithm.
#[derive(Debug)]
pub struct Measure {
    window: Period,
    keys: HashMap<Box<[u8]>, KeyMeasure>,
    figures: Figures,
    admitted: CurvesByKey,
    /// Admitted work by the time it may begin: a leaky bucket's is delayed.
    begun: Curve,
}

/// The figures of one algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// The algorithm.
    #[serde(serialize_with = "algorithm_name")]
    pub algorithm: Algorithm,
    /// Checks admitted.
    pub checks_admitted: u64,
    /// Checks denied.
    pub checks_denied: u64,
    /// Units admitted.
    pub admitted: u128,
    /// Units denied.
    pub denied: u128,
    /// The most units admitted to one key in any span of the length of a window.
    pub most_in_a_window: u128,
    /// The most checks of one key denied in a row.
    pub longest_streak: u64,
    /// The longest wait told with a denial, in microseconds.
    pub longest_wait_us: u128,
    /// The longest delay told with an admission, in microseconds.
    pub longest_delay_us: u128,
    /// When the first check was denied.
    pub first_denied_at_us: Option<u64>,
}

fn algorithm_name<S: serde::Serializer>(algorithm: &Algorithm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(algorithm.name())
}

#[derive(Debug, Default)]
struct KeyMeasure {
    admitted: u128,
    streak: u64,
    /// What was admitted in the window that ends with the newest admission.
    recent: VecDeque<(Timestamp, u64)>,
    recent_sum: u128,
}

impl Measure {
    /// Nothing decided yet.
    pub fn new(algorithm: Algorithm, window: Period) -> Self {
        let figures = Figures {
            algorithm,
            checks_admitted: 0,
            checks_denied: 0,
            admitted: 0,
            denied: 0,
            most_in_a_window: 0,
            longest_streak: 0,
            longest_wait_us: 0,
            longest_delay_us: 0,
            first_denied_at_us: None,
        };
        Measure {
            window,
            keys: HashMap::new(),
            figures,
            admitted: CurvesByKey::default(),
            begun: Curve::new(),
        }
    }

    /// Counts one check and what was decided.
    pub fn count(&mut self, check: &TraceCheck, decision: &Decision) {
        if !self.keys.contains_key(&check.key) {
            self.keys.insert(check.key.clone(), KeyMeasure::default());
        }
        let Some(key) = self.keys.get_mut(&check.key) else { return };
        let (figures, cost) = (&mut self.figures, check.cost.get());
        if !decision.is_allowed() {
            figures.checks_denied += 1;
            figures.denied += u128::from(cost);
            let wait = decision.retry_after().map_or(0, Wait::as_micros);
            figures.longest_wait_us = figures.longest_wait_us.max(wait);
            figures.first_denied_at_us.get_or_insert(check.at.as_micros());
            key.streak += 1;
            figures.longest_streak = figures.longest_streak.max(key.streak);
            return;
        }
        key.streak = 0;
        key.admitted += u128::from(cost);
        key.note_recent(check.at, cost, self.window);
        figures.checks_admitted += 1;
        figures.admitted += u128::from(cost);
        figures.most_in_a_window = figures.most_in_a_window.max(key.recent_sum);
        let delay = decision.delay();
        figures.longest_delay_us = figures.longest_delay_us.max(delay.as_micros());
        self.admitted.add(&check.key, check.at, cost);
        self.begun.add(check.at.saturating_add(delay), cost);
    }

    /// The figures.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Units admitted to a key.
    pub fn admitted_to(&self, key: &[u8]) -> u128 {
        self.keys.get(key).map_or(0, |key| key.admitted)
    }

    /// What was admitted by when.
    pub fn admitted(&self) -> &CurvesByKey {
        &self.admitted
    }

    /// Admitted work by the time it may begin: a leaky bucket's is delayed.
    pub fn begun(&self) -> &Curve {
        &self.begun
    }
}

impl KeyMeasure {
    fn note_recent(&mut self, at: Timestamp, cost: u64, window: Period) {
        // A stamp that comes late was decided as the newest one.
        let at = self.recent.back().map_or(at, |(newest, _)| at.max(*newest));
        match self.recent.back_mut() {
            Some((newest, sum)) if *newest == at => *sum += cost,
            _ => self.recent.push_back((at, cost)),
        }
        self.recent_sum += u128::from(cost);
        while let Some((oldest, cost)) = self.recent.front()
            && at.micros_since(*oldest) >= window.as_micros()
        {
            self.recent_sum -= u128::from(*cost);
            self.recent.pop_front();
        }
    }
}

/// A curve of all keys together, and one for each while there are few.
#[derive(Debug, Clone)]
pub struct CurvesByKey {
    total: Curve,
    apart: Option<BTreeMap<Box<[u8]>, Curve>>,
}

impl Default for CurvesByKey {
    fn default() -> Self {
        CurvesByKey { total: Curve::new(), apart: Some(BTreeMap::new()) }
    }
}

impl CurvesByKey {
    /// `amount` for `key` comes at `at`.
    pub fn add(&mut self, key: &[u8], at: Timestamp, amount: u64) {
        self.total.add(at, amount);
        let Some(apart) = &mut self.apart else { return };
        if let Some(curve) = apart.get_mut(key) {
            curve.add(at, amount);
        } else if apart.len() == MOST_KEYS_APART {
            self.apart = None;
        } else {
            apart.entry(key.into()).or_default().add(at, amount);
        }
    }

    /// All keys together.
    pub fn total(&self) -> &Curve {
        &self.total
    }

    /// The keys, if there are few.
    pub fn keys(&self) -> Option<Vec<&[u8]>> {
        self.apart.as_ref().map(|apart| apart.keys().map(|key| &**key).collect())
    }

    /// One key's curve, if there are few.
    pub fn of(&self, key: &[u8]) -> Option<&Curve> {
        self.apart.as_ref()?.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_what_came_after_its_beginning() {
        let mut key = KeyMeasure::default();
        let mut sums = Vec::new();
        for (us, cost) in [(0, 2), (999_999, 3), (1_000_000, 1), (999_000, 5), (2_000_000, 1)] {
            key.note_recent(Timestamp::from_micros(us).unwrap(), cost, Period::SECOND);
            sums.push(key.recent_sum);
        }
        assert_eq!(sums, [2, 5, 4, 9, 1]);
    }

    #[test]
    fn keys_are_told_apart_while_they_are_few() {
        let mut curves = CurvesByKey::default();
        for key in [b"a", b"b", b"c", b"d", b"a"] {
            curves.add(key, Timestamp::EPOCH, 1);
        }
        assert_eq!(curves.of(b"a").unwrap().total(), 2);
        curves.add(b"e", Timestamp::EPOCH, 1);
        assert_eq!((curves.keys(), curves.total().total()), (None, 6));
    }
}
