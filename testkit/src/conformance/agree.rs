//! Whether an answer is the one the oracle gives, as far as the subject shows it.

use super::headers;
use super::subject::{Offers, Resolution, SubjectAnswer};
use crate::cases::LimitSpec;
use crate::oracle::{OracleDecision, OracleFigures};

/// Compares an answer with the right one.
///
/// # Errors
/// Both, printed, if they differ.
pub fn agree(
    answer: &SubjectAnswer,
    right: &OracleDecision,
    limits: &[LimitSpec],
    offers: Offers,
) -> Result<(), String> {
    let expected = as_shown(right, offers);
    let shown = SubjectAnswer { headers: None, ..without_hidden(answer, offers) };
    if shown != expected {
        return Err(format!("the answer is\n    {shown:?}\nand must be\n    {expected:?}"));
    }
    match &answer.headers {
        Some(sent) => headers::agree(sent, right, limits),
        None => Ok(()),
    }
}

fn as_shown(right: &OracleDecision, offers: Offers) -> SubjectAnswer {
    let mut exact = SubjectAnswer::from(right.clone());
    let round = |figures: &mut OracleFigures| *figures = rounded(figures, offers.resolution);
    round(&mut exact.headline);
    exact.limits.iter_mut().for_each(round);
    without_hidden(&exact, offers)
}

fn rounded(exact: &OracleFigures, resolution: Resolution) -> OracleFigures {
    let shows = |wait: Option<u128>| wait.map(|us| resolution.shows(us));
    OracleFigures {
        limit: exact.limit,
        remaining: exact.remaining,
        retry_after_us: shows(exact.retry_after_us),
        reset_after_us: shows(exact.reset_after_us),
        delay_us: resolution.shows(exact.delay_us),
        grows_after_us: shows(exact.grows_after_us),
    }
}

/// The answer less what the subject does not show.
fn without_hidden(answer: &SubjectAnswer, offers: Offers) -> SubjectAnswer {
    let mut answer = answer.clone();
    if !offers.each_limit {
        answer.limits.clear();
    }
    if !offers.grows_after {
        answer.headline.grows_after_us = None;
        answer.limits.iter_mut().for_each(|figures| figures.grows_after_us = None);
    }
    answer
}
