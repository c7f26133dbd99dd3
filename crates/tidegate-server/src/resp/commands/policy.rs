//! `TG.*`: decisions under the policies of the configuration.

use std::sync::Arc;

use tidegate::{Cost, Decision, Outcome, Policy, PolicyHandle, Wait};

use super::units::{amount, cost, units, wait};
use super::{Context, Then, shown};
use crate::metrics::PolicyCounters;
use crate::resp::parse::Args;
use crate::resp::reply::Reply;
use crate::view::View;

/// A policy that commands of a batch decide under, looked up once.
#[derive(Debug)]
pub(in crate::resp) struct Known {
    handle: PolicyHandle,
    policy: Arc<Policy>,
    counters: PolicyCounters,
}

/// `TG.CHECK policy key [cost]`.
pub(super) fn check(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let cost = match args.get(3) {
        None => Cost::ONE,
        Some(word) => match cost(&mut context.reply, word) {
            Some(cost) => cost,
            None => return Then::GoOn,
        },
    };
    let now = context.now;
    let decided = answer(context, args, |policy, key| policy.check_at(key, cost, now));
    if let Some(outcome) = decided.filter(|_| !cost.is_peek())
        && let Some(known) = &context.batch.policy
    {
        known.counters.count(outcome);
        context.batch.decisions += 1;
    }
    Then::GoOn
}

/// `TG.PEEK policy key`.
pub(super) fn peek(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let now = context.now;
    answer(context, args, |policy, key| policy.peek_at(key, now));
    Then::GoOn
}

/// `TG.CREDIT policy key units`.
pub(super) fn credit(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some(units) = units(&mut context.reply, args.get(3).unwrap_or_default()) else { return Then::GoOn };
    let now = context.now;
    answer(context, args, |policy, key| policy.credit_at(key, units, now));
    Then::GoOn
}

/// `TG.RESET policy key`.
pub(super) fn reset(context: &mut Context<'_>, args: Args<'_>) -> Then {
    answer(context, args, |policy, key| policy.reset(key));
    Then::GoOn
}

/// Has the policy that a command names decide about the key it names, and tells how it stands. `None` if there is no
/// such policy, which is told.
fn answer(
    context: &mut Context<'_>,
    args: Args<'_>,
    decide: impl FnOnce(&PolicyHandle, &[u8]) -> Decision,
) -> Option<Outcome> {
    let (name, key) = (args.get(1)?, args.get(2)?);
    let last = context.batch.policy.take().filter(|known| known.policy.name().as_bytes() == name);
    let known = match last.or_else(|| look_up(context, name)) {
        Some(known) => context.batch.policy.insert(known),
        None => return unknown(context, name),
    };
    let policy = Arc::clone(&known.policy);
    let view = View::of_known(policy, &known.handle, key, |handle| decide(handle, key));
    tell(&mut context.reply, &view);
    Some(view.decision().outcome())
}

fn look_up(context: &Context<'_>, name: &[u8]) -> Option<Known> {
    let app = context.door.app();
    let name = std::str::from_utf8(name).ok()?;
    let handle = app.limiter().policy(name).ok()?;
    Some(Known { policy: handle.policy(), handle, counters: app.metrics().of_policy(name) })
}

fn unknown<T>(context: &mut Context<'_>, name: &[u8]) -> Option<T> {
    let name = shown(name);
    let known = context.door.app().known_policies();
    context.reply.error(format_args!("ERR policy: '{name}': no policy has this name (there are {known})"));
    None
}

/// How a key stands: `allowed`, `limit`, `remaining`, `retry_after_ms`, `reset_after_ms`, `delay_ms`, `outcome`,
/// `bound_by`.
fn tell(reply: &mut Reply<'_>, view: &View<'_>) {
    let decision = view.decision();
    reply.array(8);
    reply.integer(i64::from(decision.is_allowed()));
    reply.integer(amount(decision.limit().get()));
    reply.integer(amount(decision.remaining()));
    reply.integer(wait(decision.retry_after().map(Wait::as_millis_ceil)));
    reply.integer(wait(decision.reset_after().map(Wait::as_millis_ceil)));
    reply.integer(wait(Some(decision.delay().as_millis_ceil())));
    reply.bulk(decision.outcome().as_str().as_bytes());
    reply.bulk(view.bound_by().as_bytes());
}
