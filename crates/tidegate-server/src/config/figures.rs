//! Amounts, durations and rates as text: `100`, `30d`, `10/s`, `3/7s`.

use tidegate::{Period, Rate, Units};

use super::errors::{Fault, quoted, shortened};
use super::number::{Decimal, Number, whole};
use super::time_units::{in_units, unit_micros};

/// Reads an amount: digits and nothing else, up to 10^12.
///
/// ```
/// use tidegate_server::config::parse_units;
/// assert_eq!(parse_units("100").unwrap().get(), 100);
/// let fault = parse_units("1.7").unwrap_err();
/// assert_eq!(fault.to_string(), "not a whole number (write 1 or 2)");
/// ```
///
/// # Errors
/// Anything that is not digits, or is out of range.
pub fn parse_units(text: &str) -> Result<Units, Fault> {
    let amount = match whole(text) {
        Number::Whole(amount) => Units::new(amount).ok(),
        Number::TooLarge => None,
        Number::Negative => return Err(Fault::new("cannot be negative", "write 0 or more")),
        Number::Dressed(rule, plain) => return Err(Fault::new(rule, format!("write {plain}"))),
        Number::Decimal(decimal) => {
            let (below, above) = decimal.neighbours();
            return Err(Fault::new("not a whole number", format!("write {below} or {above}")));
        }
        Number::Other => return Err(Fault::new("not a whole number", "write digits only, e.g. 100")),
    };
    let range = || format!("out of range: an amount goes from 0 to {}", Units::MAX);
    amount.ok_or_else(|| Fault::new(range(), "write a smaller one"))
}

/// Reads a duration: an integer and one of us, ms, s, min, h, d, w; the unit alone is one of it.
///
/// ```
/// use tidegate_server::config::parse_period;
/// assert_eq!(parse_period("90min").unwrap().as_micros(), 5_400_000_000);
/// assert_eq!(parse_period("d").unwrap(), parse_period("24h").unwrap());
/// let fault = parse_period("1.5s").unwrap_err();
/// assert_eq!(fault.to_string(), "1.5 is not a whole number (write 1500ms)");
/// ```
///
/// # Errors
/// Another form, an unknown unit, or what is not between a microsecond and 366 days.
pub fn parse_period(text: &str) -> Result<Period, Fault> {
    if text.contains(char::is_whitespace) {
        return Err(without_spaces(text, "a duration is an integer and a unit", "1d"));
    }
    let (number, unit) = split(text);
    let micros = unit_micros(number, unit)?;
    match whole(number) {
        Number::Whole(count) => period(count.checked_mul(micros)),
        Number::TooLarge => period(None),
        Number::Negative => Err(Fault::new("a duration cannot be negative", format!("write e.g. 10{unit}"))),
        Number::Dressed(rule, plain) => Err(Fault::new(rule, format!("write {plain}{unit}"))),
        Number::Decimal(decimal) => Err(broken_duration(number, decimal, micros)),
        Number::Other if number.is_empty() => period(Some(micros)),
        Number::Other => Err(Fault::new(
            format!("{} is not a whole number", quoted(number)),
            format!("write e.g. 10{unit}"),
        )),
    }
}

/// Reads a rate: `N/DURATION`, so many units every so long.
///
/// ```
/// use tidegate_server::config::{parse_rate, show_rate};
/// assert_eq!(parse_rate("7/s").unwrap().amount().get(), 7);
/// assert_eq!(show_rate(parse_rate("100/60s").unwrap()), "100/min");
/// let fault = parse_rate("1.5/s").unwrap_err();
/// assert_eq!(fault.to_string(), "1.5 is not a whole number (write 3/2s)");
/// ```
///
/// # Errors
/// Another form, an amount that is no integer, or figures out of range.
pub fn parse_rate(text: &str) -> Result<Rate, Fault> {
    if text.contains(char::is_whitespace) {
        return Err(without_spaces(text, "a rate is N/DURATION", "10/s"));
    }
    let Some((number, per)) = text.split_once('/') else {
        return Err(match whole(text) {
            Number::Whole(n) => {
                Fault::new("a rate has a period", format!("write {n}/s for {n} every second"))
            }
            _ => Fault::new("a rate is N/DURATION", "write e.g. 10/s"),
        });
    };
    let period = parse_period(per)?;
    let faulty = |rule: &str, mend: String| Err(Fault::new(rule, mend));
    match whole(number) {
        Number::Whole(_) | Number::TooLarge => parse_units(number).map(|amount| Rate::new(amount, period)),
        Number::Negative => faulty("a rate cannot be negative", format!("write 0/{per} for none")),
        Number::Dressed(rule, plain) => faulty(rule, format!("write {plain}/{per}")),
        Number::Decimal(decimal) => Err(broken_rate(number, decimal, period)),
        Number::Other if number.is_empty() => {
            faulty("no amount before the /", format!("write e.g. 10/{per}"))
        }
        Number::Other => {
            faulty(&format!("{} is not a whole number", quoted(number)), format!("write e.g. 10/{per}"))
        }
    }
}

