//! The closing lines of the test runners, read and added up.

use std::fmt;
use std::ops::AddAssign;

/// Tests that ran. Ignored and filtered ones did not, and are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: u64,
    pub failed: u64,
}

impl Totals {
    pub fn executed(self) -> u64 {
        self.passed + self.failed
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// A closing line of cargo's own runner, one per test binary:
/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s`.
pub fn cargo_test_line(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut parts = counts.split("; ");
    let passed = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some(Totals { passed, failed })
}

/// The closing line of nextest, one per run:
/// `Summary [   1.204s] 10 tests run: 7 passed (1 slow), 2 failed, 1 timed out, 3 skipped`.
pub fn nextest_line(line: &str) -> Option<Totals> {
    let (_, after_time) = line.trim_start().strip_prefix("Summary [")?.split_once("] ")?;
    let (run, counts) = after_time.split_once(" run: ")?;
    if !(run.ends_with(" tests") || run.ends_with(" test")) {
        return None;
    }
    let mut totals = Totals::default();
    for part in without_parentheses(counts).split(", ") {
        let (count, word) = part.trim().split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match word {
            "passed" => totals.passed += count,
            "skipped" => {}
            // "failed", "exec failed", "timed out", and any word that a later nextest may invent.
            _ => totals.failed += count,
        }
    }
    Some(totals)
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(passed: u64, failed: u64) -> Option<Totals> {
        Some(Totals { passed, failed })
    }

    #[test]
    fn cargo_test_closing_lines() {
        let ok =
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(cargo_test_line(ok), totals(5, 0));
        let bad =
            "test result: FAILED. 17 passed; 3 failed; 0 ignored; 0 measured; 2 filtered out; finished in 9s";
        assert_eq!(cargo_test_line(bad), totals(17, 3));
    }

    #[test]
    fn nextest_closing_lines() {
        let cases = [
            ("     Summary [   0.005s] 5 tests run: 5 passed, 0 skipped", totals(5, 0)),
            ("     Summary [   0.005s] 1 test run: 1 passed, 0 skipped", totals(1, 0)),
            (
                "Summary [  61.2s] 10 tests run: 7 passed (1 slow, 2 flaky), 2 failed, 1 timed out, 3 skipped",
                totals(7, 3),
            ),
            ("Summary [   1.0s] 3/9 tests run: 2 passed, 1 exec failed, 0 skipped", totals(2, 1)),
            (
                "Summary [   1.0s] 2 tests run: 1 passed (1 leaky), 1 failed (1 due to being leaky), 4 skipped",
                totals(1, 1),
            ),
            ("Summary [   0.000s] 0 tests run: 0 passed, 12 skipped", totals(0, 0)),
        ];
        for (line, expected) in cases {
            assert_eq!(nextest_line(line), expected, "{line}");
        }
    }

    #[test]
    fn other_lines_are_not_taken_for_closing_ones() {
        for line in [
            "",
            "test six_limits ... ok",
            "running 5 tests",
            "test result: ok. many passed; 0 failed",
            "assertion failed: test result: ok. 5 passed; 0 failed; ",
            "Summary [   0.1s] 1 setup script run: 1 passed",
            "Summary [   0.1s] 5 tests run: several passed",
            "Summary of changes",
        ] {
            assert_eq!(cargo_test_line(line), None, "{line}");
            assert_eq!(nextest_line(line), None, "{line}");
        }
    }

    #[test]
    fn totals_add_up_and_print_as_the_line_that_ci_counts() {
        let mut sum = Totals { passed: 40, failed: 1 };
        sum += Totals { passed: 2, failed: 0 };
        assert_eq!(sum.to_string(), "42 passed, 1 failed");
        assert_eq!(sum.executed(), 43);
    }
}
