//! `TG.*`: decisions under the policies of the configuration.

use tidegate::{Cost, PolicyHandle, Wait};

use super::units::{amount, cost, units, wait};
use super::{Context, Then, shown};
use crate::http::View;
use crate::resp::parse::Args;

/// `TG.CHECK policy key [cost]`.
pub(super) fn check(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some((policy, key)) = subject(context, args) else { return Then::GoOn };
    let cost = match args.get(3) {
        None => Cost::ONE,
        Some(word) => match cost(&mut context.reply, word) {
            Some(cost) => cost,
            None => return Then::GoOn,
        },
    };
    let now = context.now;
    let view = View::of(&policy, key, |policy| policy.check_at(key, cost, now));
    if !cost.is_peek() {
        context.count(view.policy().name(), view.decision().outcome());
    }
    answer(context, &view);
    Then::GoOn
}

/// `TG.PEEK policy key`.
pub(super) fn peek(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some((policy, key)) = subject(context, args) else { return Then::GoOn };
    let now = context.now;
    answer(context, &View::of(&policy, key, |policy| policy.peek_at(key, now)));
    Then::GoOn
}

/// `TG.CREDIT policy key units`.
pub(super) fn credit(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some((policy, key)) = subject(context, args) else { return Then::GoOn };
    let Some(units) = units(&mut context.reply, args.get(3).unwrap_or_default()) else { return Then::GoOn };
    let now = context.now;
    answer(context, &View::of(&policy, key, |policy| policy.credit_at(key, units, now)));
    Then::GoOn
}

/// `TG.RESET policy key`.
pub(super) fn reset(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Some((policy, key)) = subject(context, args) else { return Then::GoOn };
    answer(context, &View::of(&policy, key, |policy| policy.reset(key)));
    Then::GoOn
}

/// The policy and the key that a command names. An error is told.
fn subject<'a>(context: &mut Context<'_>, args: Args<'a>) -> Option<(PolicyHandle, &'a [u8])> {
    let (name, key) = (args.get(1)?, args.get(2)?);
    let limiter = context.door.app().limiter();
    match std::str::from_utf8(name).ok().map(|name| limiter.policy(name)) {
        Some(Ok(policy)) => Some((policy, key)),
        _ => {
            let name = shown(name);
            let known = crate::http::known_policies(context.door.app());
            context
                .reply
                .error(format_args!("ERR policy: '{name}': no policy has this name (there are {known})"));
            None
        }
    }
}

/// How a key stands: `allowed`, `limit`, `remaining`, `retry_after_ms`, `reset_after_ms`, `delay_ms`, `outcome`,
/// `bound_by`.
fn answer(context: &mut Context<'_>, view: &View<'_>) {
    let decision = view.decision();
    let reply = &mut context.reply;
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
