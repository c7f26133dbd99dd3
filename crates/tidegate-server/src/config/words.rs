//! What a configuration does, in words.

use tidegate::{Algorithm, Limit, OnFull, Period, Rate, Units};

use super::checked::{HeaderFamily, HeaderSettings, ResetStyle};
use super::remote::{OnOutage, SharedStore};
use super::store::{StoreKind, StoreSettings};
use super::time_units::in_units;

/// What a limit lets pass.
///
/// ```
/// use tidegate::{Limit, Rate};
/// use tidegate_server::config::limit_in_words;
/// let limit = Limit::token_bucket(100, Rate::per_second(10));
/// assert_eq!(limit_in_words(&limit), "at most 100 at once, then 10 every second (one per 100 ms)");
/// ```
pub fn limit_in_words(limit: &Limit) -> String {
    let size = limit.capacity();
    let mut words = match (limit.rate(), limit.window()) {
        _ if size == Units::ZERO => "nothing passes: every cost above 0 is denied".to_owned(),
        (Some(rate), _) if rate.is_zero() => format!("at most {size} in all: nothing ever comes back"),
        (Some(rate), _) if limit.algorithm() == Algorithm::LeakyBucket => {
            format!("at most {size} held at once, leaving evenly, {}", rate_in_words(rate))
        }
        (Some(rate), _) => format!("at most {size} at once, then {}", rate_in_words(rate)),
        (None, window) => {
            let window = window.map(span).unwrap_or_default();
            match limit.algorithm() {
                Algorithm::SlidingWindowLog => format!("at most {size} in any {window}"),
                Algorithm::SlidingWindowCounter => format!("about {size} in any {window}, from two counts"),
                _ => format!("at most {size} in each {window}"),
            }
        }
    };
    if limit.debt() != size {
        words += &format!("; forced charges sink to {} below zero", limit.debt());
    }
    words
}

/// A rate, and how often one comes back: `10 every second (one per 100 ms)`.
pub fn rate_in_words(rate: Rate) -> String {
    let every = format!("{} every {}", rate.amount(), span(rate.per()));
    let (amount, micros) = (rate.amount().get(), rate.per().as_micros());
    if amount <= 1 {
        return every;
    }
    let about = if micros.is_multiple_of(amount) { "" } else { "about " };
    // Rounded to the nearest microsecond; below that there is no word for it.
    match Period::from_micros((micros + amount / 2) / amount) {
        Ok(interval) if micros >= amount => {
            let (count, unit) = in_units(interval);
            format!("{every} ({about}one per {count} {unit})")
        }
        _ => every,
    }
}

/// Where state is kept and how much of it.
pub fn store_in_words(store: &StoreSettings) -> String {
    if let StoreKind::Shared(_) = store.kind() {
        return shared_in_words(store.shared());
    }
    match (store.max_keys(), store.on_full()) {
        (None, _) => "in memory, as many keys as come".to_owned(),
        (Some(keys), OnFull::Shed) => {
            format!("in memory, at most {keys} keys; then the one soonest as new of a few makes room")
        }
        (Some(keys), OnFull::RefuseNew) => {
            format!("in memory, at most {keys} keys; then new ones are refused")
        }
    }
}

/// What holds of a store that several instances share, wherever it is.
fn shared_in_words(store: &SharedStore) -> String {
    let replica = store.replica.as_deref().unwrap_or("1/1");
    let outage = |choice| match choice {
        OnOutage::Allow => "everything passes, uncounted".to_owned(),
        OnOutage::Deny => "nothing is decided (503)".to_owned(),
        OnOutage::Local if replica.ends_with("/1") => "each instance enforces the whole limit".to_owned(),
        OnOutage::Local => format!("this instance enforces its share, {replica}"),
    };
    let mut words = format!("shared; while the store does not answer, {}", outage(store.on_store_error));
    for (policy, choice) in &store.on_store_error_of {
        words.push_str(&format!("; under {policy}, {}", outage(*choice)));
    }
    words
}

/// Which headers clients get.
pub fn headers_in_words(headers: &HeaderSettings) -> String {
    let reset = match headers.reset {
        ResetStyle::Delta => "in seconds from now",
        ResetStyle::Epoch => "in seconds since 1970",
    };
    match headers.family {
        HeaderFamily::Both => {
            format!("X-RateLimit-* (reset {reset}), RateLimit-Policy and RateLimit")
        }
        HeaderFamily::XRateLimit => format!("X-RateLimit-* (reset {reset})"),
        HeaderFamily::Ietf => "RateLimit-Policy and RateLimit".to_owned(),
        HeaderFamily::None => "none".to_owned(),
    }
}

/// A length of time after "every", "each" or "any": `second`, `7 seconds`, `250 ms`.
pub(super) fn span(period: Period) -> String {
    let (count, unit) = in_units(period);
    let word = match unit {
        "s" => "second",
        "min" => "minute",
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        short => return if count == 1 { short.to_owned() } else { format!("{count} {short}") },
    };
    if count == 1 { word.to_owned() } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::super::{parse_period, parse_rate};
    use super::*;

    fn rate(text: &str) -> Rate {
        parse_rate(text).unwrap()
    }

    fn window(text: &str) -> Period {
        parse_period(text).unwrap()
    }

    #[test]
    fn says_what_each_limit_lets_pass() {
        let table = [
            (
                Limit::token_bucket(100, rate("10/s")),
                "at most 100 at once, then 10 every second (one per 100 ms)",
            ),
            (Limit::gcra(rate("7/s"), 5), "at most 5 at once, then 7 every second (about one per 142857 us)"),
            (Limit::gcra(rate("1/30d"), 1), "at most 1 at once, then 1 every 30 days"),
            (Limit::gcra(rate("30/min"), 16), "at most 16 at once, then 30 every minute (one per 2 s)"),
            (
                Limit::token_bucket(9, rate("3/7s")),
                "at most 9 at once, then 3 every 7 seconds (about one per 2333333 us)",
            ),
            (Limit::token_bucket(9, rate("5/us")), "at most 9 at once, then 5 every us"),
            (Limit::token_bucket(9, rate("0/s")), "at most 9 in all: nothing ever comes back"),
            (Limit::token_bucket(0, rate("1/s")), "nothing passes: every cost above 0 is denied"),
            (Limit::fixed_window(0, window("d")), "nothing passes: every cost above 0 is denied"),
            (
                Limit::leaky_bucket(20, rate("10/s")).unwrap(),
                "at most 20 held at once, leaving evenly, 10 every second (one per 100 ms)",
            ),
            (Limit::fixed_window(10_000, window("1d")), "at most 10000 in each day"),
            (Limit::fixed_window(5, window("90min")), "at most 5 in each 90 minutes"),
            (Limit::sliding_window_log(500, window("60s")).unwrap(), "at most 500 in any minute"),
            (Limit::sliding_window_counter(500, window("250ms")), "about 500 in any 250 ms, from two counts"),
            (
                Limit::fixed_window(5, window("w")).with_debt(7).unwrap(),
                "at most 5 in each week; forced charges sink to 7 below zero",
            ),
        ];
        for (limit, words) in table {
            assert_eq!(limit_in_words(&limit), words);
        }
    }
}
