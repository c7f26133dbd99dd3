//! A comparison as a table and as JSON.

use serde::Serialize;
use tidegate_server::config::show_period;

use super::{Comparison, Figures, KeyShare, Scenario, explain};
use crate::span::shown_span;
use crate::table::{Table, shown_key};

/// The comparison as people read it; `traffic` is what it is of.
pub fn report(traffic: &str, scenario: Option<Scenario>, comparison: &Comparison) -> String {
    let Comparison { nominal, checks, asked, .. } = comparison;
    let mut text = format!("{traffic}: {checks} checks ask for {}; {nominal}\n\n", asked.total().total());
    text += &figures(comparison).to_string();
    for (algorithm, reason) in &comparison.left_out {
        text += &format!("{algorithm} is left out: {reason}\n");
    }
    if let Some(shares) = comparison.by_key().filter(|shares| shares.len() > 1) {
        text += &format!("\n{}", by_key(comparison, &shares));
    }
    if let Some(scenario) = scenario {
        text += &format!("\n{}", wrapped(&explain(scenario, comparison)));
    }
    text
}

/// A paragraph in lines that fit a terminal.
fn wrapped(paragraph: &str) -> String {
    const WIDTH: usize = 100;
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split(' ') {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text + "\n"
}

fn figures(comparison: &Comparison) -> Table {
    let window = show_period(comparison.nominal.window());
    let start = comparison.span.map_or(0, |(first, _)| first.as_micros());
    let mut table = Table::new()
        .words("algorithm")
        .figures("admitted")
        .figures("denied")
        .figures(format!("most in any {window}"))
        .figures("denied in a row")
        .figures("longest wait")
        .figures("longest delay")
        .figures("first denied");
    let or_dash = |micros: u128| if micros == 0 { "-".to_owned() } else { shown_span(micros) };
    for figures in comparison.figures() {
        let denied_at = figures.first_denied_at_us.map(|at| u128::from(at.saturating_sub(start)));
        table.row([
            figures.algorithm.to_string(),
            figures.admitted.to_string(),
            figures.denied.to_string(),
            figures.most_in_a_window.to_string(),
            figures.longest_streak.to_string(),
            or_dash(figures.longest_wait_us),
            or_dash(figures.longest_delay_us),
            denied_at.map_or("-".to_owned(), shown_span),
        ]);
    }
    table
}

fn by_key(comparison: &Comparison, shares: &[KeyShare<'_>]) -> Table {
    let mut table = Table::new().words("admitted to");
    for share in shares {
        table = table.figures(format!("{} (asked {})", shown_key(share.key), share.asked));
    }
    for (place, figures) in comparison.figures().enumerate() {
        let admitted = shares.iter().map(|share| share.admitted[place].to_string());
        table.row([figures.algorithm.to_string()].into_iter().chain(admitted));
    }
    table
}

/// The comparison as programs read it.
///
/// # Errors
/// None there is: everything in it is JSON.
pub fn json(traffic: &str, comparison: &Comparison) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Json<'a> {
        traffic: &'a str,
        checks: u64,
        cost_asked: u128,
        burst: u64,
        limit: u64,
        window_us: u64,
        first_at_us: Option<u64>,
        last_at_us: Option<u64>,
        algorithms: Vec<&'a Figures>,
        left_out: Vec<LeftOut>,
    }
    #[derive(Serialize)]
    struct LeftOut {
        algorithm: &'static str,
        reason: String,
    }
    let left_out = comparison.left_out.iter();
    let json = Json {
        traffic,
        checks: comparison.checks,
        cost_asked: comparison.asked.total().total(),
        burst: comparison.nominal.burst().get(),
        limit: comparison.nominal.limit().get(),
        window_us: comparison.nominal.window().as_micros(),
        first_at_us: comparison.span.map(|(first, _)| first.as_micros()),
        last_at_us: comparison.span.map(|(_, last)| last.as_micros()),
        algorithms: comparison.figures().collect(),
        left_out: left_out
            .map(|(algorithm, reason)| LeftOut { algorithm: algorithm.name(), reason: reason.to_string() })
            .collect(),
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}
