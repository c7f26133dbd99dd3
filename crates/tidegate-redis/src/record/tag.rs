//! The tag: the figures a record was written under, in as few bytes as they take.
//!
//! A version, then for each limit of the plan a hash of its name, its algorithm, and its figures as LEB128
//! integers. Every part says where it ends, so no tag is the beginning of another, and one comparison of bytes
//! tells whether a record stands under given figures.

use tidegate_core::{Algorithm, Limit, MAX_LIMITS, Period, Plan, Rate, Units};

use super::Damaged;

/// Of the format of the whole record. The first kept logs in lists beside it.
const VERSION: u8 = 2;
/// Set beside the algorithm when the debt is not the capacity, and then follows it.
const OWN_DEBT: u8 = 0x80;

/// The figures that a record stands under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) plan: Plan,
    /// Hashes of the limits' names, in order.
    pub(crate) names: Vec<u32>,
}

/// Tells the limits of one policy apart (FNV-1a, 32 bits).
pub(crate) fn name_hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Tag {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let limits = self.plan.limits();
        let mut out = vec![VERSION, limits.len() as u8];
        for (limit, name) in limits.iter().zip(&self.names) {
            let own_debt = limit.debt() != limit.capacity();
            out.extend_from_slice(&name.to_be_bytes());
            out.push(algorithm_number(limit.algorithm()) | if own_debt { OWN_DEBT } else { 0 });
            integer(limit.capacity().get(), &mut out);
            if let Some(rate) = limit.rate() {
                let (amount, period) = rate.lowest_terms();
                integer(amount, &mut out);
                integer(period, &mut out);
            }
            if let Some(window) = limit.window() {
                integer(window.as_micros(), &mut out);
            }
            if own_debt {
                integer(limit.debt().get(), &mut out);
            }
        }
        out
    }

    /// The tag at the beginning of a record, and how many bytes it takes.
    pub(crate) fn decode(record: &[u8]) -> Result<(Tag, usize), Damaged> {
        let mut rest = record;
        match take(&mut rest)? {
            VERSION => {}
            1 => return Err(Damaged("a record of tidegate's former format")),
            _ => return Err(Damaged("no record of this version of tidegate")),
        }
        let count = usize::from(take(&mut rest)?);
        if !(1..=MAX_LIMITS).contains(&count) {
            return Err(Damaged("a number of limits that no policy has"));
        }
        let (mut limits, mut names) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let hash: [u8; 4] = [take(&mut rest)?, take(&mut rest)?, take(&mut rest)?, take(&mut rest)?];
            names.push(u32::from_be_bytes(hash));
            limits.push(limit(&mut rest)?);
        }
        let plan = Plan::new(limits).map_err(|_| OUT_OF_RANGE)?;
        Ok((Tag { plan, names }, record.len() - rest.len()))
    }
}

const OUT_OF_RANGE: Damaged = Damaged("figures out of range");

fn limit(rest: &mut &[u8]) -> Result<Limit, Damaged> {
    let kind = take(rest)?;
    let algorithm = *Algorithm::ALL
        .get(usize::from(kind & !OWN_DEBT))
        .ok_or(Damaged("an algorithm that there is not"))?;
    let capacity = units(rest)?;
    let limit = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(capacity, rate(rest)?),
        Algorithm::Gcra => Limit::gcra(rate(rest)?, capacity),
        Algorithm::LeakyBucket => Limit::leaky_bucket(capacity, rate(rest)?).map_err(|_| OUT_OF_RANGE)?,
        Algorithm::FixedWindow => Limit::fixed_window(capacity, period(rest)?),
        Algorithm::SlidingWindowLog => {
            Limit::sliding_window_log(capacity, period(rest)?).map_err(|_| OUT_OF_RANGE)?
        }
        Algorithm::SlidingWindowCounter => Limit::sliding_window_counter(capacity, period(rest)?),
    };
    match kind & OWN_DEBT {
        0 => Ok(limit),
        _ => limit.with_debt(units(rest)?).map_err(|_| OUT_OF_RANGE),
    }
}

