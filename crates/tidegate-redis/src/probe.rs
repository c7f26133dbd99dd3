//! At the start: whether the server runs what it will be asked to.

use std::sync::Arc;
use std::time::Duration;

use tidegate::store::Ask;
use tidegate::{Cost, Limit, Period, Policy, Rate, Timestamp};

use crate::engine::Engine;
use crate::prepared::Prepared;
use crate::question::{Question, Trouble};
use crate::script::Deed;

impl Engine {
    /// Runs every script once, on a key of its own that is gone a second later.
    ///
    /// # Errors
    /// What the server is and what it refused.
    pub(crate) async fn probe(&self, within: Duration) -> Result<(), String> {
        let probed = self.try_scripts().await;
        let Err(trouble) = probed else { return Ok(()) };
        let version = self
            .link
            .version(within)
            .await
            .unwrap_or_else(|_| "a server that does not say what it is".into());
        Err(format!(
            "{version} does not run tidegate's scripts: {trouble} (the user needs EVALSHA, SCRIPT LOAD, GET, SET, DEL, LLEN, \
             LINDEX, LRANGE, LTRIM, LPOP, RPOP, RPUSH and PEXPIRE on these keys)"
        ))
    }

    async fn try_scripts(&self) -> Result<(), Trouble> {
        // Of every kind of state there is.
        let blink = Period::from_micros(1).unwrap_or(Period::SECOND);
        let policy = Policy::builder("probe")
            .limit("bucket", Limit::token_bucket(9, Rate::new(9, blink)))
            .limit("counter", Limit::sliding_window_counter(9, blink));
        let policy = match Limit::sliding_window_log(9, blink) {
            Ok(log) => policy.limit("log", log),
            Err(_) => policy,
        };
        let Ok(policy) = policy.build().map(Arc::new) else { return Ok(()) };
        let plan = Arc::new(Prepared::new(&policy, policy.plan(), false));
        let record = self.names.record("probe", b"tidegate probe");
        let now = Timestamp::EPOCH;
        let question = Question { plan, record, ask: Ask::Exactly(Cost::ONE), now, within: self.timeout };
        self.each(std::slice::from_ref(&question)).await.remove(0)?;
        self.change(now, &question, Deed::Charge(1)).await?;
        self.forget(now, &question).await?;
        Ok(())
    }
}
