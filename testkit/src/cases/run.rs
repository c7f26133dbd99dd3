//! Puts a case to a subject.

use super::{Action, Case, Expected, LimitSpec, Step};
use crate::conformance::{Answered, Duel, Offers, Subject, header_is};

/// What came of a case that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// Every step went as stated.
    Done,
    /// The subject does not offer what the case needs; named.
    Skipped(&'static str),
}

/// Puts a case to a subject: what is stated must hold of the oracle, and the subject must answer as the oracle
/// does, figure by figure.
///
/// # Errors
/// The case, the step, and how the answer differs.
pub fn try_run(case: &Case, subject: &mut dyn Subject) -> Result<Ran, String> {
    let blame =
        |fault: String| format!("case {} ({}): {fault}\n  limits {:?}", case.id, case.about, case.limits);
    if case.refused {
        return match subject.install(&case.limits) {
            Err(reason) if !reason.is_empty() => Ok(Ran::Done),
            Err(_) => Err(blame("was refused without a reason".to_owned())),
            Ok(()) => Err(blame("must be refused, and was accepted".to_owned())),
        };
    }
    if let Some(lacking) = lacking(case, subject.offers()) {
        return Ok(Ran::Skipped(lacking));
    }
    let mut duel =
        Duel::start(subject, &case.limits).map_err(|reason| blame(format!("was refused: {reason}")))?;
    for (number, step) in case.steps.iter().enumerate() {
        let Step { at_us, key, action, .. } = step;
        let blame =
            |fault| blame(format!("step {}, {action:?} of {key:?} at {at_us} us: {fault}", number + 1));
        take(&mut duel, step).map_err(blame)?;
    }
    Ok(Ran::Done)
}

/// [`try_run`], as a test.
///
/// # Panics
/// With its error.
pub fn run(case: &Case, subject: &mut dyn Subject) -> Ran {
    try_run(case, subject).unwrap_or_else(|fault| panic!("{fault}"))
}

fn take(duel: &mut Duel<'_>, step: &Step) -> Result<(), String> {
    let (at_us, key) = (step.at_us, step.key.as_bytes());
    let answered = match &step.action {
        Action::Check { cost } => duel.check(at_us, key, *cost)?,
        Action::CheckUpTo { max, taken } => {
            let (units, answered) = duel.check_up_to(at_us, key, *max)?;
            same("units taken", taken, &units)?;
            answered
        }
        Action::Credit { n } => duel.credit(at_us, key, *n)?,
        Action::Penalize { n, cut } => {
            let (units, answered) = duel.penalize(at_us, key, *n)?;
            same("units cut", cut, &units)?;
            answered
        }
        Action::Reset => duel.reset(at_us, key)?,
        Action::Reload { limits } => {
            duel.reload(limits, at_us);
            return Ok(());
        }
    };
    stated(&step.expected, &answered, duel.limits())
}

fn stated(expected: &Expected, answered: &Answered, limits: &[LimitSpec]) -> Result<(), String> {
    let names: Vec<String> = limits.iter().map(|limit| limit.name.clone()).collect();
    if let Some(fault) = expected.contradicted_by(&answered.right, &names) {
        return Err(fault);
    }
    match &answered.answer.headers {
        Some(sent) => {
            expected.headers.iter().try_for_each(|(name, value)| header_is(sent, name, value.clone()))
        }
        None => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, stated: &T, is: &T) -> Result<(), String> {
    if stated == is { Ok(()) } else { Err(format!("{what} must be {stated:?}, are {is:?}")) }
}

/// What the case needs that the subject does not offer.
fn lacking(case: &Case, offers: Offers) -> Option<&'static str> {
    let mut newest_us = 0;
    case.steps.iter().find_map(|step| {
        let too_old = step.at_us < offers.steps_back.oldest_after(newest_us);
        newest_us = newest_us.max(step.at_us);
        match step.action {
            _ if too_old => Some("a clock that goes back"),
            Action::CheckUpTo { .. } if !offers.check_up_to => Some("checks of up to so many"),
            Action::Credit { .. } | Action::Penalize { .. } if !offers.forced => {
                Some("credits and penalties")
            }
            Action::Reset if !offers.reset => Some("resets"),
            Action::Reload { .. } if !offers.reload => Some("reloads"),
            _ => None,
        }
    })
}
