//! Giving a server up for the moment, so that one that answers nothing costs no caller the wait for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tidegate::clock::Clock;
use tidegate_core::Wait;
use tokio::sync::Notify;

use super::backoff::Backoff;

/// The first probe comes no later than this after the server was given up.
const FIRST_PROBE: Duration = Duration::from_millis(100);
/// And the next ones no later than this after the one before.
const LAST_PROBE: Duration = Duration::from_secs(2);

/// Opens when so many calls in a row were not answered; then no more are let through until a probe of its own is.
pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    after: u32,
    unanswered: AtomicU32,
    open: AtomicBool,
    opened: Notify,
}

impl Breaker {
    pub fn new(clock: Arc<dyn Clock>, after: u32) -> Self {
        let (unanswered, open) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { clock, after: after.max(1), unanswered, open, opened: Notify::new() }
    }

    /// Why no call is let through, if none is.
    pub fn refusal(&self) -> Option<String> {
        let open = self.open.load(Ordering::Relaxed);
        open.then(|| format!("given up for now: {} calls in a row had no answer", self.after))
    }

    /// A call was answered.
    pub fn answered(&self) {
        // Nearly always 0 already, and then not written: many threads look at it.
        if self.unanswered.load(Ordering::Relaxed) != 0 {
            self.unanswered.store(0, Ordering::Relaxed);
        }
    }

    /// A call was not.
    pub fn not_answered(&self) {
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if unanswered >= self.after && !self.open.swap(true, Ordering::Relaxed) {
            self.opened.notify_one();
        }
    }

    /// Probes the server whenever it was given up, at moments that differ from client to client, until it answers.
    pub async fn keep<F: Future<Output = bool> + Send>(&self, probe: impl Fn() -> F + Send) {
        loop {
            self.opened.notified().await;
            let mut waits = Backoff::between(FIRST_PROBE, LAST_PROBE);
            while self.open.load(Ordering::Relaxed) {
                let wait = Wait::from_micros(waits.next().as_micros());
                self.clock.sleep_until(self.clock.now().saturating_add(wait)).await;
                if probe().await {
                    self.unanswered.store(0, Ordering::Relaxed);
                    self.open.store(false, Ordering::Relaxed);
                }
            }
        }
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("unanswered", &self.unanswered).field("open", &self.open).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tidegate::clock::ManualClock;
    use tokio::task::yield_now;

    use super::*;

    #[test]
    fn it_opens_after_so_many_in_a_row_and_not_before() {
        let breaker = Breaker::new(Arc::new(ManualClock::default()), 3);
        for _ in 0..5 {
            breaker.not_answered();
            breaker.not_answered();
            assert_eq!(breaker.refusal(), None);
            breaker.answered();
        }
        for _ in 0..3 {
            breaker.not_answered();
        }
        assert_eq!(breaker.refusal().as_deref(), Some("given up for now: 3 calls in a row had no answer"));
        // What was sent before and is answered late lets nobody through: the probe decides.
        breaker.answered();
        assert!(breaker.refusal().is_some());
    }

    /// In virtual time: probes come, later and later, until one is answered; then the next outage begins anew.
    #[tokio::test]
    async fn probes_come_later_and_later_until_one_is_answered() {
        let clock = ManualClock::default();
        let breaker = Arc::new(Breaker::new(Arc::new(clock.clone()), 2));
        let (probes, alive) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let keeper = tokio::spawn({
            let (breaker, probes, alive) = (Arc::clone(&breaker), Arc::clone(&probes), Arc::clone(&alive));
            async move {
                let probe = || {
                    probes.fetch_add(1, Ordering::Relaxed);
                    std::future::ready(alive.load(Ordering::Relaxed))
                };
                breaker.keep(probe).await;
            }
        });
        yield_now().await;
        assert_eq!(clock.next_wake(), None, "nobody is to be probed");
        for outage in 0..3 {
            alive.store(false, Ordering::Relaxed);
            breaker.not_answered();
            breaker.not_answered();
            yield_now().await;
            let mut bound = 100_000;
            for probe in 0..8 {
                let (now, next) = (clock.now().as_micros(), clock.next_wake().unwrap().as_micros());
                assert!((bound / 2..=bound).contains(&(next - now)), "{} of {bound} us", next - now);
                bound = (2 * bound).min(2_000_000);
                alive.store(probe == 7, Ordering::Relaxed);
                assert!(breaker.refusal().is_some());
                clock.set(clock.next_wake().unwrap());
                yield_now().await;
            }
            assert_eq!(breaker.refusal(), None);
            assert_eq!((probes.load(Ordering::Relaxed), clock.next_wake()), (8 * (outage + 1), None));
            breaker.not_answered();
            assert_eq!(breaker.refusal(), None, "counting begins anew");
            breaker.answered();
        }
        keeper.abort();
    }
}
