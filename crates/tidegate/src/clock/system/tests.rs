#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use super::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// Some day in 2023.
const START: u64 = 1_700_000_000 * SECOND;

/// Clocks that stand where the test puts them.
struct Virtual {
    boot: AtomicU64,
    /// The wall clock is this much ahead of the clock since boot.
    ahead: AtomicI64,
    /// How long each reading takes.
    takes: AtomicU64,
}

impl Sources for Arc<Virtual> {
    fn boot(&self) -> u64 {
        self.boot.fetch_add(self.takes.load(Ordering::SeqCst), Ordering::SeqCst)
    }

    fn wall(&self) -> u64 {
        Sources::boot(self).saturating_add_signed(self.ahead.load(Ordering::SeqCst))
    }
}

impl Virtual {
    fn run(&self, nanos: u64) {
        self.boot.fetch_add(nanos, Ordering::SeqCst);
    }

    fn step(&self, nanos: i64) {
        self.ahead.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Microseconds since `START` on the wall clock.
    fn wall_micros(&self) -> i64 {
        let wall = self.boot.load(Ordering::SeqCst) as i64 + self.ahead.load(Ordering::SeqCst);
        (wall - START as i64) / 1000
    }
}

fn steered() -> (Steered<Arc<Virtual>>, Arc<Virtual>) {
    let sources = Arc::new(Virtual {
        boot: AtomicU64::new(77 * HOUR),
        ahead: AtomicI64::new((START - 77 * HOUR) as i64),
        takes: AtomicU64::new(0),
    });
    (Steered::new(Arc::clone(&sources)), sources)
}

/// Microseconds since `START`.
fn reading(clock: &Steered<Arc<Virtual>>) -> i64 {
    clock.now().as_micros() as i64 - (START / 1000) as i64
}

#[test]
fn time_runs_and_a_suspension_counts_at_once() {
    let (clock, sources) = steered();
    assert_eq!(reading(&clock), 0);
    sources.run(1_999);
    assert_eq!(reading(&clock), 1);
    sources.run(8 * HOUR - 1_999);
    assert_eq!(reading(&clock), 8 * 3_600_000_000);
}

/// Steps of an hour: the clock neither jumps nor goes back, is never off its own second by more than
/// 500 us, and has taken in the whole step after 2048 hours, 85 days.
#[test]
fn a_step_of_the_wall_clock_is_slewed() {
    for sign in [1, -1] {
        let (clock, sources) = steered();
        sources.step(sign * HOUR as i64);
        // It is noticed at the first reading of the next second.
        sources.run(SECOND);
        assert_eq!(reading(&clock), 1_000_000);
        for second in 1..1000 {
            let last = reading(&clock);
            sources.run(SECOND);
            let made_up = (reading(&clock) - last - 1_000_000) * sign;
            assert!((488..=489).contains(&made_up), "{made_up} us made up in second {second}");
        }
        sources.run(2047 * HOUR);
        assert!((sources.wall_micros() - reading(&clock)) * sign > 0);
        for _ in 0..2 {
            sources.run(HOUR);
            assert_eq!(reading(&clock), sources.wall_micros());
        }
    }
}

/// However long nobody asks, nothing is lost and nothing overshot.
#[test]
fn a_clock_nobody_asks_for_a_year_is_right_after_it() {
    let (clock, sources) = steered();
    sources.step(5_000_000);
    sources.run(SECOND);
    reading(&clock);
    sources.run(366 * 24 * HOUR);
    assert_eq!(reading(&clock), (1 + 366 * 24 * 3600) * 1_000_000 + 5_000);
}

/// A step that is taken back within a second is never noticed: the wall clock is asked once a second.
#[test]
fn the_wall_clock_is_asked_once_a_second() {
    let (clock, sources) = steered();
    sources.run(SECOND);
    reading(&clock);
    sources.step(-5_000_000_000);
    sources.run(SECOND - 1);
    reading(&clock);
    sources.step(5_000_000_000);
    sources.run(1);
    assert_eq!(reading(&clock), 2_000_000);
    sources.run(HOUR);
    assert_eq!(reading(&clock), 3_602_000_000);
}

/// An estimate made over an interruption would be off by its length.
#[test]
fn an_interrupted_estimate_is_not_used() {
    let (clock, sources) = steered();
    sources.run(SECOND);
    sources.takes.store(SIMULTANEOUS, Ordering::SeqCst);
    sources.step(HOUR as i64);
    let before = reading(&clock);
    sources.takes.store(0, Ordering::SeqCst);
    sources.step(-(HOUR as i64));
    sources.run(SECOND);
    let run = (reading(&clock) - before) as u64 * 1000;
    // The interrupted reading itself took three more readings.
    assert_eq!(run, SECOND + 4 * SIMULTANEOUS);
}

#[test]
fn a_wall_clock_before_its_epoch_or_past_its_end_is_survived() {
    let (clock, sources) = steered();
    sources.step(-2 * START as i64);
    sources.run(SECOND);
    reading(&clock);
    sources.run(SECOND);
    assert_eq!(reading(&clock), 2_000_000 - 489);
    sources.step(3 * START as i64);
    sources.run(SECOND);
    let before = reading(&clock);
    sources.run(SECOND);
    assert_eq!(reading(&clock) - before, 1_000_488);
}

/// Four threads read while a fifth makes the wall clock jump about and lets seconds pass, so that
/// courses change all the time. Every thread hands its readings on to the next.
#[test]
fn readings_go_up_across_threads_while_courses_change() {
    let (clock, sources) = steered();
    let (newest, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let before = newest.load(Ordering::SeqCst);
                    let now = clock.now().as_micros();
                    assert!(now >= before, "back from {before} to {now}");
                    newest.fetch_max(now, Ordering::SeqCst);
                }
            });
        }
        // And on until the others have had their turn, which may take a while on a machine that is busy.
        let seen = || newest.load(Ordering::SeqCst) > START / 1000;
        for round in (0..).take_while(|round| *round < 20_000_i64 || !seen()) {
            sources.step((round % 7 - 3) * SECOND as i64);
            sources.run(SECOND / 3);
            if round % 64 == 0 {
                thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(newest.load(Ordering::SeqCst) > START / 1000);
}

#[test]
fn the_system_clock_agrees_with_the_system() {
    let micros = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let clock = SystemClock::new();
    let (before, now, after) = (micros(), clock.now().as_micros(), micros());
    // A step of the wall clock in this very moment aside, it lies between, give or take how far the
    // two raw clocks were apart when the clock was made.
    assert!(before.saturating_sub(1_000_000) <= now && now <= after + 1_000_000, "{before} {now} {after}");
    let readings: Vec<_> = (0..10_000).map(|_| clock.clone().now()).collect();
    assert!(readings.is_sorted());
}

#[cfg(feature = "tokio")]
mod sleeping {
    use super::*;

    /// Runs at a fraction of the speed of tokio's timer, which under paused time is virtual.
    struct Slow {
        began: tokio::time::Instant,
        fraction: u32,
    }

    impl Sources for Slow {
        fn boot(&self) -> u64 {
            (self.began.elapsed() / self.fraction).as_nanos() as u64
        }

        fn wall(&self) -> u64 {
            START + self.boot()
        }
    }

    fn slow(fraction: u32) -> Arc<Steered<Slow>> {
        Arc::new(Steered::new(Slow { began: tokio::time::Instant::now(), fraction }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_goes_on_until_its_own_clock_is_there() {
        for fraction in [1, 3] {
            let clock = slow(fraction);
            let at = Timestamp::saturating_from_micros(START / 1000 + 10_000_000);
            sleep_until(Arc::clone(&clock), at).await;
            assert!(clock.now() >= at);
            let slept = clock.sources.began.elapsed();
            let wanted = Duration::from_secs(10) * fraction;
            assert!(slept >= wanted && slept <= wanted + Duration::from_millis(50), "{slept:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_sleep_looks_at_its_clock_once_a_minute() {
        /// Seconds past its beginning this clock is an hour further: the machine was suspended.
        struct Suspended(tokio::time::Instant);
        impl Sources for Suspended {
            fn boot(&self) -> u64 {
                let run = self.0.elapsed().as_nanos() as u64;
                if run > 90 * SECOND { run + HOUR } else { run }
            }
            fn wall(&self) -> u64 {
                START + self.boot()
            }
        }
        let clock = Arc::new(Steered::new(Suspended(tokio::time::Instant::now())));
        sleep_until(Arc::clone(&clock), Timestamp::saturating_from_micros((START + HOUR) / 1000)).await;
        assert_eq!(clock.sources.0.elapsed().as_secs(), 120);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_until_the_past_is_over_at_once() {
        let clock = slow(1);
        sleep_until(Arc::clone(&clock), Timestamp::EPOCH).await;
        sleep_until(Arc::clone(&clock), clock.now()).await;
        assert_eq!(clock.sources.began.elapsed(), Duration::ZERO);
    }
}
