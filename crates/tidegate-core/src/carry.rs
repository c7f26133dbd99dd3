//! Changing a limit's figures under live state: what has been used stays used.

use crate::bucket::Bucket;
use crate::hold::Held;
use crate::limit::{Limit, Shape};
use crate::plan::Plan;
use crate::quantity::Timestamp;
use crate::state::{Cells, KeyState};
use crate::window::{Pair, Window};

/// When the new figures came into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// At this instant, by the store's own clock.
    Known(Timestamp),
    /// Nobody knows; the state is first seen under the new figures at this instant. The whole time since the
    /// last charge is credited at the slower of the two rates.
    Unknown(Timestamp),
}

impl Plan {
    /// Carries a key's state over from `old` to this plan.
    ///
    /// `origin[i]` is the place in `old` of the limit that is now at `i`, or `None` if it is new. A limit whose
    /// algorithm changed starts anew, as a new one does. Nothing at all changes if the figures are the same.
    pub fn carry_over(
        &self,
        old: &Plan,
        kept: &impl Cells,
        origin: &[Option<usize>],
        since: Since,
    ) -> KeyState {
        let last = kept.last();
        let (Since::Known(instant) | Since::Unknown(instant)) = since;
        let at = instant.max(last);
        let mut carried = KeyState::new(self);
        carried.set_last(at);
        for (index, limit) in self.limits().iter().enumerate() {
            let from =
                origin.get(index).copied().flatten().and_then(|from| Some((from, old.limits().get(from)?)));
            let Some((from, before)) = from else { continue };
            if limit.algorithm() != before.algorithm() {
                continue;
            }
            if let Shape::Log(window) = &before.shape {
                if let crate::state::State::Log(log) = kept.load(from, before) {
                    let live = carried.log_mut(index);
                    *live = log.clone();
                    live.evict(window.length(), at);
                }
                continue;
            }
            let held = match since {
                Since::Known(_) => before.hold(kept.load(from, before), last, at),
                Since::Unknown(_) => limit.hold_slower(before, kept.load(from, before), last, at),
            };
            let adopted = limit.adopt(before, held, at);
            limit.keep(index, adopted, adopted, at, &mut carried);
        }
        carried
    }
}

impl Limit {
    /// What is held at `at` when the time since `last` earns at the slower of two rates.
    fn hold_slower(
        &self,
        before: &Limit,
        kept: crate::state::State<'_>,
        last: Timestamp,
        at: Timestamp,
    ) -> Held {
        match (&before.shape, &self.shape) {
            (Shape::Bucket(old), Shape::Bucket(new)) if new.is_slower_than(old) => {
                // A bucket that is full under the figures it was kept under counts as absent: full.
                let by_old = before.hold(kept, last, at);
                let Held::Bucket(by_old_level) = by_old else { return by_old };
                if by_old_level >= old.full() {
                    return by_old;
                }
                let unearned = before.hold(kept, last, last);
                let Held::Bucket(level) = unearned else { return unearned };
                Held::Bucket(old.advance_at(new, level, at.micros_since(last)))
            }
            _ => before.hold(kept, last, at),
        }
    }

    /// What was held under `before` at `at`, under this limit's figures.
    fn adopt(&self, before: &Limit, held: Held, at: Timestamp) -> Held {
        match (&self.shape, &before.shape, held) {
            (Shape::Bucket(new), Shape::Bucket(old), Held::Bucket(level)) => {
                Held::Bucket(new.adopt(old, level, self.debt().get()))
            }
            (Shape::Counter(new), Shape::Counter(old), Held::Counter(pair))
                if new.length() != old.length() =>
            {
                let counted = Pair {
                    previous: pair.previous.min(before.most_counted(old)),
                    current: pair.current.min(before.most_counted(old)),
                };
                Held::Counter(Pair { previous: 0, current: estimate_at(old, counted, at) })
            }
            _ => held,
        }
    }
}

fn estimate_at(window: &Window, pair: Pair, at: Timestamp) -> u64 {
    window.estimate(pair, window.elapsed(at))
}

impl Bucket {
    /// This bucket's level after `elapsed` microseconds of `slower`'s rate, fractions rounded down.
    fn advance_at(&self, slower: &Bucket, level: i128, elapsed: u64) -> i128 {
        // earned units = elapsed * R'/P' of the slower; in this bucket's units that times this P'.
        let whole_and_rest = u128::from(elapsed) * u128::from(slower.amount());
        let (whole, rest) =
            (whole_and_rest / u128::from(slower.period()), whole_and_rest % u128::from(slower.period()));
        let period = u128::from(self.period());
        let earned = whole * period + rest * period / u128::from(slower.period());
        (level + earned as i128).min(self.full())
    }
}
