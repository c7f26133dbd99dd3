//! A course that many threads read and one, now and then, replaces.
//!
//! A sequence lock: the writer makes the count odd, writes, and makes it even; a reader that finds
//! another count after reading than before reads again. Readers write nothing, so they share
//! the cache line freely. They wait only while a writer is between its few stores, once a second.
//!
//! What is unusual is that **both read the clock inside**. If a reader's count has not changed, its
//! instant was taken before the writer's, and everybody who sees the new course took a later one.
//! As a course begins where the last one ended, readings go up across all threads; with the clock read
//! outside, a thread stopped in between could hand out a reading beyond the new course's.

use super::slew::Course;

/// The operations on atomic words that the lock needs: the standard library's or a model checker's.
pub(super) trait Atomics {
    type Word: Send + Sync;
    fn new(value: u64) -> Self::Word;
    fn load(word: &Self::Word, order: Ordering) -> u64;
    fn store(word: &Self::Word, value: u64, order: Ordering);
    /// Whether `word` was `current` and is now `new`; acquires if so.
    fn replace(word: &Self::Word, current: u64, new: u64) -> bool;
    fn fence(order: Ordering);
    /// Lets the writer go on.
    fn pause();
}

pub(super) use std::sync::atomic::Ordering;

/// The atomics of the standard library.
pub(super) struct Std;

impl Atomics for Std {
    type Word = std::sync::atomic::AtomicU64;

    fn new(value: u64) -> Self::Word {
        value.into()
    }

    #[inline]
    fn load(word: &Self::Word, order: Ordering) -> u64 {
        word.load(order)
    }

    fn store(word: &Self::Word, value: u64, order: Ordering) {
        word.store(value, order);
    }

    fn replace(word: &Self::Word, current: u64, new: u64) -> bool {
        word.compare_exchange(current, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }

    fn pause() {
        // Not a spin hint: the writer may have been preempted on this very core.
        std::thread::yield_now();
    }
}

/// Which course a reader saw: what it hands to [`SeqLock::replace`] to replace that one and no newer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version(u64);

/// A [`Course`] behind a sequence lock.
pub(super) struct SeqLock<A: Atomics> {
    /// Odd while a writer is at work.
    count: A::Word,
    boot: A::Word,
    reading: A::Word,
    ahead: A::Word,
}

impl<A: Atomics> SeqLock<A> {
    pub fn new(course: Course) -> Self {
        Self {
            count: A::new(0),
            boot: A::new(course.boot),
            reading: A::new(course.reading),
            ahead: A::new(course.ahead as u64),
        }
    }

    /// The course and an instant that `clock` gave while it was in force.
    #[inline]
    pub fn read(&self, clock: impl Fn() -> u64) -> (Course, u64, Version) {
        loop {
            let version = A::load(&self.count, Ordering::Acquire);
            if version.is_multiple_of(2) {
                let course = self.load();
                let boot = clock();
                // Whoever read a word of a newer course also sees, after this fence, that course's count.
                A::fence(Ordering::Acquire);
                if A::load(&self.count, Ordering::Relaxed) == version {
                    return (course, boot, Version(version));
                }
            }
            A::pause();
        }
    }

    /// Replaces the course of `version` by what `change` makes of it from an instant of `clock`
    /// on. Does nothing if it is being or has been replaced: one estimate is as good as another.
    pub fn replace(
        &self,
        version: Version,
        clock: impl Fn() -> u64,
        change: impl FnOnce(Course, u64) -> Course,
    ) {
        let Version(count) = version;
        if !A::replace(&self.count, count, count + 1) {
            return;
        }
        // No word of the new course may be seen before the odd count.
        A::fence(Ordering::Release);
        let course = change(self.load(), clock());
        A::store(&self.boot, course.boot, Ordering::Relaxed);
        A::store(&self.reading, course.reading, Ordering::Relaxed);
        A::store(&self.ahead, course.ahead as u64, Ordering::Relaxed);
        A::store(&self.count, count + 2, Ordering::Release);
    }

