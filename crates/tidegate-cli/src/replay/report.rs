//! The summary as people read it.

use std::fmt::Write;

use jiff::Timestamp as Instant;

use super::summary::Summary;
use crate::span::shown_span;
use crate::table::{Table, shown_key};

/// The summary as text; `trace` is what it is of.
pub fn report(trace: &str, summary: &Summary) -> String {
    let mut text = headline(trace, summary);
    let parts = [Some(totals(summary)), limits(summary), most_denied(summary)];
    for part in parts.into_iter().flatten() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{part}");
    }
    text
}

fn headline(trace: &str, summary: &Summary) -> String {
    let lines = summary.lines;
    let span = match (summary.first_at_us, summary.last_at_us) {
        (Some(first), Some(last)) => {
            format!(", {} to {} ({})", instant(first), instant(last), shown_span(u128::from(last - first)))
        }
        _ => String::new(),
    };
    format!("{trace}: {lines} line{}{span}\n", if lines == 1 { "" } else { "s" })
}

fn instant(micros: u64) -> String {
    let instant = i64::try_from(micros).ok().and_then(|micros| Instant::from_microsecond(micros).ok());
    instant.map_or_else(|| format!("{micros} us"), |instant| instant.to_string())
}

fn totals(summary: &Summary) -> Table {
    let mut table = Table::new().words("").figures("").figures("");
    let mut row = |name: &str, figure: u128, share: Option<u64>| {
        table.row([
            name.to_owned(),
            figure.to_string(),
            share.map_or(String::new(), |n| percent(n, summary.checks)),
        ]);
    };
    let refusals = summary.denied_by_outcome;
    row("checks", summary.checks.into(), None);
    row("admitted", summary.admitted.into(), Some(summary.admitted));
    row("denied", summary.denied.into(), Some(summary.denied));
    if refusals.cost_exceeds_capacity > 0 {
        row("  for now (denied)", refusals.denied.into(), None);
        row("  for good (cost_exceeds_capacity)", refusals.cost_exceeds_capacity.into(), None);
    }
    row("cost asked", summary.cost_asked, None);
    row("cost admitted", summary.cost_admitted, None);
    row("distinct keys", summary.distinct_keys.into(), None);
    row("states held", summary.states_held.into(), None);
    row("bad lines", summary.bad_lines.into(), None);
    row("out of order", summary.out_of_order.into(), None);
    if summary.out_of_order > 0 {
        row("  decided where they stood", summary.left_out_of_order.into(), None);
    }
    table
}

/// A share of the whole with one place, rounded to nearest but to 0 and 100 % only what is.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    let tenths = match tenths {
        0 if part > 0 => 1,
        1_000 if part < whole => 999,
        tenths => tenths,
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn limits(summary: &Summary) -> Option<Table> {
    let table = Table::new().words("policy").words("limit").words("algorithm");
    let mut table = table.figures("checks").figures("admitted").figures("denied by it");
    for policy in &summary.policies {
        for limit in &policy.limits {
            table.row([
                policy.policy.clone(),
                limit.name.clone(),
                limit.algorithm.to_owned(),
                policy.checks.to_string(),
                policy.admitted.to_string(),
                limit.denied.to_string(),
            ]);
        }
    }
    (!summary.policies.is_empty()).then_some(table)
}

fn most_denied(summary: &Summary) -> Option<Table> {
    let mut table = Table::new().words("most denied keys").figures("checks").figures("denied").figures("");
    for key in &summary.most_denied {
        let share = percent(key.denied, key.checks);
        table.row([shown_key(&key.key), key.checks.to_string(), key.denied.to_string(), share]);
    }
    (!summary.most_denied.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_share_is_whole_only_if_it_is() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(2, 3), "66.7 %");
        assert_eq!(percent(1, 1_000_000), "0.1 %");
        assert_eq!(percent(999_999, 1_000_000), "99.9 %");
        assert_eq!(percent(0, 5), "0.0 %");
        assert_eq!(percent(5, 5), "100.0 %");
        assert_eq!(percent(0, 0), "");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
    }
}
