//! The state behind the tag: `last`, then each limit's fields, as doubles that hold whole numbers, then the logs' rings.

use tidegate_core::{Cells, KeyState, Limit, Plan, State, Timestamp};

use super::ring::encode_log;
use super::{Damaged, KeptLog, double, doubles};

/// Doubles that the state of `plan` takes without its rings.
pub(crate) fn width(plan: &Plan) -> usize {
    1 + plan.limits().iter().map(fields).sum::<usize>()
}

pub(super) fn fields(limit: &Limit) -> usize {
    match (limit.rate(), limit.keeps_log()) {
        (Some(_), _) => 2,
        (None, true) => 4,
        (None, false) if is_counter(limit) => 2,
        _ => 1,
    }
}

fn is_counter(limit: &Limit) -> bool {
    limit.algorithm() == tidegate_core::Algorithm::SlidingWindowCounter
}

/// The state's bytes.
pub(crate) fn encode(plan: &Plan, state: &KeyState, out: &mut Vec<u8>) {
    let mut rings = Vec::new();
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
            State::Log(log) => encode_log(log, out, &mut rings),
            _ => doubles(&[0.0], out),
        }
    }
    out.append(&mut rings);
}

/// Reads what [`encode`] wrote, but for the rings; `logs` are what was read of those.
pub(crate) fn decode(plan: &Plan, bytes: &[u8], logs: Vec<KeptLog>) -> Result<KeyState, Damaged> {
    if bytes.len() != 8 * width(plan) {
        return Err(Damaged("a state of another length than its figures have"));
    }
    let mut numbers = bytes.chunks_exact(8).map(|chunk| {
        let mut double = [0; 8];
        double.copy_from_slice(chunk);
        f64::from_be_bytes(double)
    });
    let mut next = || whole(numbers.next().unwrap_or(f64::NAN));
    let mut state = KeyState::new(plan);
    state.set_last(stamp(next()?)?);
    let mut logs = logs.into_iter();
    for (index, limit) in plan.limits().iter().enumerate() {
        let first = next()?;
        if limit.rate().is_some() {
            let (period, rest) = (period_of(limit), next()?);
            if !(0..i64::try_from(period).unwrap_or(i64::MAX)).contains(&rest) {
                return Err(Damaged("a fraction of a token that is not one"));
            }
            let level = i128::from(first) * i128::from(period) + i128::from(rest);
            state.save(index, limit, State::Bucket(level));
        } else if limit.keeps_log() {
            // The ring's figures follow the total: who reads the ring reads them.
            for _ in 0..3 {
                next()?;
            }
            *state.log_mut(index) = logs.next().unwrap_or_default().into_log()?;
        } else if is_counter(limit) {
            let pair = State::Pair { previous: count(first)?, current: count(next()?)? };
            state.save(index, limit, pair);
        } else {
            state.save(index, limit, State::Count(count(first)?));
        }
    }
    Ok(state)
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
