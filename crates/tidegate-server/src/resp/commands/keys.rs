//! Keys by hand.

use tidegate::store::AdHoc;
use tidegate::{AdHocStore, MemoryStore};

use super::units::amount;
use super::{Awaited, Context, Then};
use crate::resp::door::THROTTLE;
use crate::resp::parse::Args;

/// `DEL key [key ...]`: of `CL.THROTTLE`. How many there were.
pub(super) fn delete(context: &mut Context<'_>, args: Args<'_>) -> Then {
    let keys: Vec<&[u8]> = args.from(1).collect();
    match context.door.app().limiter().store().forget_ad_hoc(THROTTLE, &keys).now() {
        Ok(removed) => {
            context.reply.integer(amount(removed));
            Then::GoOn
        }
        Err(later) => Then::Wait(Awaited::Count(later, context.is_heard)),
    }
}

/// `DBSIZE`.
pub(super) fn size(context: &mut Context<'_>, _: Args<'_>) -> Then {
    // A store elsewhere is not counted: it may hold others' keys as well.
    let of_policies = context.door.app().limiter().store().memory().map_or(0, MemoryStore::keys);
    let keys = context.door.keys().map_or(0, AdHocStore::keys) + of_policies;
    context.reply.integer(amount(keys));
    Then::GoOn
}
