//! `CL.THROTTLE`, as redis-cell answers it where redis-cell is right.

use tidegate::{AdHocLimit, Cost, Decision, Outcome, Period, Rate, Units, Wait};

use super::units::{amount, integer, not_an_integer, wait};
use super::{Context, Then};
use crate::resp::limits::Asked;
use crate::resp::parse::Args;

/// `CL.THROTTLE key max_burst count period [quantity]`.
pub(super) fn throttle(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let Context { door, session, reply, now, batch, .. } = context;
    let number = |index| args.get(index).and_then(integer);
    let (Some(key), Some(burst), Some(count), Some(period)) = (args.get(1), number(2), number(3), number(4))
    else {
        not_an_integer(reply);
        return Then::GoOn;
    };
    let Some(quantity) = args.get(5).map_or(Some(1), integer) else {
        not_an_integer(reply);
        return Then::GoOn;
    };
    let limit = match session.limits.get([burst, count, period], limit) {
        Ok(limit) => limit,
        Err(wrong) => {
            wrong.tell(reply);
            return Then::GoOn;
        }
    };
    let decision = match (Cost::new(quantity.unsigned_abs()), Units::new(quantity.unsigned_abs())) {
        (Ok(cost), _) if quantity >= 0 => door.keys().check(*now, key, limit, cost),
        (_, Ok(units)) if quantity < 0 => door.keys().credit(*now, key, limit, units),
        _ => {
            Wrong { name: "quantity", value: quantity, least: -MOST_UNITS, most: MOST_UNITS }.tell(reply);
            return Then::GoOn;
        }
    };
    if quantity > 0 {
        door.app().metrics().throttled(decision.outcome());
        batch.decisions += 1;
    }
    if decision.outcome() == Outcome::Overloaded {
        reply.error(format_args!(
            "OOM no room for a new key: the store holds max_keys of them and on_full is refuse_new"
        ));
        return Then::GoOn;
    }
    answer(context, &decision);
    Then::GoOn
}

fn answer(context: &mut Context<'_>, decision: &Decision) {
    let allowed = decision.is_allowed();
    let retry_after = decision.retry_after().filter(|_| !allowed);
    let reply = &mut context.reply;
    reply.array(5);
    reply.integer(i64::from(!allowed));
    reply.integer(amount(decision.limit().get()));
    reply.integer(amount(decision.remaining()));
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
    fn tell(&self, reply: &mut crate::resp::reply::Reply<'_>) {
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
