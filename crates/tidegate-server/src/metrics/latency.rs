//! How long decisions take.

use super::stripes::Striped;

/// Upper bounds in microseconds: from one, which is where the clock's grain ends, to a tenth of a second.
const BOUNDS: [u64; 16] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];

/// The bucket of what takes longer.
const ABOVE: usize = BOUNDS.len();
const SUM: usize = ABOVE + 1;

/// A histogram of whole microseconds.
#[derive(Debug)]
pub(super) struct Latency(Striped<{ SUM + 1 }>);

/// A reading: seconds in all, how many, and how many in each bucket alone, by its upper bound in seconds.
pub(super) struct LatencyReading {
    pub sum: f64,
    pub count: u64,
    pub buckets: Vec<(f64, u64)>,
}

impl Latency {
    pub fn new() -> Self {
        Latency(Striped::new())
    }

    /// So many decisions each took so many microseconds.
    pub fn record(&self, micros: u64, decisions: u64) {
        let bucket = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(ABOVE);
        self.0.add(bucket, decisions);
        self.0.add(SUM, micros.saturating_mul(decisions));
    }

    pub fn read(&self) -> LatencyReading {
        let counters = self.0.read();
        // Exact: divisors are powers of ten that a double holds.
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(counters).collect();
        LatencyReading {
            sum: counters[SUM] as f64 / 1e6,
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let latency = Latency::new();
        for micros in [0, 1, 2, 3, 100_000, 100_001] {
            latency.record(micros, 1);
        }
        let reading = latency.read();
        let filled: Vec<_> = reading.buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(1e-6, 2), (2e-6, 1), (5e-6, 1), (0.1, 1), (f64::INFINITY, 1)]);
        assert_eq!((reading.count, reading.sum), (6, 0.200_007));
    }
}
