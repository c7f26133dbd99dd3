//! Whole numbers, and what was meant by those that are not.

/// What a text is that should be a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// Digits and nothing else.
    Whole(u64),
    /// Digits, more than 64 bits hold.
    TooLarge,
    /// Less than nothing, whole or not.
    Negative,
    /// A whole number written another way, `1e3` or `010`: the rule it breaks and the number in plain digits.
    Dressed(&'static str, u64),
    /// A number with a fraction.
    Decimal(Decimal),
    /// No number.
    Other,
}

const DIGITS_ONLY: &str = "a whole number is written in digits only";
// Some readers of YAML take 010 for 8.
const NO_LEADING_ZEROS: &str = "a whole number has no leading zeros";

/// A number with a fraction, exactly: `digits / scale`, the scale a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u64,
    scale: u64,
}

impl Decimal {
    /// The whole numbers below and above it.
    pub fn neighbours(self) -> (u64, u64) {
        (self.digits / self.scale, self.digits.div_ceil(self.scale))
    }

    /// This times `factor`, if that is whole and fits.
    pub fn times(self, factor: u64) -> Option<u64> {
        let product = u128::from(self.digits) * u128::from(factor);
        let scale = u128::from(self.scale);
        if product.is_multiple_of(scale) { u64::try_from(product / scale).ok() } else { None }
    }

    /// Numerator and denominator in lowest terms.
    pub fn lowest_terms(self) -> (u64, u64) {
        let (mut divisor, mut rest) = (self.scale, self.digits);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        // The scale is at least 1, so the divisor is too.
        (self.digits / divisor, self.scale / divisor)
    }
}

/// Reads `text` as a whole number in the one way it may be written.
pub(super) fn whole(text: &str) -> Number {
    if is_digits(text) {
        return digits(text);
    }
    if let Some(rest) = text.strip_prefix('-') {
        return match whole(rest) {
            _ if rest.starts_with('-') => Number::Other,
            Number::Other => Number::Other,
            // Nothing is not less than nothing.
            Number::Whole(0) | Number::Dressed(_, 0) => Number::Dressed(DIGITS_ONLY, 0),
            _ => Number::Negative,
        };
    }
    if let Some(plain) = otherwise_spelled(text) {
        return Number::Dressed(DIGITS_ONLY, plain);
    }
    match decimal(text) {
        Some(Decimal { digits, scale: 1 }) => Number::Dressed(DIGITS_ONLY, digits),
        Some(decimal) => Number::Decimal(decimal),
        None => Number::Other,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn digits(text: &str) -> Number {
    match text.parse() {
        Ok(number) if text.len() > 1 && text.starts_with('0') => Number::Dressed(NO_LEADING_ZEROS, number),
        Ok(number) => Number::Whole(number),
        Err(_) => Number::TooLarge,
    }
}

/// `+5`, `10_000`, `10,000`, `0x10`, `0o17`, `0b11`.
fn otherwise_spelled(text: &str) -> Option<u64> {
    let radix = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix).filter(|digits| !digits.starts_with('+'))?;
        u64::from_str_radix(digits, radix).ok()
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)).or_else(|| radix("0b", 2)) {
        return Some(number);
    }
    let bare = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    // `1,5` is no grouping but a fraction in some countries: not guessed at.
    let mut groups = bare.split(',').skip(1);
    let grouped = groups.all(|group| group.len() == 3);
    let bare = bare.replace(',', "");
    if grouped && is_digits(&bare) { bare.parse().ok() } else { None }
}

/// Reads `1.5`, `.5`, `2.` and `1e3`, exactly; `None` if it is none of these or longer than 64 bits hold.
fn decimal(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    if !is_digits(&all) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let digits: u64 = ["0", whole, fraction].concat().parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let power = 10_u64.checked_pow(places.unsigned_abs())?;
    if places <= 0 {
        return Some(Decimal { digits: digits.checked_mul(power)?, scale: 1 });
    }
    let decimal = Decimal { digits, scale: power };
    let (digits, scale) = decimal.lowest_terms();
    Some(if scale == 1 { Decimal { digits, scale } } else { decimal })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(digits: u64) -> Number {
        Number::Decimal(Decimal { digits, scale: 10 })
    }

    #[test]
    fn only_plain_digits_are_a_whole_number() {
        let table = [
            ("0", Number::Whole(0)),
            ("18446744073709551615", Number::Whole(u64::MAX)),
            ("18446744073709551616", Number::TooLarge),
            ("-1", Number::Negative),
            ("-0", Number::Dressed(DIGITS_ONLY, 0)),
            ("-0.0", Number::Dressed(DIGITS_ONLY, 0)),
            ("-00", Number::Dressed(DIGITS_ONLY, 0)),
            ("--0", Number::Other),
            ("-1.5", Number::Negative),
            ("-", Number::Other),
            ("--1", Number::Other),
            ("", Number::Other),
            ("ten", Number::Other),
            ("010", Number::Dressed(NO_LEADING_ZEROS, 10)),
            ("+5", Number::Dressed(DIGITS_ONLY, 5)),
            ("10_000", Number::Dressed(DIGITS_ONLY, 10_000)),
            ("10,000", Number::Dressed(DIGITS_ONLY, 10_000)),
            ("1,5", Number::Other),
            ("0x10", Number::Dressed(DIGITS_ONLY, 16)),
            ("0o17", Number::Dressed(DIGITS_ONLY, 15)),
            ("0x+1", Number::Other),
            ("1e3", Number::Dressed(DIGITS_ONLY, 1_000)),
            ("2.50e2", Number::Dressed(DIGITS_ONLY, 250)),
            ("5.0", Number::Dressed(DIGITS_ONLY, 5)),
            ("1.5", half(15)),
            (".5", half(5)),
            ("5e-1", half(5)),
            (".", Number::Other),
            ("e3", Number::Other),
            ("1e99", Number::Other),
            ("1e-2147483648", Number::Other),
            (".inf", Number::Other),
            ("\u{661}", Number::Other),
        ];
        for (text, expected) in table {
            assert_eq!(whole(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_fraction_keeps_its_exact_value() {
        let Number::Decimal(decimal) = whole("1.75") else { panic!("not read as a fraction") };
        assert_eq!(decimal.neighbours(), (1, 2));
        assert_eq!(decimal.lowest_terms(), (7, 4));
        assert_eq!(decimal.times(1_000), Some(1_750));
        assert_eq!(decimal.times(10), None);
        assert_eq!(Decimal { digits: u64::MAX, scale: 10 }.times(100), None);
    }
}
