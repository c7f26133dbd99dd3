//! Keys whose figures come with each check: the figures are the callers', any number of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate::{AdHocLimit, Decision};

use crate::engine::Engine;
use crate::prepared::Prepared;
use crate::question::{Question, Trouble};
use crate::recent::Recent;

/// So many plans are kept at hand. Another is made in less time than an answer takes.
const MOST_PLANS: usize = 1_024;

/// The plans of figures that came with checks lately.
#[derive(Debug)]
pub(crate) struct Passing {
    /// By their tags, which are equal where figures mean the same.
    plans: Mutex<Recent<Arc<Prepared>>>,
}

impl Default for Passing {
    fn default() -> Self {
        Passing { plans: Mutex::new(Recent::of(MOST_PLANS)) }
    }
}

impl Passing {
    /// The plan of these figures.
    pub(crate) fn plan_of(&self, limit: &AdHocLimit) -> Arc<Prepared> {
        let tag = Prepared::ad_hoc_tag(limit);
        // Each entry is whole, whoever panicked.
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(&tag) {
            return Arc::clone(known);
        }
        let plan = Arc::new(Prepared::ad_hoc(limit));
        plans.insert(&tag, Arc::clone(&plan));
        plan
    }
}

/// Decides checks that are independent of one another, in order; those of one record one after the other, also if each
/// comes with figures of its own.
pub(crate) async fn each(engine: &Engine, questions: &[Question]) -> Vec<Result<Decision, Trouble>> {
    let mut answers = Vec::with_capacity(questions.len());
    let mut rest = questions;
    while !rest.is_empty() {
        let (wave, others) = rest.split_at(at_once(rest));
        answers.extend(engine.each(wave).await);
        rest = others;
    }
    answers
}

/// How many of the first can go out together: until one of their records comes with other figures, which go by another
/// call.
fn at_once(questions: &[Question]) -> usize {
    let mut plans: HashMap<&[u8], *const Prepared> = HashMap::new();
    let changes = questions.iter().position(|Question { record, plan, .. }| {
        let plan = Arc::as_ptr(plan);
        *plans.entry(record).or_insert(plan) != plan
    });
    changes.unwrap_or(questions.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use tidegate::store::Ask;
    use tidegate::{Cost, Rate, Timestamp, Units};

    use super::*;

    fn figures(count: u32) -> AdHocLimit {
        AdHocLimit::gcra(Rate::per_minute(count), Units::from(3_u32))
    }

    #[test]
    fn plans_are_shared_while_they_are_used_and_never_too_many() {
        let passing = Passing::default();
        let often = passing.plan_of(&figures(1));
        for count in 2..10_000 {
            passing.plan_of(&figures(count));
            assert!(Arc::ptr_eq(&often, &passing.plan_of(&figures(1))));
        }
        let kept = passing.plans.lock().unwrap().len();
        assert!(kept <= MOST_PLANS, "{kept}");
        // 60 an hour are one a minute.
        let same = AdHocLimit::gcra(Rate::per_hour(60), Units::from(3_u32));
        assert!(Arc::ptr_eq(&often, &passing.plan_of(&same)));
    }

    #[test]
    fn what_goes_out_together_ends_where_a_record_has_other_figures() {
        let passing = Passing::default();
        let question = |(record, count): (&str, u32)| Question {
            plan: passing.plan_of(&figures(count)),
            record: record.into(),
            ask: Ask::Exactly(Cost::ONE),
            now: Timestamp::EPOCH,
            within: Duration::from_secs(1),
        };
        let together =
            |list: &[(&str, u32)]| at_once(&list.iter().copied().map(question).collect::<Vec<_>>());
        assert_eq!(together(&[]), 0);
        assert_eq!(together(&[("a", 1), ("b", 2), ("a", 1), ("b", 2)]), 4);
        assert_eq!(together(&[("a", 1), ("b", 2), ("a", 2), ("b", 2)]), 2);
    }
}
