//! Keys by hand.

use super::units::amount;
use super::{Context, Then};
use crate::resp::parse::Args;

/// `DEL key [key ...]`: of `CL.THROTTLE`. How many there were.
pub(super) fn delete(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let removed = args.from(1).filter(|key| context.door.keys().remove(key)).count();
    context.reply.integer(amount(removed as u64));
    Then::GoOn
}

/// `DBSIZE`.
pub(super) fn size(context: &mut Context<'_>, _: Args<'_>) -> Then {
    let keys = context.door.keys().keys() + context.door.app().limiter().store().keys();
    context.reply.integer(amount(keys));
    Then::GoOn
}
