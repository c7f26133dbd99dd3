//! The state behind the tag: `last`, then each limit's fields, as doubles that hold whole numbers.

use tidegate_core::{Cells, KeyState, Limit, Log, Plan, State, Timestamp};

use super::{Damaged, double, doubles};

/// A record read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) state: KeyState,
    /// The running total of each log, in the order of the limits that keep one.
    pub(crate) totals: Vec<u64>,
}

/// What was read of a log: entries as (stamp, running total up to and including it), oldest first, and the total
/// before the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptLog {
    pub(crate) base: u64,
    pub(crate) entries: Vec<(u64, u64)>,
}

impl KeptLog {
    fn into_log(self) -> Result<Log, Damaged> {
        let KeptLog { mut base, entries } = self;
        let mut log = Vec::with_capacity(entries.len());
        for (at, total) in entries {
            let cost = total.checked_sub(base).ok_or(Damaged("a log that shrinks"))?;
            let at = Timestamp::from_micros(at).map_err(|_| Damaged("a stamp out of range"))?;
            if log.last().is_some_and(|(before, _)| *before > at) {
                return Err(Damaged("a log out of order"));
            }
            log.push((at, cost));
            base = total;
        }
        Ok(Log::from_entries(log))
    }
}

/// Doubles that the state of `plan` takes.
pub(crate) fn width(plan: &Plan) -> usize {
    1 + plan.limits().iter().map(fields).sum::<usize>()
}

fn fields(limit: &Limit) -> usize {
    match (limit.rate(), limit.keeps_log()) {
        (Some(_), _) => 2,
        (None, true) => 1,
        (None, false) if is_counter(limit) => 2,
        _ => 1,
    }
}

fn is_counter(limit: &Limit) -> bool {
    limit.algorithm() == tidegate_core::Algorithm::SlidingWindowCounter
}

/// The state's bytes; `totals` are the logs' running totals.
pub(crate) fn encode(plan: &Plan, state: &KeyState, totals: &[u64], out: &mut Vec<u8>) {
    let mut totals = totals.iter();
    doubles(&[double(state.last().as_micros())], out);
    for (index, limit) in plan.limits().iter().enumerate() {
        match state.load(index, limit) {
            State::Bucket(level) => {
                let period = i128::from(period_of(limit));
                let (whole, rest) = (level.div_euclid(period), level.rem_euclid(period));
                // Both are below 2^53 in size: at most 10^12 units, and less than the period.
                doubles(&[whole as f64, rest as f64], out);
            }
            State::Count(count) => doubles(&[double(count)], out),
            State::Pair { previous, current } => doubles(&[double(previous), double(current)], out),
            State::Log(_) => doubles(&[double(totals.next().copied().unwrap_or(0))], out),
            _ => doubles(&[0.0], out),
        }
    }
}

/// Reads what [`encode`] wrote; `logs` are what was read of the logs.
pub(crate) fn decode(plan: &Plan, bytes: &[u8], logs: Vec<KeptLog>) -> Result<Kept, Damaged> {
    if bytes.len() != 8 * width(plan) {
        return Err(Damaged("a state of another length than its figures have"));
    }
    let mut numbers = bytes.chunks_exact(8).map(|chunk| {
        let mut double = [0; 8];
        double.copy_from_slice(chunk);
        f64::from_be_bytes(double)
    });
    let mut next = || whole(numbers.next().unwrap_or(f64::NAN));
    let mut kept = Kept { state: KeyState::new(plan), totals: Vec::new() };
    kept.state.set_last(stamp(next()?)?);
    let mut logs = logs.into_iter();
    for (index, limit) in plan.limits().iter().enumerate() {
        let first = next()?;
        if limit.rate().is_some() {
            let (period, rest) = (period_of(limit), next()?);
            if !(0..i64::try_from(period).unwrap_or(i64::MAX)).contains(&rest) {
                return Err(Damaged("a fraction of a token that is not one"));
            }
            let level = i128::from(first) * i128::from(period) + i128::from(rest);
            kept.state.save(index, limit, State::Bucket(level));
        } else if limit.keeps_log() {
            let log = logs.next().unwrap_or_default();
            kept.totals.push(count(first)?);
            *kept.state.log_mut(index) = log.into_log()?;
        } else if is_counter(limit) {
            let pair = State::Pair { previous: count(first)?, current: count(next()?)? };
            kept.state.save(index, limit, pair);
        } else {
            kept.state.save(index, limit, State::Count(count(first)?));
        }
    }
    Ok(kept)
}

/// P' of a bucket: its levels are in units of 1/P'.
pub(crate) fn period_of(limit: &Limit) -> u64 {
    limit.rate().map_or(1, |rate| rate.lowest_terms().1)
}

fn whole(number: f64) -> Result<i64, Damaged> {
    const EXACT: f64 = (1u64 << 53) as f64;
    // Written so that what is not a number is refused.
    if number.fract() == 0.0 && (-EXACT..=EXACT).contains(&number) {
        Ok(number as i64)
    } else {
        Err(Damaged("numbers that are not whole"))
    }
}

fn count(number: i64) -> Result<u64, Damaged> {
    u64::try_from(number).map_err(|_| Damaged("a count below zero"))
}

fn stamp(number: i64) -> Result<Timestamp, Damaged> {
    Timestamp::from_micros(count(number)?).map_err(|_| Damaged("a stamp out of range"))
}
