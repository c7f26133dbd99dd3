//! Keys by hand.

use tidegate::MemoryStore;

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
    // A store elsewhere is not counted: it may hold others' keys as well.
    let of_policies = context.door.app().limiter().store().memory().map_or(0, MemoryStore::keys);
    let keys = context.door.keys().keys() + of_policies;
    context.reply.integer(amount(keys));
    Then::GoOn
}
