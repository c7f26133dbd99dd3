//! The units of time a duration may have.

use tidegate::Period;

use super::errors::{Fault, quoted};
use super::number::{Number, whole};

/// A unit, its length in microseconds and what people write for it.
struct Unit {
    name: &'static str,
    micros: u64,
    aliases: &'static [&'static str],
}

/// The longest first.
const UNITS: [Unit; 7] = [
    Unit { name: "w", micros: 7 * 86_400_000_000, aliases: &["wk", "week", "weeks"] },
    Unit { name: "d", micros: 86_400_000_000, aliases: &["day", "days"] },
    Unit { name: "h", micros: 3_600_000_000, aliases: &["hr", "hrs", "hour", "hours"] },
    Unit { name: "min", micros: 60_000_000, aliases: &["mins", "minute", "minutes"] },
    Unit { name: "s", micros: 1_000_000, aliases: &["sec", "secs", "second", "seconds"] },
    Unit { name: "ms", micros: 1_000, aliases: &["msec", "millis", "millisecond", "milliseconds"] },
    Unit {
        name: "us",
        micros: 1,
        // The micro sign and the Greek letter.
        aliases: &["\u{b5}s", "\u{3bc}s", "usec", "micros", "microsecond", "microseconds"],
    },
];

/// The length of `unit`; `number` is what stood before it, for the mend.
pub(super) fn unit_micros(number: &str, unit: &str) -> Result<u64, Fault> {
    match UNITS.iter().find(|known| known.name == unit) {
        Some(known) => Ok(known.micros),
        None => Err(unknown(number, unit)),
    }
}

fn unknown(number: &str, unit: &str) -> Fault {
    let number = if number.is_empty() || matches!(whole(number), Number::Whole(_)) { number } else { "10" };
    let lower = unit.to_lowercase();
    let meant = UNITS.iter().find(|known| known.name == lower || known.aliases.contains(&lower.as_str()));
    match (unit, meant) {
        ("", _) => {
            let mend = format!("write {number}s for seconds, or one of {}", all_units());
            Fault::new("a duration has a unit", mend)
        }
        ("m", _) => {
            let mend = format!("write {number}min for minutes");
            Fault::new("m could be minutes, months or a thousandth", mend)
        }
        ("ns", _) => Fault::new("the shortest unit is us", "write whole microseconds"),
        ("mo" | "month" | "months" | "y" | "yr" | "year" | "years", _) => {
            Fault::new(format!("{unit:?} is not always the same length"), "write days, e.g. 30d or 365d")
        }
        (_, Some(meant)) => {
            Fault::new(format!("unknown unit {}", quoted(unit)), format!("write {}", meant.name))
        }
        _ if unit.contains(|c: char| c.is_ascii_digit()) => {
            let mend = "write e.g. 90min for an hour and a half";
            Fault::new("a duration is one integer and one unit", mend)
        }
        _ => Fault::new(format!("unknown unit {}", quoted(unit)), format!("use {}", all_units())),
    }
}

/// The longest unit that makes `period` whole, and how many of it.
pub(super) fn in_units(period: Period) -> (u64, &'static str) {
    let micros = period.as_micros();
    let whole = UNITS.iter().find(|unit| micros.is_multiple_of(unit.micros));
    whole.map_or((micros, "us"), |unit| (micros / unit.micros, unit.name))
}

/// The units by name, the shortest first.
pub(super) fn all_units() -> String {
    let names: Vec<&str> = UNITS.iter().rev().map(|unit| unit.name).collect();
    names.join(", ")
}
