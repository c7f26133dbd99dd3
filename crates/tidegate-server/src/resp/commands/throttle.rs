//! `CL.THROTTLE`, as redis-cell answers it where redis-cell is right.

use tidegate::store::AdHoc;
use tidegate::{AdHocCheck, AdHocLimit, Cost, Decision, Outcome, Period, Rate, Units, Wait};

use super::units::{amount, integer, not_an_integer, wait};
use super::{Awaited, Context, Then, after_run};
use crate::resp::door::THROTTLE;
use crate::resp::limits::Asked;
use crate::resp::parse::Args;
use crate::resp::reply::Reply;
use crate::resp::run::Kind;

/// `CL.THROTTLE key max_burst count period [quantity]`.
pub(super) fn throttle(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Context { door, session, now, .. } = context;
    let number = |index| args.get(index).and_then(integer);
    let (Some(key), Some(burst), Some(count), Some(period)) = (args.get(1), number(2), number(3), number(4))
    else {
        return after_run(context, |context| not_an_integer(&mut context.reply));
    };
    let Some(quantity) = args.get(5).map_or(Some(1), integer) else {
        return after_run(context, |context| not_an_integer(&mut context.reply));
    };
    let limit = match session.limits.get([burst, count, period], limit) {
        Ok(limit) => limit,
        Err(wrong) => return after_run(context, |context| wrong.tell(&mut context.reply)),
    };
    let Some(asks) = Asks::of(quantity) else {
        let wrong = Wrong { name: "quantity", value: quantity, least: -MOST_UNITS, most: MOST_UNITS };
        return after_run(context, |context| wrong.tell(&mut context.reply));
    };
    let Some(keys) = door.keys() else {
        let limit = limit.clone();
        return elsewhere(context, key, limit, asks);
    };
    if !context.run.is_empty() {
        return Then::AfterRun;
    }
    let decision = match asks {
        Asks::For(cost) => keys.check(*now, key, limit, cost),
        Asks::GivesBack(units) => keys.credit(*now, key, limit, units),
    };
    if quantity > 0 {
        door.app().metrics().throttled(decision.outcome());
        context.batch.decisions += 1;
    }
    answer(&mut context.reply, &decision);
    Then::GoOn
}

/// What a quantity means.
#[derive(Debug, Clone, Copy)]
enum Asks {
    For(Cost),
    GivesBack(Units),
}

impl Asks {
    #[inline]
    fn of(quantity: i64) -> Option<Self> {
        let amount = quantity.unsigned_abs();
        match quantity {
            0.. => Cost::new(amount).ok().map(Asks::For),
            _ => Units::new(amount).ok().map(Asks::GivesBack),
        }
    }
}

/// Where the keys are in a store elsewhere: checks are put together, and what is given back is asked for by itself.
fn elsewhere(context: &mut Context<'_>, key: &[u8], limit: AdHocLimit, asks: Asks) -> Then {
    let Context { door, run, now, is_heard, .. } = context;
    let units = match asks {
        Asks::For(cost) if run.takes(Kind::Throttle) => {
            run.join_throttle(limit, key, cost, *is_heard);
            return Then::GoOn;
        }
        Asks::GivesBack(units) if run.is_empty() => units,
        _ => return Then::AfterRun,
    };
    let of = AdHocCheck { space: THROTTLE, key, limit: &limit, cost: Cost::PEEK };
    let credited = door.app().limiter().store().credit_ad_hoc(*now, of, units);
    // Told as a look would be, for that is what is known of it.
    run.join_throttle(limit, key, Cost::PEEK, *is_heard);
    Then::Wait(Awaited::Run(Box::pin(async { vec![credited.await] })))
}

/// The five integers; or, where there was no room for a new key, an error, since they have no word for it.
pub(in crate::resp) fn answer(reply: &mut Reply<'_>, decision: &Decision) {
    if decision.outcome() == Outcome::Overloaded {
        reply.error(format_args!(
            "OOM no room for a new key: the store holds max_keys of them and on_full is refuse_new"
        ));
        return;
    }
    let allowed = decision.is_allowed();
    let retry_after = decision.retry_after().filter(|_| !allowed);
    reply.array(5);
    reply.integer(i64::from(!allowed));
    reply.integer(amount(decision.limit().get()));
    // -1 stands for what is not known.
    reply.integer(if decision.is_metered() { amount(decision.remaining()) } else { -1 });
    reply.integer(wait(retry_after.map(Wait::as_secs_ceil)));
    reply.integer(wait(decision.reset_after().map(Wait::as_secs_ceil)));
}

/// 10^12.
const MOST_UNITS: i64 = Units::MAX.get() as i64;
/// 366 days.
const MOST_SECONDS: i64 = (Period::MAX.as_micros() / 1_000_000) as i64;

/// A figure that no limit has.
struct Wrong {
    name: &'static str,
    value: i64,
    least: i64,
    most: i64,
}

impl Wrong {
    fn tell(&self, reply: &mut Reply<'_>) {
        let Wrong { name, value, least, most } = self;
        match (*name, *value) {
            ("count" | "period", 0) => {
                reply.error(format_args!("ERR zero rates are not supported ({name} has to be 1 or more)"));
            }
            _ => reply
                .error(format_args!("ERR {name}: {value} is out of range: it goes from {least} to {most}")),
        }
    }
}

/// The limit of `max_burst`, `count` and `period` seconds.
fn limit([burst, count, period]: Asked) -> Result<AdHocLimit, Wrong> {
    let within = |name, value: i64, least, most| match u64::try_from(value) {
        Ok(fits) if (least..=most).contains(&value) => Ok(fits),
        _ => Err(Wrong { name, value, least, most }),
    };
    let burst = within("max_burst", burst, 0, MOST_UNITS - 1)?;
    let count = within("count", count, 1, MOST_UNITS)?;
    let period = within("period", period, 1, MOST_SECONDS)?;
    // Each is in range, as just seen.
    let units = |amount| Units::new(amount).unwrap_or(Units::MAX);
    let per = Period::from_micros(period * 1_000_000).unwrap_or(Period::MAX);
    Ok(AdHocLimit::gcra(Rate::new(units(count), per), units(burst + 1)))
}
