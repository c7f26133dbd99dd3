//! `TG.*`: decisions under the policies of the configuration.

use tidegate::{Cost, Decision, Policy, Wait};

use super::units::{amount, cost, no_cost, units, wait};
use super::{Awaited, Context, Then, after_run, shown};
use crate::resp::parse::Args;
use crate::resp::reply::Reply;
use crate::resp::run::Kind;
use crate::store::{Handle, Soon};

/// `TG.CHECK policy key [cost]`.
pub(super) fn check(context: &mut Context<'_>, args: Args<'_>) -> Then {
    match args.get(3).map_or(Some(Cost::ONE), cost) {
        Some(cost) => join(context, args, cost),
        None => after_run(context, |context| no_cost(&mut context.reply, args.get(3).unwrap_or_default())),
    }
}

/// `TG.PEEK policy key`.
pub(super) fn peek(context: &mut Context<'_>, args: Args<'_>) -> Then {
    join(context, args, Cost::PEEK)
}

/// Puts a check into the run of those that are decided together.
fn join(context: &mut Context<'_>, args: Args<'_>, cost: Cost) -> Then {
    let (Some(name), Some(key)) = (args.get(1), args.get(2)) else { return Then::GoOn };
    if !context.run.takes(Kind::Policies) {
        return Then::AfterRun;
    }
    match context.run.policy(context.door, name) {
        Some(policy) => context.run.join(policy, key, cost, context.is_heard),
        None => return after_run(context, |context| unknown(context, name)),
    }
    Then::GoOn
}

/// `TG.CREDIT policy key units`.
pub(super) fn credit(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some(units) = units(&mut context.reply, args.get(3).unwrap_or_default()) else { return Then::GoOn };
    let now = context.now;
    change(context, args, |policy, key| policy.credit_at(key, units, now))
}

/// `TG.RESET policy key`.
pub(super) fn reset(context: &mut Context<'_>, args: Args<'_>) -> Then {
    change(context, args, |policy, key| policy.reset(key))
}

/// Has a key changed, and tells how it then stands.
fn change(
    context: &mut Context<'_>,
    args: Args<'_>,
    change: impl FnOnce(&Handle, &[u8]) -> Soon<Decision>,
) -> Then {
    let (Some(name), Some(key)) = (args.get(1), args.get(2)) else { return Then::GoOn };
    let Some(policy) = context.run.policy(context.door, name) else {
        unknown(context, name);
        return Then::GoOn;
    };
    let changed = change(&context.run.known(policy).handle, key);
    // Told as a look would be, for that is what is known of it.
    context.run.join(policy, key, Cost::PEEK, context.is_heard);
    match changed.now() {
        Ok(decision) => {
            context.run.told(context.door.app(), std::iter::once(Ok(&decision)), &mut context.reply);
            Then::GoOn
        }
        Err(later) => Then::Wait(Awaited::Run(Box::pin(async { vec![later.await] }))),
    }
}

fn unknown(context: &mut Context<'_>, name: &[u8]) {
    let name = shown(name);
    let known = context.door.app().known_policies();
    context.reply.error(format_args!("ERR policy: '{name}': no policy has this name (there are {known})"));
}

/// How a key stands: `allowed`, `limit`, `remaining`, `retry_after_ms`, `reset_after_ms`, `delay_ms`, `outcome`,
/// `bound_by`.
pub(in crate::resp) fn tell(reply: &mut Reply<'_>, policy: &Policy, decision: &Decision) {
    reply.array(8);
    reply.integer(i64::from(decision.is_allowed()));
    reply.integer(amount(decision.limit().get()));
    // -1 stands for what is not known.
    reply.integer(if decision.is_metered() { amount(decision.remaining()) } else { -1 });
    reply.integer(wait(decision.retry_after().map(Wait::as_millis_ceil)));
    reply.integer(wait(decision.reset_after().map(Wait::as_millis_ceil)));
    reply.integer(wait(Some(decision.delay().as_millis_ceil())));
    reply.bulk(decision.outcome().as_str().as_bytes());
    reply.bulk(policy.limit_name(decision.bound_by()).as_bytes());
}
