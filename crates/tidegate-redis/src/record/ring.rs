//! The ring of a log, behind the state: a slot for each entry, the oldest at its head.

use tidegate_core::{Log, Plan, Timestamp};

use super::state::{fields, width};
use super::{Damaged, double, doubles};

/// Bytes of a slot: a stamp, and the running total before it.
const SLOT: usize = 16;
const NOT_WHOLE: Damaged = Damaged("numbers that are not whole");

/// What was read of a log: entries as (stamp, running total up to and including it), oldest first, and the total
/// before the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptLog {
    pub(crate) base: u64,
    pub(crate) entries: Vec<(u64, u64)>,
}

impl KeptLog {
    /// Of slots, one after the other from the oldest on, and the total after the newest.
    pub(crate) fn of_slots(slots: &[u8], total: u64) -> Result<KeptLog, Damaged> {
        let slots = numbers(slots).ok_or(NOT_WHOLE)?;
        let base = slots.get(1).copied().unwrap_or(total);
        let after = slots.chunks_exact(2).skip(1).map(|slot| slot[1]).chain([total]);
        let entries = slots.chunks_exact(2).zip(after).map(|(slot, after)| (slot[0], after)).collect();
        Ok(KeptLog { base, entries })
    }

    pub(super) fn into_log(self) -> Result<Log, Damaged> {
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

/// The logs in a state with its rings.
pub(crate) fn logs_in(plan: &Plan, state: &[u8]) -> Result<Vec<KeptLog>, Damaged> {
    const SHORT: Damaged = Damaged("less than its figures have");
    let (header, mut rings) = state.split_at_checked(8 * width(plan)).ok_or(SHORT)?;
    let mut logs = Vec::new();
    let mut at = 8;
    for limit in plan.limits() {
        let end = at + 8 * fields(limit);
        if limit.keeps_log() {
            let figures = numbers(&header[at..end]).ok_or(NOT_WHOLE)?;
            let [total, head, length, slots] = figures[..] else { return Err(SHORT) };
            let bytes = |slots: u64| usize::try_from(slots).ok()?.checked_mul(SLOT);
            let ring = bytes(slots).and_then(|bytes| rings.split_at_checked(bytes));
            let (ring, others) = ring.ok_or(Damaged("a log shorter than it says"))?;
            if length > slots || (head >= slots && head > 0) {
                return Err(Damaged("a log that is no ring"));
            }
            // Both are within the ring.
            let (wrapped, first) = ring.split_at(SLOT * head as usize);
            let from_the_oldest = [first, wrapped].concat();
            logs.push(KeptLog::of_slots(&from_the_oldest[..SLOT * length as usize], total)?);
            rings = others;
        }
        at = end;
    }
    match rings {
        [] => Ok(logs),
        _ => Err(Damaged("more than its figures have")),
    }
}

/// Writes a log's fields, and its ring, which has no slot to spare.
pub(super) fn encode_log(log: &Log, fields: &mut Vec<u8>, rings: &mut Vec<u8>) {
    let mut total = 0;
    for (at, cost) in log.entries() {
        doubles(&[double(at.as_micros()), double(total)], rings);
        total += cost;
    }
    let length = double(log.len() as u64);
    doubles(&[double(total), 0.0, length, length], fields);
}

/// Whole numbers not below zero, as the scripts write them.
pub(crate) fn numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    if !bytes.len().is_multiple_of(8) {
        return None;
    }
    let number = |chunk: &[u8]| {
        let number = f64::from_be_bytes(chunk.try_into().ok()?);
        let whole = number.fract() == 0.0 && (0.0..=(1u64 << 53) as f64).contains(&number);
        whole.then_some(number as u64)
    };
    bytes.chunks_exact(8).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{decode, encode};
    use tidegate_core::{Cells, KeyState, Limit, Period, Rate};

    fn plan() -> Plan {
        let log = |limit: u32| Limit::sliding_window_log(limit, Period::DAY).unwrap();
        Plan::new([log(9), Limit::token_bucket(5, Rate::per_second(1)), log(7)]).unwrap()
    }

    fn state() -> KeyState {
        let mut state = KeyState::new(&plan());
        let log = |entries: &[(u64, u64)]| {
            Log::from_entries(entries.iter().map(|(at, cost)| (Timestamp::from_micros(*at).unwrap(), *cost)))
        };
        *state.log_mut(0) = log(&[(5, 2), (7, 1), (9, 4)]);
        *state.log_mut(2) = log(&[(9, 7)]);
        state.set_last(Timestamp::from_micros(9).unwrap());
        state
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&plan(), &state(), &mut bytes);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<KeyState, Damaged> {
        let logs = logs_in(&plan(), bytes)?;
        decode(&plan(), &bytes[..8 * width(&plan())], logs)
    }

    #[test]
    fn a_state_with_logs_comes_back() {
        assert_eq!(read(&bytes()), Ok(state()));
    }

    /// As a script leaves it: with a head elsewhere, room to grow, and totals that do not begin at 0.
    #[test]
    fn a_ring_may_begin_anywhere() {
        let mut turned = Vec::new();
        doubles(&[9.0, 107.0, 3.0, 3.0, 5.0, 5.0, 0.0, 7.0, 0.0, 1.0, 1.0], &mut turned);
        doubles(&[9.0, 103.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, 5.0, 100.0, 7.0, 102.0], &mut turned);
        doubles(&[9.0, 0.0], &mut turned);
        assert_eq!(read(&turned), Ok(state()));
    }

    #[test]
    fn what_is_no_ring_is_told() {
        let bytes = bytes();
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut} bytes");
        }
        assert!(read(&[&bytes[..], &[0; 16]].concat()).is_err());
        for place in 0..bytes.len() / 8 {
            for number in [f64::NAN, f64::INFINITY, -1.0, 0.5, 1e300, 4.0e15] {
                let mut damaged = bytes.clone();
                damaged[8 * place..8 * place + 8].copy_from_slice(&number.to_be_bytes());
                // A bucket may be below zero; a total and the newest stamp are any that those before have not passed.
                let legal = match place {
                    0 | 1 | 7 | 15 | 17 => number == 4.0e15,
                    5 => number == -1.0 || number == 4.0e15,
                    _ => false,
                };
                assert_eq!(read(&damaged).is_ok(), legal, "{number} at {place}");
            }
        }
    }
}
