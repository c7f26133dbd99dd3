//! Turns the relative stamps and costs of a random trace into numbers, from the answers given so far.

use std::collections::BTreeMap;

use super::subject::SubjectAnswer;
use crate::cases::LimitSpec;
use crate::strategies::{Cost, Gap, LATEST_US, MOST_UNITS};

/// The keys of random traces.
pub(super) const KEYS: [&[u8]; 2] = [b"a", b"b"];

/// Where a trace stands: its clock, and what each key was told last.
pub(super) struct Standing {
    pub(super) now_us: u64,
    told: BTreeMap<u8, Told>,
}

struct Told {
    decided_at: u64,
    answer: SubjectAnswer,
}

impl Standing {
    pub(super) fn at(now_us: u64) -> Self {
        Standing { now_us, told: BTreeMap::new() }
    }

    /// Remembers what `key` was told of the instant `decided_at`.
    pub(super) fn tell(&mut self, key: u8, decided_at: u64, answer: SubjectAnswer) {
        self.told.insert(key, Told { decided_at, answer });
    }

    /// Moves the clock on by `gap`, and back no further than to `oldest_us`.
    pub(super) fn advance(&mut self, gap: Gap, key: u8, limits: &[LimitSpec], oldest_us: u64) -> u64 {
        let period = |position: u8| limits[usize::from(position) % limits.len()].period_us;
        let now = self.now_us;
        let at = match gap {
            Gap::None => now,
            Gap::Micros(us) => now.saturating_add(us),
            Gap::OfPeriod(limit, share) => now.saturating_add(share_of(period(limit), share.into(), 64)),
            Gap::ToEdge(limit, less) => now + period(limit) - now % period(limit) - less,
            Gap::ToRetry(less) => self.promised(key, less, |answer| answer.headline.retry_after_us),
            Gap::ToReset(less) => self.promised(key, less, |answer| answer.headline.reset_after_us),
            Gap::ToGrowth(less) => self.promised(key, less, |answer| answer.headline.grows_after_us),
            Gap::Back(us) => now.saturating_sub(us),
            Gap::BackOfPeriod(limit, share) => now.saturating_sub(share_of(period(limit), share.into(), 64)),
        };
        self.now_us = at.clamp(oldest_us.min(LATEST_US), LATEST_US);
        self.now_us
    }

    /// The instant `less` microseconds before the end of a wait the key was told; now, if it was told none.
    fn promised(&self, key: u8, less: u64, wait: impl Fn(&SubjectAnswer) -> Option<u128>) -> u64 {
        let Some(told) = self.told.get(&key) else { return self.now_us };
        let Some(wait) = wait(&told.answer) else { return self.now_us };
        let at = (u128::from(told.decided_at) + wait).saturating_sub(less.into());
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    pub(super) fn units(&self, cost: Cost, key: u8, limits: &[LimitSpec]) -> u64 {
        let position = |position: u8| usize::from(position) % limits.len();
        let units = match cost {
            Cost::Units(units) => units,
            Cost::OfCapacity(limit, share) => share_of(limits[position(limit)].capacity, share.into(), 16),
            Cost::Above(limit, more) => limits[position(limit)].capacity + more,
            Cost::Left(limit, more) => {
                let told = self.told.get(&key).and_then(|told| told.answer.limits.get(position(limit)));
                told.map_or(1, |figures| figures.remaining) + more
            }
        };
        units.min(MOST_UNITS)
    }
}

fn share_of(whole: u64, share: u64, parts: u64) -> u64 {
    whole / parts * share + whole % parts * share / parts
}
