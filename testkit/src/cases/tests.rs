#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;
use crate::conformance::OracleSubject;

#[test]
fn ids_are_unique_and_each_case_says_what_it_is_about() {
    let cases = load();
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), cases.len());
    assert!(cases.iter().all(|case| case.about.ends_with('.')));
    assert!(cases.iter().all(|case| case.refused == case.steps.is_empty()), "steps, unless refused");
}

#[test]
fn every_step_states_something() {
    for case in load() {
        for step in &case.steps {
            let quiet = !matches!(step.action, Action::Check { .. } | Action::CheckUpTo { .. });
            assert!(quiet || step.expected.outcome.is_some(), "{}: {step:?}", case.id);
        }
    }
}

#[test]
fn a_wrong_statement_is_found() {
    let mut case = load().into_iter().find(|case| case.id == "worked-4").unwrap();
    case.steps[1].expected.headline.retry_after_us = Some(Some(499_999));
    let fault = try_run(&case, &mut OracleSubject::default()).unwrap_err();
    assert!(fault.contains("step 2") && fault.contains("retry_after_us must be Some(499999)"), "{fault}");
    case.steps.truncate(1);
    case.refused = true;
    let fault = try_run(&case, &mut OracleSubject::default()).unwrap_err();
    assert!(fault.contains("must be refused"), "{fault}");
}

#[test]
fn repeated_steps_are_written_out() {
    let case = load().into_iter().find(|case| case.id == "due-is-due-a-thousand-times").unwrap();
    assert_eq!(case.steps.len(), 4_000);
    assert_eq!(case.steps[3_999].at_us, 999 * 3_000_000 + 2_999_999);
}
