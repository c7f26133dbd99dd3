//! When it will be whose turn, if nothing else happens.

use tidegate_core::{Cells, Cost, Decision, KeyState, Plan, Timestamp, Wait};

use super::AcquireError;
use crate::store::Snapshot;

/// A copy of a key's state, served to one waiter after the other.
///
/// It is kept as it stands after the last of the line, so another's turn costs no more than the plan's own
/// arithmetic, however long the line is.
#[derive(Debug)]
pub(crate) struct Forecast {
    plan: Plan,
    state: KeyState,
    /// The instant the last of the line is served.
    at: Timestamp,
}

impl Forecast {
    /// Of a line in which nobody stands yet; nobody is served before `at`.
    pub(crate) fn new(snapshot: Snapshot, at: Timestamp) -> Self {
        let Snapshot { plan, state } = snapshot;
        Forecast { plan, state, at }
    }

    /// Serves one more, and tells the instant it is admitted. Whoever cannot be served, or whose work could not
    /// leave by `deadline`, takes nothing.
    pub(crate) fn serve(
        &mut self,
        now: Timestamp,
        cost: Cost,
        deadline: Timestamp,
    ) -> Result<Timestamp, AcquireError> {
        let mut due = self.at.max(now);
        let mut seen = self.plan.foresee(&self.state, due, cost);
        // Waits are honest, so this goes round once; were they not, it would still come to an end.
        while !seen.is_allowed() {
            let wait = seen.retry_after().ok_or(AcquireError::Never)?.max(Wait::from_micros(1));
            let from = due.max(self.state.last());
            let needs = between(now, from).plus(wait);
            if needs > between(now, Timestamp::MAX) {
                return Err(AcquireError::TooLate { needs });
            }
            due = from.saturating_add(wait);
            seen = self.plan.foresee(&self.state, due, cost);
        }
        let needs = between(now, due).plus(seen.delay());
        if now > deadline || needs > between(now, deadline) {
            return Err(AcquireError::TooLate { needs });
        }
        self.plan.check(&mut self.state, due, cost);
        self.at = due;
        Ok(due)
    }

    /// The answer to somebody who does not stand in the line: refused, until after the last of it.
    pub(crate) fn behind(&self, now: Timestamp, cost: Cost) -> Decision {
        let then = self.plan.foresee(&self.state, self.at, cost);
        // The line is still there, so it is not served at this very instant.
        Decision::behind_waiters(&then, between(now, self.at).max(Wait::from_micros(1)))
    }
}

/// The wait from one instant to a later one.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Wait {
    Wait::from_micros(u128::from(to.micros_since(from)))
}