fn algorithm_number(algorithm: Algorithm) -> u8 {
    // Their order in the documentation, which does not change.
    Algorithm::ALL.iter().position(|other| *other == algorithm).map_or(0, |place| place as u8)
}

fn rate(rest: &mut &[u8]) -> Result<Rate, Damaged> {
    let amount = units(rest)?;
    Ok(Rate::new(amount, period(rest)?))
}

fn units(rest: &mut &[u8]) -> Result<Units, Damaged> {
    Units::new(read_integer(rest)?).map_err(|_| OUT_OF_RANGE)
}

fn period(rest: &mut &[u8]) -> Result<Period, Damaged> {
    Period::from_micros(read_integer(rest)?).map_err(|_| OUT_OF_RANGE)
}

fn take(rest: &mut &[u8]) -> Result<u8, Damaged> {
    let (first, others) = rest.split_first().ok_or(Damaged("less than a record"))?;
    *rest = others;
    Ok(*first)
}

fn integer(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_integer(rest: &mut &[u8]) -> Result<u64, Damaged> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = take(rest)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(OUT_OF_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(limits: Vec<Limit>) -> Tag {
        let names = (0..limits.len()).map(|index| name_hash(&format!("limit {index}"))).collect();
        Tag { plan: Plan::new(limits).unwrap(), names }
    }

    fn all() -> Vec<Limit> {
        vec![
            Limit::token_bucket(Units::MAX, Rate::new(1, Period::MAX)),
            Limit::token_bucket(3, Rate::ZERO),
            Limit::gcra(Rate::per_second(7), 0),
            Limit::leaky_bucket(5, Rate::per_minute(90)).unwrap().with_debt(0).unwrap(),
            Limit::fixed_window(10, Period::DAY).with_debt(Units::MAX).unwrap(),
            Limit::sliding_window_log(3, Period::SECOND).unwrap(),
            Limit::sliding_window_counter(4, Period::from_micros(1).unwrap()),
        ]
    }

    #[test]
    fn every_tag_comes_back_and_says_where_it_ends() {
        let one_by_one = all().into_iter().map(|limit| tag(vec![limit]));
        for tag in one_by_one.chain([tag(all())]) {
            let mut bytes = tag.encode();
            let length = bytes.len();
            bytes.extend_from_slice(b"the state");
            let (back, read) = Tag::decode(&bytes).unwrap();
            assert_eq!(read, length);
            assert_eq!(back.names, tag.names);
            assert_eq!(back.encode(), tag.encode());
            for cut in 0..length {
                assert!(Tag::decode(&bytes[..cut]).is_err(), "{cut} of {length}");
            }
        }
    }

    #[test]
    fn ordinary_figures_leave_room_for_a_small_string() {
        let tag = tag(vec![Limit::token_bucket(1_000, Rate::per_second(100))]);
        // With three doubles at most 44 bytes, up to which Redis keeps a string in one piece.
        assert!(tag.encode().len() <= 20, "{}", tag.encode().len());
    }

    #[test]
    fn what_is_not_ours_is_told_and_never_panics() {
        for foreign in [
            &b""[..],
            b"42",
            b"\x01\x01",
            b"\x02\x00",
            b"\x02\x09",
            b"\x02\x01aaaa\x06",
            b"\x02\x01aaaa\x00\xff",
            b"\x03\x01",
        ] {
            assert!(Tag::decode(foreign).is_err());
        }
        let former = Damaged("a record of tidegate's former format");
        assert_eq!(Tag::decode(b"\x01\x01aaaa\x00"), Err(former));
        let endless = [&b"\x02\x01aaaa\x00"[..], &[0xff; 20]].concat();
        assert_eq!(Tag::decode(&endless), Err(OUT_OF_RANGE));
    }
}