    #[inline]
    fn load(&self) -> Course {
        Course {
            boot: A::load(&self.boot, Ordering::Relaxed),
            reading: A::load(&self.reading, Ordering::Relaxed),
            ahead: A::load(&self.ahead, Ordering::Relaxed) as i64,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use super::*;

    /// The atomics of the model checker, which tries every order of events that the memory model allows.
    struct Loom;

    impl Atomics for Loom {
        type Word = AtomicU64;

        fn new(value: u64) -> AtomicU64 {
            AtomicU64::new(value)
        }

        fn load(word: &AtomicU64, order: Ordering) -> u64 {
            word.load(order)
        }

        fn store(word: &AtomicU64, value: u64, order: Ordering) {
            word.store(value, order);
        }

        fn replace(word: &AtomicU64, current: u64, new: u64) -> bool {
            word.compare_exchange(current, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
        }

        fn fence(order: Ordering) {
            loom::sync::atomic::fence(order);
        }

        fn pause() {
            thread::yield_now();
        }
    }

    const OLD: Course = Course { boot: 0, reading: 1, ahead: 2 };

    /// A lock and the clock that everybody reads: each reading is later than all before it.
    struct Shared {
        lock: SeqLock<Loom>,
        time: AtomicU64,
    }

    impl Shared {
        fn read(&self) -> (Course, u64, Version) {
            self.lock.read(|| self.clock())
        }

        fn clock(&self) -> u64 {
            self.time.fetch_add(1, Ordering::AcqRel)
        }

        /// Replaces the course by one whose figures are all told by its beginning.
        fn replace(&self, version: Version) {
            self.lock.replace(version, || self.clock(), |_, boot| following(boot));
        }
    }

    fn following(boot: u64) -> Course {
        Course { boot, reading: boot + 1, ahead: boot as i64 + 2 }
    }

    fn model(scene: impl Fn(&Arc<Shared>) + Send + Sync + 'static) {
        loom::model(move || {
            let (lock, time) = (SeqLock::new(OLD), AtomicU64::new(10));
            scene(&Arc::new(Shared { lock, time }));
        });
    }

    /// What makes readings go up across threads: an instant read under the old course lies before the beginning
    /// of the new one, an instant read under the new one after it, and no course is a mix of two.
    #[test]
    fn every_instant_is_read_under_the_course_in_force() {
        model(|shared| {
            let (theirs, version) = (Arc::clone(shared), shared.read().2);
            let reader = thread::spawn(move || [theirs.read(), theirs.read()]);
            shared.replace(version);
            let (new, _, _) = shared.read();
            let reads = reader.join().unwrap();
            assert_eq!(new, following(new.boot));
            for (course, boot, _) in reads {
                assert!(if course == OLD { boot < new.boot } else { course == new && boot > new.boot });
            }
            assert!(reads[0].0 == OLD || reads[1].0 == new, "back to the old course");
        });
    }

    /// Also with a clock whose readings put no order on anything else, as the other test's do.
    #[test]
    fn no_course_is_a_mix_of_two() {
        model(|shared| {
            let (theirs, version) = (Arc::clone(shared), shared.read().2);
            let reader = thread::spawn(move || theirs.lock.read(|| 0).0);
            shared.lock.replace(version, || 20, |_, boot| following(boot));
            let course = reader.join().unwrap();
            assert!(course == OLD || course == following(20), "{course:?}");
        });
    }

    #[test]
    fn a_version_is_replaced_once_however_many_try() {
        model(|shared| {
            let (theirs, version) = (Arc::clone(shared), shared.read().2);
            let other = thread::spawn(move || theirs.replace(version));
            shared.replace(version);
            other.join().unwrap();
            let (course, _, _) = shared.read();
            assert_eq!(course, following(course.boot));
            // The first reading took 10; of the two writers only one read the clock.
            assert_eq!(course.boot, 11);
            shared.replace(version);
            assert_eq!(shared.read().0, course);
        });
    }
}
