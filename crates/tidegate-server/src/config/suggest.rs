//! What was meant by a word that is not known.

use super::errors::{Fault, quoted};

/// Words longer than this are not a slip of the finger.
const LONGEST_GUESSED: usize = 40;

/// Fields that people bring along, and what says the same here.
struct Foreign {
    fields: &'static [&'static str],
    /// A field that is known where the advice is to the point.
    beside: &'static str,
    mend: &'static str,
}

const FOREIGN: [Foreign; 8] = [
    Foreign {
        fields: &[
            "per_second",
            "per_minute",
            "per_hour",
            "per_day",
            "rps",
            "rpm",
            "qps",
            "requests_per_second",
            "requests_per_minute",
            "requests_per_hour",
            "tokens_per_second",
            "rate_per_second",
        ],
        beside: "debt",
        mend: "write the rate as one figure, N/DURATION: e.g. refill: 10/s",
    },
    Foreign {
        fields: &["max_burst", "burst_size", "burst_capacity", "bucket_size", "max_tokens"],
        beside: "debt",
        mend: "write capacity (of gcra: burst): all that may pass at once",
    },
    Foreign {
        fields: &[
            "interval",
            "refill_interval",
            "period",
            "per",
            "duration",
            "window_ms",
            "window_seconds",
            "ttl",
        ],
        beside: "debt",
        mend: "a rate carries its period, e.g. refill: 10/min; the length of a window is window: 1min",
    },
    Foreign {
        fields: &["refill_rate", "fill_rate", "tokens_per_interval"],
        beside: "debt",
        mend: "write refill, e.g. refill: 10/s",
    },
    Foreign {
        fields: &["max_requests", "requests", "quota", "max"],
        beside: "debt",
        mend: "write limit (of a bucket: capacity)",
    },
    Foreign { fields: &["type", "kind", "strategy", "algo"], beside: "algorithm", mend: "write algorithm" },
    // Both are known in a limit, so this is an override.
    Foreign {
        fields: &["algorithm", "name"],
        beside: "debt",
        mend: "remove it: an override gives other figures, the rest stays as the policy has it",
    },
    Foreign {
        fields: &["limits", "overrides"],
        beside: "policies",
        mend: "give it to a policy: policies: {api: {limits: [...]}}",
    },
];

/// The value `text` stands for among `words`.
pub(super) fn one_of<T: Copy>(text: &str, what: &str, words: &[(&'static str, T)]) -> Result<T, Fault> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(Fault::new(format!("unknown {what}"), did_you_mean(text, &known)))
}

/// What is wrong with a field that is none of `known`.
pub(super) fn unknown_field(field: &str, known: &[&str]) -> Fault {
    let foreign = FOREIGN.iter().find(|it| it.fields.contains(&field) && known.contains(&it.beside));
    let mend = foreign.map_or_else(|| did_you_mean(field, known), |foreign| foreign.mend.to_owned());
    Fault::new("unknown field", mend)
}

/// The mend for a word that is none of `known`.
pub(super) fn did_you_mean(text: &str, known: &[&str]) -> String {
    let close = near(text, known);
    if !close.is_empty() {
        return format!("did you mean {}?", join(&close, "or"));
    }
    match known {
        [] => "remove it".to_owned(),
        [only] => format!("write {}", name(only)),
        _ => format!("use {}", join(known, "or")),
    }
}

/// Those of `known` that `text` may have been meant for.
fn near<'k>(text: &str, known: &[&'k str]) -> Vec<&'k str> {
    if text.len() > LONGEST_GUESSED {
        return Vec::new();
    }
    let bare = |word: &str| word.to_lowercase().replace(['-', '_', ' '], "");
    let text = bare(text);
    let begins = |word: &&&str| text.len() > 3 && bare(word).starts_with(&text);
    let beginning: Vec<&str> = known.iter().filter(begins).copied().collect();
    if !beginning.is_empty() {
        return beginning;
    }
    let distance = |word: &&str| strsim::osa_distance(&text, &bare(word));
    let least = known.iter().map(distance).min().unwrap_or(usize::MAX);
    if least > (text.chars().count() / 3).max(1) {
        return Vec::new();
    }
    known.iter().filter(|word| distance(word) == least).copied().collect()
}

fn name(word: &str) -> String {
    let simple = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if simple && !word.is_empty() { word.to_owned() } else { quoted(word) }
}

/// `a, b or c`.
pub(super) fn join(words: &[&str], last: &str) -> String {
    let named: Vec<String> = words.iter().map(|word| name(word)).collect();
    match named.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((end, before)) => format!("{} {last} {end}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALGORITHMS: [&str; 6] = [
        "token_bucket",
        "gcra",
        "leaky_bucket",
        "fixed_window",
        "sliding_window_log",
        "sliding_window_counter",
    ];

    #[test]
    fn guesses_what_was_meant_and_nothing_else() {
        let table = [
            ("TokenBucket", "did you mean token_bucket?"),
            ("fixed-window", "did you mean fixed_window?"),
            ("sliding_window", "did you mean sliding_window_log or sliding_window_counter?"),
            ("leeky_bucket", "did you mean leaky_bucket?"),
            ("grca", "did you mean gcra?"),
            (
                "concurrency",
                "use token_bucket, gcra, leaky_bucket, fixed_window, sliding_window_log or \
                 sliding_window_counter",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(did_you_mean(text, &ALGORITHMS), expected, "{text}");
        }
        assert_eq!(did_you_mean("memroy", &["memory"]), "did you mean memory?");
        assert_eq!(did_you_mean("x", &[]), "remove it");
        assert_eq!(did_you_mean(&"a".repeat(1_000), &["memory"]), "write memory");
        assert_eq!(did_you_mean("ab", &["a b", "xyz"]), "did you mean \"a b\"?");
    }
}
