//! `layout: classic`: buckets shared with services that run the common token-bucket script already.
//!
//! Their state is in floating point, so answers here are as near as that allows and not exact to the microsecond.

use tidegate::store::Ask;
use tidegate::{Algorithm, Cost, Decision, KeyState, Penalty, Plan, Timestamp};
use tidegate_core::{Cells, State};

use crate::engine::Engine;
use crate::link::Failure;
use crate::prepared::Prepared;
use crate::question::{Question, Trouble};
use crate::record::Damaged;
use crate::script::{Bucket, Deed, classic};

/// Whether a plan can be kept so: one token bucket that refills.
pub(crate) fn is_possible(plan: &Plan) -> bool {
    match plan.limits() {
        [limit] => {
            limit.algorithm() == Algorithm::TokenBucket && limit.rate().is_some_and(|rate| !rate.is_zero())
        }
        _ => false,
    }
}

impl Engine {
    /// Decides a check of a classic bucket.
    pub(crate) async fn check_classic(&self, question: &Question) -> Result<Decision, Trouble> {
        let now = question.now;
        let deed = match question.ask {
            Ask::Exactly(cost) => Deed::Check(cost.get()),
            Ask::UpTo(most) => Deed::UpTo(most.get()),
        };
        let bucket = self.bucket(question, now, deed).await?;
        let plan = &question.plan.plan;
        let cost = match question.ask {
            Ask::Exactly(cost) => cost,
            // What was taken; of what could not have even one, that one.
            Ask::UpTo(most) => Cost::new((bucket.before - bucket.after).round().max(0.0) as u64)
                .ok()
                .filter(|cost| !cost.is_peek() || most.is_peek())
                .unwrap_or(Cost::ONE),
        };
        let mut state = state(&question.plan, bucket.before, bucket.at);
        agree(&question.plan, &mut state, cost, bucket.admitted);
        Ok(plan.check(&mut state, now, cost))
    }

    /// Gives units back to a classic bucket, or charges them by force.
    pub(crate) async fn change_classic(
        &self,
        question: &Question,
        now: Timestamp,
        deed: Deed,
    ) -> Result<Penalty, Trouble> {
        let bucket = self.bucket(question, now, deed).await?;
        let plan = &question.plan.plan;
        let mut state = state(&question.plan, bucket.before, bucket.at);
        let units = |units: u64| tidegate::Units::new(units).unwrap_or(tidegate::Units::MAX);
        Ok(match deed {
            Deed::Credit(amount) => plan.credit(&mut state, now, units(amount)),
            Deed::Charge(amount) => plan.penalize(&mut state, now, units(amount)),
            Deed::Check(_) | Deed::UpTo(_) => Penalty::nothing(plan.peek(&state, now)),
        })
    }

    /// How a classic bucket stands.
    pub(crate) async fn look_classic(
        &self,
        question: &Question,
        now: Timestamp,
    ) -> Result<KeyState, Trouble> {
        let bucket = self.bucket(question, now, Deed::Check(0)).await?;
        Ok(state(&question.plan, bucket.before, bucket.at))
    }

    /// Forgets a classic bucket.
    pub(crate) async fn forget_classic(&self, question: &Question) -> Result<(), Trouble> {
        self.link.delete(std::slice::from_ref(&question.record), self.timeout).await?;
        Ok(())
    }

    async fn bucket(&self, question: &Question, now: Timestamp, deed: Deed) -> Result<Bucket, Trouble> {
        let plan = &question.plan;
        if !is_possible(&plan.plan) {
            return Err(Trouble::NotClassic { policy: plan.policy_name().unwrap_or_default().to_owned() });
        }
        let limit = &plan.plan.limits()[0];
        let call = classic(question.record.clone(), limit, now, deed);
        let reply = match self.link.call(&call, self.timeout).await {
            Err(Failure::Foreign(_)) => {
                let damage = Damaged("no hash whose fields tokens and last are numbers");
                return Err(question.damaged(damage));
            }
            reply => reply?,
        };
        Ok(Bucket::of(&reply)?)
    }
}

/// The state that comes nearest to so many tokens at that instant.
fn state(plan: &Prepared, tokens: f64, at: f64) -> KeyState {
    let plan = &plan.plan;
    let limit = &plan.limits()[0];
    let period = limit.rate().map_or(1, |rate| rate.lowest_terms().1);
    let mut state = KeyState::new(plan);
    // Beyond what doubles hold exactly anyway: saturating is as good.
    let (whole, part) = (tokens.floor(), tokens - tokens.floor());
    let level = (whole as i128) * i128::from(period) + (part * period as f64) as i128;
    let full = i128::from(limit.capacity().get()) * i128::from(period);
    state.save(0, limit, State::Bucket(level.min(full)));
    state.set_last(Timestamp::saturating_from_micros((at * 1e6).round().max(0.0) as u64));
    state
}

/// Where rounding makes the difference, the script has decided: its word stands.
fn agree(plan: &Prepared, state: &mut KeyState, cost: Cost, admitted: bool) {
    let limit = &plan.plan.limits()[0];
    let period = limit.rate().map_or(1, |rate| rate.lowest_terms().1);
    let needed = i128::from(cost.get()) * i128::from(period);
    let State::Bucket(level) = state.load(0, limit) else { return };
    if admitted && level < needed {
        state.save(0, limit, State::Bucket(needed));
    } else if !admitted && level >= needed && cost.get() <= limit.capacity().get() {
        state.save(0, limit, State::Bucket(needed - 1));
    }
}