/// A duration as the file writes it, in the longest unit that makes it whole.
///
/// ```
/// use tidegate_server::config::{parse_period, show_period};
/// assert_eq!(show_period(parse_period("1440min").unwrap()), "1d");
/// ```
pub fn show_period(period: Period) -> String {
    let (count, unit) = in_units(period);
    format!("{count}{unit}")
}

/// A rate as the file writes it.
///
/// ```
/// use tidegate_server::config::{parse_rate, show_rate};
/// assert_eq!(show_rate(parse_rate("5/7000ms").unwrap()), "5/7s");
/// ```
pub fn show_rate(rate: Rate) -> String {
    match in_units(rate.per()) {
        (1, unit) => format!("{}/{unit}", rate.amount()),
        (count, unit) => format!("{}/{count}{unit}", rate.amount()),
    }
}

fn period(micros: Option<u64>) -> Result<Period, Fault> {
    let fits = micros.and_then(|micros| Period::from_micros(micros).ok());
    fits.ok_or_else(|| {
        let mend = if micros == Some(0) { "write at least 1us" } else { "write at most 366d" };
        Fault::new("out of range: a duration goes from 1us to 366d", mend)
    })
}

/// `1.5s`, with what it would be in whole units.
fn broken_duration(number: &str, decimal: Decimal, unit: u64) -> Fault {
    let exact = decimal.times(unit).and_then(|micros| Period::from_micros(micros).ok());
    let mend = match exact {
        Some(period) => format!("write {}", show_period(period)),
        None => "write whole microseconds".to_owned(),
    };
    Fault::new(format!("{} is not a whole number", shortened(number)), mend)
}

/// `1.5/s`, with what it would be in whole units.
fn broken_rate(number: &str, decimal: Decimal, period: Period) -> Fault {
    let (amount, periods) = decimal.lowest_terms();
    let per = period.as_micros().checked_mul(periods).and_then(|micros| Period::from_micros(micros).ok());
    let mend = match (Units::new(amount), per) {
        (Ok(amount), Some(per)) => format!("write {}", show_rate(Rate::new(amount, per))),
        _ => "write whole numbers, e.g. 3/2s".to_owned(),
    };
    Fault::new(format!("{} is not a whole number", shortened(number)), mend)
}

/// The number in front and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let not_of_number = |c: char| !(c.is_ascii_digit() || "+-_.,".contains(c));
    let end = text.find(not_of_number).unwrap_or(text.len());
    let Some(exponent) = text[end..].strip_prefix(['e', 'E']) else {
        return text.split_at(end);
    };
    // `1e3s` has an exponent, not a unit of the name "e3s".
    match exponent.find(not_of_number).unwrap_or(exponent.len()) {
        0 => text.split_at(end),
        digits => text.split_at(end + 1 + digits),
    }
}

