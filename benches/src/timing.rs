//! How long it takes: threads that start together, rounds in turn, medians.
// A bench measures real time, and nothing decides by it.
#![allow(clippy::disallowed_methods)]

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::contender::Contender;
use crate::trace::Trace;

/// Million checks a second of `contender`, a thread for each trace, all of them started together.
pub fn throughput(contender: &dyn Contender, traces: &[Trace]) -> f64 {
    let barrier = Barrier::new(traces.len() + 1);
    let started = thread::scope(|scope| {
        for trace in traces {
            scope.spawn(|| {
                barrier.wait();
                contender.decide(trace);
            });
        }
        barrier.wait();
        Instant::now()
    });
    let checks: usize = traces.iter().map(Trace::len).sum();
    checks as f64 / started.elapsed().as_secs_f64() / 1e6
}

/// The middle one; of an even number the lower.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
