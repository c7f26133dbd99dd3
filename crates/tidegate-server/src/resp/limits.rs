//! The figures a client brings along, ready for use.

use tidegate::AdHocLimit;

/// Different figures kept ready; a client seldom uses more.
const KEPT: usize = 8;

/// `max_burst`, `count` and `period` of `CL.THROTTLE`.
pub(super) type Asked = [i64; 3];

/// The last figures a client used and their limits, so that a limit is worked out once and not for each command.
#[derive(Debug, Default)]
pub(super) struct Limits {
    kept: Vec<(Asked, AdHocLimit)>,
    /// Which is replaced next.
    oldest: usize,
}

impl Limits {
    /// The limit of these figures, by `make` if it is not at hand.
    #[inline]
    pub(super) fn get<E>(
        &mut self,
        asked: Asked,
        make: impl FnOnce(Asked) -> Result<AdHocLimit, E>,
    ) -> Result<&AdHocLimit, E> {
        let at = match self.kept.iter().position(|(known, _)| *known == asked) {
            Some(at) => at,
            None => self.keep(asked, make(asked)?),
        };
        Ok(&self.kept[at].1)
    }

    fn keep(&mut self, asked: Asked, limit: AdHocLimit) -> usize {
        if self.kept.len() < KEPT {
            self.kept.push((asked, limit));
            return self.kept.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % KEPT;
        self.kept[at] = (asked, limit);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::Rate;

    #[test]
    fn a_few_are_kept_and_the_oldest_goes() {
        let mut limits = Limits::default();
        let mut made = 0;
        let mut get = |count: i64| {
            let limit = limits.get([0, count, 60], |_| {
                made += 1;
                Ok::<_, ()>(AdHocLimit::gcra(Rate::per_minute(count as u32), 1))
            });
            assert_eq!(limit.unwrap().limit().rate(), Some(Rate::per_minute(count as u32)));
            made
        };
        assert_eq!((1..=8).map(&mut get).max(), Some(8));
        assert_eq!((1..=8).map(&mut get).max(), Some(8));
        assert_eq!(get(9), 9);
        assert_eq!((2..=9).map(&mut get).max(), Some(9));
        assert_eq!(get(1), 10);
    }

    #[test]
    fn figures_that_are_refused_are_not_kept() {
        let mut limits = Limits::default();
        assert!(limits.get([0, 0, 0], |_| Err("zero")).is_err());
        assert!(limits.kept.is_empty());
    }
}
