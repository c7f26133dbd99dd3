//! Named steps: says what is being run, times it, goes on after a failure, and reports at the end.

use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps taken so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: String,
    spent: Duration,
    failure: Option<anyhow::Error>,
}

impl Steps {
    /// Runs one step. A failure is kept for the report and gives `None`: the steps after it run all
    /// the same unless the caller needs the value, so that one run tells everything that is wrong.
    #[allow(clippy::disallowed_methods, reason = "times the developer's wait, decides nothing")]
    pub fn run<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Option<T> {
        println!("==> {name}");
        let begun = Instant::now();
        let outcome = step();
        let spent = begun.elapsed();
        let (value, failure) = match outcome {
            Ok(value) => (Some(value), None),
            Err(error) => {
                eprintln!("error: {name}: {error:#}");
                (None, Some(error))
            }
        };
        self.done.push(Step { name: name.to_owned(), spent, failure });
        value
    }

    /// Prints the time each step took and what failed; true when nothing did.
    pub fn report(&self) -> bool {
        println!("\nTime spent");
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or(0);
        for Step { name, spent, failure } in &self.done {
            let mark = if failure.is_some() { "  FAILED" } else { "" };
            println!("  {name:width$}  {:7.1} s{mark}", spent.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|step| step.spent).sum();
        println!("  {:width$}  {:7.1} s", "total", total.as_secs_f64());
        let mut passed = true;
        for Step { name, failure, .. } in &self.done {
            if let Some(error) = failure {
                println!("FAILED {name}: {error:#}");
                passed = false;
            }
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_failed_step_stops_neither_the_next_nor_the_verdict() {
        let mut steps = Steps::default();
        assert_eq!(steps.run("bad", || -> Result<()> { bail!("no") }), None);
        assert_eq!(steps.run("good", || Ok(7)), Some(7));
        assert_eq!(steps.done.len(), 2);
        assert!(!steps.report());
    }

    #[test]
    fn all_good_is_a_pass() {
        let mut steps = Steps::default();
        steps.run("good", || Ok(())).unwrap();
        assert!(steps.report());
    }
}
