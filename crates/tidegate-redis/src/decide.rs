//! From what a script says to decisions: the whole answer is worked out here, by the arithmetic that every store
//! shares, from the state the script decided on.

use tidegate::store::{Ask, Grouping};
use tidegate::{Cost, Decision, KeyState, Plan, Timestamp};

use crate::prepared::Prepared;
use crate::record::{Damaged, KeptLog, decode};

/// The state that a record of this plan held; a key never seen, if there was none.
pub(crate) fn state_of(plan: &Prepared, kept: &[u8], logs: Vec<KeptLog>) -> Result<KeyState, Damaged> {
    if kept.is_empty() {
        return Ok(KeyState::new(&plan.plan));
    }
    match kept.strip_prefix(&plan.tag[..]) {
        Some(state) => decode(&plan.plan, state, logs),
        None => Err(Damaged("figures that are not the policy's")),
    }
}

/// The decision of a check, which leaves in `state` what the script left in the record.
pub(crate) fn decide(plan: &Plan, state: &mut KeyState, now: Timestamp, ask: Ask) -> Decision {
    match ask {
        Ask::Exactly(cost) => plan.check(state, now, cost),
        Ask::UpTo(most) => plan.check_up_to(state, now, most),
    }
}

/// What a check would be answered, were it alone; nothing is charged.
pub(crate) fn foresee(plan: &Plan, state: &KeyState, now: Timestamp, ask: Ask) -> Decision {
    match ask {
        Ask::Exactly(cost) => plan.foresee(state, now, cost),
        Ask::UpTo(most) => {
            let charged = plan.check_up_to(&mut state.clone(), now, most).charged();
            // At most `most`, so in range; what cannot have even one is refused that one.
            let cost = Cost::new(charged.max(u64::from(!most.is_peek()))).unwrap_or(most);
            plan.foresee(state, now, cost)
        }
    }
}

/// The members of a group that are of one record, in their order, and the state it was decided on.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) state: KeyState,
    /// Each member's place in the group, and what it asks.
    pub(crate) members: Vec<(usize, Ask)>,
}

/// The decisions of a group, given whether the script admitted it as a whole.
pub(crate) fn group(
    records: &mut [Shared<'_>],
    now: Timestamp,
    grouping: Grouping,
    admitted: bool,
) -> Vec<Decision> {
    let size = records.iter().map(|record| record.members.len()).sum();
    let mut decisions: Vec<Option<Decision>> = vec![None; size];
    if grouping == Grouping::AllOrNothing && admitted {
        for Shared { plan, state, members } in records {
            for (place, ask) in members {
                decisions[*place] = Some(decide(plan, state, now, *ask));
            }
        }
        return decisions.into_iter().flatten().collect();
    }
    for Shared { plan, state, members } in &*records {
        for (place, ask) in members {
            decisions[*place] = Some(foresee(plan, state, now, *ask));
        }
    }
    let mut decisions: Vec<Decision> = decisions.into_iter().flatten().collect();
    if grouping == Grouping::AllOrNothing && decisions.iter().all(Decision::is_allowed) {
        // Each fits alone, but two of one record do not fit together: the first that does not is refused.
        let misfits = records.iter_mut().filter_map(|Shared { plan, state, members }| {
            let mut refused = members.iter().map(|(place, ask)| (*place, decide(plan, state, now, *ask)));
            refused.find(|(_, decision)| !decision.is_allowed())
        });
        if let Some((place, refused)) = misfits.min_by_key(|(place, _)| *place) {
            decisions[place] = refused;
        }
    }
    decisions
}
