//! At the start: whether the server runs what it will be asked to.

use std::sync::Arc;
use std::time::Duration;

use tidegate::store::Ask;
use tidegate::{Cost, Limit, Period, Policy, Rate, Timestamp};
use tidegate_core::{Cells, Log};

use crate::engine::Engine;
use crate::link::RIGHTS;
use crate::prepared::Prepared;
use crate::question::{Question, Trouble};

/// Entries of a log that is kept in place.
const MANY: u32 = 70;

impl Engine {
    /// Runs every script, on a key of its own that is gone afterwards.
    ///
    /// # Errors
    /// What the server is and what it refused.
    pub(crate) async fn probe(&self, within: Duration) -> Result<(), String> {
        let probed = self.try_scripts().await;
        let Err(trouble) = probed else { return Ok(()) };
        if trouble.is_of_no_room() {
            // An outage like any other, which may be over the next moment.
            return Ok(());
        }
        // It may not be one that expires.
        let _ = self.link.delete(&[self.probed_record()], within).await;
        let version = self
            .link
            .version(within)
            .await
            .unwrap_or_else(|_| "a server that does not say what it is".into());
        // A server that refuses for a reason of its own may mean the same.
        let rights = match trouble.may_be_of_rights() {
            true => format!(" (the user needs {RIGHTS} on these keys)"),
            false => String::new(),
        };
        Err(format!("{version} does not run tidegate's scripts: {trouble}{rights}"))
    }

    async fn try_scripts(&self) -> Result<(), Trouble> {
        // Of every kind of state there is.
        let blink = Period::from_micros(1_000).unwrap_or(Period::SECOND);
        let limits = [
            Ok(Limit::token_bucket(9, Rate::new(9, blink))),
            Ok(Limit::sliding_window_counter(9, blink)),
            Limit::sliding_window_log(2 * MANY, blink),
        ];
        let mut limits: Vec<Limit> = limits.into_iter().flatten().collect();
        self.try_limits(&limits).await?;
        // And one that does not expire.
        limits.push(Limit::token_bucket(9, Rate::ZERO));
        self.try_limits(&limits).await
    }

    fn probed_record(&self) -> Vec<u8> {
        self.names.record("probe", b"tidegate probe")
    }

    async fn try_limits(&self, limits: &[Limit]) -> Result<(), Trouble> {
        let named = limits.iter().enumerate().map(|(place, limit)| (place.to_string(), *limit));
        let policy = named.fold(Policy::builder("probe"), |it, (name, limit)| it.limit(name, limit));
        let Ok(policy) = policy.build().map(Arc::new) else { return Ok(()) };
        let plan = Arc::new(Prepared::new(&policy, policy.plan(), false));
        let record = self.probed_record();
        let now = Timestamp::saturating_from_micros(1_000);
        let at = |micros| Timestamp::saturating_from_micros(now.as_micros() + micros);
        let mut question = Question { plan, record, ask: Ask::Exactly(Cost::ONE), now, within: self.timeout };
        self.each(std::slice::from_ref(&question)).await.remove(0)?;
        // So many entries that the record is no longer written as a whole.
        let seen = self.look(&question, now).await?;
        let mut state = seen.state.clone();
        let entries = (0..MANY).map(|entry| (at(u64::from(entry)), 1));
        for (place, _) in limits.iter().enumerate().filter(|(_, limit)| limit.keeps_log()) {
            *state.log_mut(place) = Log::from_entries(entries.clone());
        }
        state.set_last(at(MANY.into()));
        self.swap(seen.swap(&question.plan, &question.record, &state, &self.life(now))).await?;
        for micros in 0..3 {
            question.now = at(u64::from(MANY) + micros);
            self.each(std::slice::from_ref(&question)).await.remove(0)?;
        }
        self.forget(question.now, &question).await?;
        Ok(())
    }
}
