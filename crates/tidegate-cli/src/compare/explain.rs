//! What to see in a built-in scenario, in the figures that came of it.

use tidegate::Algorithm;
use tidegate_server::config::show_period;

use super::{Comparison, Figures, Scenario};
use crate::span::shown_span;

/// A paragraph on what a scenario shows.
pub fn explain(scenario: Scenario, comparison: &Comparison) -> String {
    match scenario {
        Scenario::Steady => steady(comparison),
        Scenario::BurstAfterIdle => burst_after_idle(comparison),
        Scenario::WindowEdge => window_edge(comparison),
        Scenario::NoisyNeighbour => "Keys share nothing: whatever the noisy one does, the quiet one gets all it asks \
             for, under each algorithm. The noisy one gets its burst and its rate, though it asks for ten times as \
             much. Only under one key for both would the noise crowd the other out."
            .to_owned(),
    }
}

fn steady(comparison: &Comparison) -> String {
    let in_a_row = figure(comparison, Algorithm::FixedWindow, |figures| figures.longest_streak.into());
    format!(
        "The first half keeps to the rate, and nobody is denied, but by the counter: it takes the window before for \
         evenly spread and can be one short at an edge. The second half is twice the rate: when what was saved is \
         spent, buckets and log admit every other check; the fixed window admits until it is used up and denies \
         {in_a_row} in a row."
    )
}

fn burst_after_idle(comparison: &Comparison) -> String {
    let delay = figure(comparison, Algorithm::LeakyBucket, |figures| figures.longest_delay_us);
    let saved = match (comparison.nominal.burst(), comparison.nominal.limit()) {
        (burst, limit) if burst == limit => burst.to_string(),
        (burst, limit) => format!("{burst} in a bucket, {limit} in a window,"),
    };
    format!(
        "Idling saves up {saved} and no more, however long it lasts; what a burst asks beyond it, all deny. Then the \
         buckets earn one after the other from the first moment on, while the windows make their client wait until \
         old cost has left the window. The leaky bucket spreads what it admits over {}.",
        shown_span(delay)
    )
}

fn window_edge(comparison: &Comparison) -> String {
    let most = |algorithm| figure(comparison, algorithm, |figures| figures.most_in_a_window);
    let (limit, window) = (comparison.nominal.limit(), show_period(comparison.nominal.window()));
    let (fixed, log) = (most(Algorithm::FixedWindow), most(Algorithm::SlidingWindowLog));
    let (counter, bucket) = (most(Algorithm::SlidingWindowCounter), most(Algorithm::TokenBucket));
    format!(
        "Of {limit} per {window} the fixed window admits {fixed} within one, for it counts anew at the edge. The log \
         admits {log} and never more than {limit} in any {window}, the counter {counter} here. Buckets admit \
         {bucket}: what was saved, and what is earned meanwhile."
    )
}

/// A figure of an algorithm; 0 of one that is left out.
fn figure(comparison: &Comparison, algorithm: Algorithm, figure: impl Fn(&Figures) -> u128) -> u128 {
    comparison.figures_of(algorithm).map_or(0, figure)
}