fn without_spaces(text: &str, rule: &str, example: &str) -> Fault {
    let compact: String = text.split_whitespace().collect();
    let mend = if parse_rate(&compact).is_ok() || parse_period(&compact).is_ok() {
        format!("write {compact}")
    } else {
        format!("write e.g. {example}")
    };
    Fault::new(format!("{rule}, without spaces"), mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_reference_promises() {
        let rates = [
            ("7/s", 7, 1_000_000),
            ("3/7s", 3, 7_000_000),
            ("1/30d", 1, 30 * 86_400_000_000),
            ("0/s", 0, 1_000_000),
            ("5/us", 5, 1),
            ("5/250ms", 5, 250_000),
            ("1000000000000/366d", 1_000_000_000_000, 366 * 86_400_000_000),
        ];
        for (text, amount, micros) in rates {
            let rate = parse_rate(text).unwrap();
            assert_eq!((rate.amount().get(), rate.per().as_micros()), (amount, micros), "{text}");
            assert_eq!(show_rate(rate), text);
        }
        for text in ["us", "ms", "s", "min", "h", "d", "w"] {
            assert_eq!(parse_period(text), parse_period(&format!("1{text}")));
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_rate() {
        let table = [
            ("10/sek", r#"unknown unit "sek" (use us, ms, s, min, h, d, w)"#),
            ("10/sec", r#"unknown unit "sec" (write s)"#),
            ("10/S", r#"unknown unit "S" (write s)"#),
            ("10/m", "m could be minutes, months or a thousandth (write min for minutes)"),
            ("10/5m", "m could be minutes, months or a thousandth (write 5min for minutes)"),
            ("10/month", r#""month" is not always the same length (write days, e.g. 30d or 365d)"#),
            ("10", "a rate has a period (write 10/s for 10 every second)"),
            ("0", "a rate has a period (write 0/s for 0 every second)"),
            ("1.5", "a rate is N/DURATION (write e.g. 10/s)"),
            ("1.5/s", "1.5 is not a whole number (write 3/2s)"),
            ("0.1/min", "0.1 is not a whole number (write 1/10min)"),
            ("0.25/3s", "0.25 is not a whole number (write 1/12s)"),
            ("0.001/366d", "0.001 is not a whole number (write whole numbers, e.g. 3/2s)"),
            ("1e3/s", "a whole number is written in digits only (write 1000/s)"),
            ("10_000/h", "a whole number is written in digits only (write 10000/h)"),
            ("010/s", "a whole number has no leading zeros (write 10/s)"),
            ("-1/s", "a rate cannot be negative (write 0/s for none)"),
            ("ten/s", r#""ten" is not a whole number (write e.g. 10/s)"#),
            ("10r/s", r#""10r" is not a whole number (write e.g. 10/s)"#),
            ("/s", "no amount before the / (write e.g. 10/s)"),
            ("10/", "a duration has a unit (write s for seconds, or one of us, ms, s, min, h, d, w)"),
            ("100/60", "a duration has a unit (write 60s for seconds, or one of us, ms, s, min, h, d, w)"),
            ("10/0s", "out of range: a duration goes from 1us to 366d (write at least 1us)"),
            ("10/367d", "out of range: a duration goes from 1us to 366d (write at most 366d)"),
            ("10/1.5s", "1.5 is not a whole number (write 1500ms)"),
            ("10/s/s", r#"unknown unit "s/s" (use us, ms, s, min, h, d, w)"#),
            ("10 / s", "a rate is N/DURATION, without spaces (write 10/s)"),
            ("10 per second", "a rate is N/DURATION, without spaces (write e.g. 10/s)"),
            ("10rps", "a rate is N/DURATION (write e.g. 10/s)"),
            ("1000000000001/s", "out of range: an amount goes from 0 to 1000000000000 (write a smaller one)"),
            (
                "99999999999999999999/s",
                "out of range: an amount goes from 0 to 1000000000000 (write a smaller one)",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse_rate(text).unwrap_err().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_duration() {
        let table = [
            ("", "a duration has a unit (write s for seconds, or one of us, ms, s, min, h, d, w)"),
            ("60", "a duration has a unit (write 60s for seconds, or one of us, ms, s, min, h, d, w)"),
            ("1.5", "a duration has a unit (write 10s for seconds, or one of us, ms, s, min, h, d, w)"),
            ("0s", "out of range: a duration goes from 1us to 366d (write at least 1us)"),
            ("-1s", "a duration cannot be negative (write e.g. 10s)"),
            ("0.5us", "0.5 is not a whole number (write whole microseconds)"),
            ("0.5d", "0.5 is not a whole number (write 12h)"),
            ("1e3s", "a whole number is written in digits only (write 1000s)"),
            ("05s", "a whole number has no leading zeros (write 5s)"),
            ("1h30min", "a duration is one integer and one unit (write e.g. 90min for an hour and a half)"),
            ("5 min", "a duration is an integer and a unit, without spaces (write 5min)"),
            ("3\u{b5}s", "unknown unit \"\u{b5}s\" (write us)"),
            ("5ns", "the shortest unit is us (write whole microseconds)"),
            ("1,5s", r#""1,5" is not a whole number (write e.g. 10s)"#),
            ("18446744073709551616us", "out of range: a duration goes from 1us to 366d (write at most 366d)"),
            ("18446744073709551615w", "out of range: a duration goes from 1us to 366d (write at most 366d)"),
        ];
        for (text, expected) in table {
            assert_eq!(parse_period(text).unwrap_err().to_string(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn durations_come_back_as_they_were(micros in 1..=Period::MAX.as_micros()) {
            let period = Period::from_micros(micros).unwrap();
            prop_assert_eq!(parse_period(&show_period(period)), Ok(period));
        }

        #[test]
        fn rates_come_back_as_they_were(
            amount in 0..=Units::MAX.get(),
            count in 1_u64..400,
            unit in prop::sample::select(vec![1, 1_000, 1_000_000, 60_000_000, 3_600_000_000]),
        ) {
            let rate = Rate::new(Units::new(amount).unwrap(), Period::from_micros(count * unit).unwrap());
            prop_assert_eq!(parse_rate(&show_rate(rate)), Ok(rate));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-z/.,_+µ -]{0,12}|\\PC{0,12}") {
            // What matters is that none of these panics; what is read has to come back the same.
            let _ = parse_units(&text);
            if let Ok(period) = parse_period(&text) {
                prop_assert_eq!(parse_period(&show_period(period)), Ok(period));
            }
            if let Ok(rate) = parse_rate(&text) {
                prop_assert_eq!(parse_rate(&show_rate(rate)), Ok(rate));
            }
        }
    }
}
