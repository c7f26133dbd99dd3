//! The arithmetic of a clock that follows the wall clock without ever jumping.
//!
//! All figures are nanoseconds: a change of course must not lose the part of a microsecond already
//! run, or the clock would fall behind a little with each.

use tidegate_core::Timestamp;

/// Of so many nanoseconds run, one is given to catching up with the wall clock: 488 us in a second.
const SLEW: u64 = 2048;

/// The last reading there can be: the end of [`Timestamp`]'s range.
const MAX_NANOS: u64 = Timestamp::MAX.as_micros() * 1000;

/// The course of a clock: where it stood at one instant and how far it was from the wall clock then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Course {
    /// The instant, on the clock that counts since boot.
    pub boot: u64,
    /// The reading at that instant, since the Unix epoch.
    pub reading: u64,
    /// By how much the wall clock was ahead of the reading then; negative if it was behind.
    pub ahead: i64,
}

impl Course {
    /// The course of a clock that starts in agreement with the wall clock.
    pub fn starting(boot: u64, wall: u64) -> Self {
        Self { boot, reading: wall.min(MAX_NANOS), ahead: 0 }
    }

    /// The reading at an instant on the course: time run since, sped up or slowed down until what
    /// the wall clock was ahead is made up. An instant before the course began reads as its beginning.
    #[inline]
    pub fn at(&self, boot: u64) -> u64 {
        let run = boot.saturating_sub(self.boot);
        let made_up = (run / SLEW).min(self.ahead.unsigned_abs());
        let reading = self.reading.saturating_add(run);
        // Cannot fall below `self.reading`: what is made up is a small part of `run`.
        let reading = if self.ahead < 0 { reading - made_up } else { reading.saturating_add(made_up) };
        reading.min(MAX_NANOS)
    }
}

/// The course from `boot` on, given what the wall clock says: it begins with the reading that
/// `course` has there, so a reading never jumps, and heads for `wall`.
pub(super) fn slew(course: Course, boot: u64, wall: u64) -> Course {
    let boot = boot.max(course.boot);
    let reading = course.at(boot);
    // Both are at most 2^53 us in nanoseconds, which is below 2^63.
    let ahead = wall.min(MAX_NANOS) as i64 - reading as i64;
    Course { boot, reading, ahead }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;
    /// Some day in 2023.
    const START: u64 = 1_700_000_000 * SECOND;

    #[test]
    fn a_course_on_time_runs_like_the_clock_since_boot() {
        let course = Course::starting(5, START);
        assert_eq!([course.at(5), course.at(6), course.at(5 + HOUR)], [START, START + 1, START + HOUR]);
        assert_eq!(course.at(0), START);
        assert_eq!(
            slew(course, 5 + HOUR, START + HOUR),
            Course { boot: 5 + HOUR, reading: START + HOUR, ahead: 0 }
        );
    }

    #[test]
    fn a_second_is_made_up_in_2048_seconds_and_not_overshot() {
        for (ahead, then) in [(1_i64, 2049), (-1, 2047)] {
            let course = Course { boot: 0, reading: START, ahead: ahead * SECOND as i64 };
            assert_eq!(course.at(SECOND), (START + SECOND).saturating_add_signed(ahead * 488_281));
            assert_eq!(course.at(2048 * SECOND), START + then * SECOND);
            assert_eq!(course.at(4096 * SECOND), START + (then + 2048) * SECOND);
        }
    }

    #[test]
    fn readings_end_with_the_range_of_time_stamps() {
        let course = slew(Course::starting(0, u64::MAX), 7, u64::MAX);
        assert_eq!(course, Course { boot: 7, reading: MAX_NANOS, ahead: 0 });
        assert_eq!(course.at(u64::MAX), MAX_NANOS);
        let back = slew(course, 8, 0);
        assert_eq!((back.reading, back.ahead), (MAX_NANOS, -(MAX_NANOS as i64)));
        assert_eq!(back.at(u64::MAX), MAX_NANOS);
        assert_eq!(slew(Course::starting(0, 0), 0, u64::MAX).ahead, MAX_NANOS as i64);
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, i64)>> {
        let run = prop_oneof![0..5 * SECOND, 0..2 * HOUR, Just(0_u64), Just(1_u64)];
        let step = prop_oneof![
            3 => Just(0_i64),
            2 => -2_000_000_i64..2_000_000,
            1 => -2 * HOUR as i64..2 * HOUR as i64,
        ];
        prop::collection::vec((run, step), 1..50)
    }

    proptest! {
        /// With a wall clock that runs and steps at will, estimated anew at any intervals.
        #[test]
        fn readings_are_continuous_monotone_and_of_bounded_rate(steps in steps()) {
            let (mut boot, mut wall) = (0, START);
            let mut course = Course::starting(boot, wall);
            for (run, step) in steps {
                let before = course.at(boot);
                (boot, wall) = (boot + run, (wall + run).saturating_add_signed(step));
                let after = course.at(boot);
                let next = slew(course, boot, wall);
                prop_assert_eq!(next.at(boot), after, "a jump");
                prop_assert!(after >= before, "a step back");
                prop_assert!((after - before).abs_diff(run) <= run / 2000 + 1, "a rate over 500 us/s");
                prop_assert!(
                    wall.abs_diff(after) <= wall.abs_diff(before + run) || step != 0,
                    "away from the wall clock"
                );
                course = next;
            }
        }

        #[test]
        fn readings_reach_the_wall_clock_and_stay(
            ahead in -2 * HOUR as i64..2 * HOUR as i64,
            every in SECOND..5000 * SECOND,
        ) {
            let mut course = Course { boot: 0, reading: START, ahead };
            let wall = START.saturating_add_signed(ahead);
            // Each new estimate may lose less than one nanosecond of what it has made up.
            let rounds = SLEW * ahead.unsigned_abs() / every + 1;
            for boot in (1..=rounds.min(2000)).map(|round| round * every) {
                course = slew(course, boot, wall + boot);
            }
            let boot = rounds.min(2000) * every;
            let left = ahead.unsigned_abs().saturating_sub(boot / SLEW);
            prop_assert!(course.ahead.unsigned_abs() <= left + rounds);
            let done = boot + SLEW * course.ahead.unsigned_abs();
            prop_assert_eq!(course.at(done), wall + done);
            prop_assert_eq!(slew(course, done + every, wall + done + every).ahead, 0);
        }
    }
}
