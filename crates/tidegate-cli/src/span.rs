//! Spans of time as people read them.

/// A span in its two largest units that say something: `1 d 2 h`, `5 s`, `1.5 ms`.
pub fn shown_span(micros: u128) -> String {
    const UNITS: [(u128, &str); 4] =
        [(86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s")];
    for pair in UNITS.windows(2) {
        let [(large, large_name), (small, small_name)] = [pair[0], pair[1]];
        if micros >= large {
            let (whole, rest) = (micros / large, micros % large / small);
            return match rest {
                0 => format!("{whole} {large_name}"),
                rest => format!("{whole} {large_name} {rest} {small_name}"),
            };
        }
    }
    match micros {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{} ms", decimal(micros, 1_000)),
        _ => format!("{} s", decimal(micros, 1_000_000)),
    }
}

/// `micros / unit` with up to three places, rounded down.
fn decimal(micros: u128, unit: u128) -> String {
    let thousandths = micros * 1_000 / unit;
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_no_more_than_one_wants_to_know() {
        for (micros, shown) in [
            (0, "0 s"),
            (999, "999 us"),
            (1_000, "1 ms"),
            (142_858, "142.858 ms"),
            (500_000, "500 ms"),
            (1_500_000, "1.5 s"),
            (59_999_999, "59.999 s"),
            (60_000_000, "1 min"),
            (3_661_000_000, "1 h 1 min"),
            (86_400_000_000 * 31 + 3_600_000_000, "31 d 1 h"),
        ] {
            assert_eq!(shown_span(micros), shown);
        }
    }
}
