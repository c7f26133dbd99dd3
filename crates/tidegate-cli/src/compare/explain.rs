//! What to see in a built-in scenario, in the figures that came of it.

use tidegate::Algorithm;
use tidegate_server::config::show_period;

use super::{Comparison, Scenario};
use crate::span::shown_span;

/// Two or three lines on what a scenario shows.
pub fn explain(scenario: Scenario, comparison: &Comparison) -> Vec<String> {
    let window = show_period(comparison.nominal.window());
    let of = |algorithm| comparison.figures_of(algorithm);
    let in_a_row = |algorithm| of(algorithm).map_or(0, |figures| figures.longest_streak);
    let most = |algorithm| of(algorithm).map_or(0, |figures| figures.most_in_a_window);
    let limit = comparison.nominal.limit();
    match scenario {
        Scenario::Steady => vec![
            "The first half keeps to the rate: nobody is denied, but for the counter, which takes the window before".to_owned(),
            "for evenly spread and can be one short at an edge. The second half is twice the rate: buckets and log".to_owned(),
            format!(
                "then admit every other check; the fixed window admits until it is used up and denies {} in a row.",
                in_a_row(Algorithm::FixedWindow)
            ),
        ],
        Scenario::BurstAfterIdle => {
            let delay = of(Algorithm::LeakyBucket).map_or(0, |figures| figures.longest_delay_us);
            vec![
                format!("Idling saves up no more than {} however long it lasts: half of the burst is denied by all.", comparison.nominal.burst()),
                "The buckets earn their way back evenly from the first moment; the log and the fixed window give the".to_owned(),
                format!(
                    "whole limit back at once. The leaky bucket admits like the token bucket, but spreads the work over {}.",
                    shown_span(delay)
                ),
            ]
        }
        Scenario::WindowEdge => vec![
            format!(
                "A limit of {limit} per {window}, and the fixed window admits {} within one: it counts anew at the edge. The",
                most(Algorithm::FixedWindow)
            ),
            format!(
                "log never admits more than {} in any {window}, the counter {} here; buckets admit {}: what is saved, and what",
                most(Algorithm::SlidingWindowLog),
                most(Algorithm::SlidingWindowCounter),
                most(Algorithm::TokenBucket),
            ),
            "is earned meanwhile.".to_owned(),
        ],
        Scenario::NoisyNeighbour => vec![
            "Keys share nothing: whatever the noisy one does, the quiet one gets all it asks for, under each algorithm.".to_owned(),
            "The noisy one gets its rate and no more, though it asks for ten times as much; only if both were counted".to_owned(),
            "under one key would the noise crowd the other out.".to_owned(),
        ],
    }
}
