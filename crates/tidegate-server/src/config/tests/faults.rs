//! Wrong files and the exact messages they get.

use super::super::*;

/// All messages a file gets, without the file's name.
fn messages(text: &str) -> Vec<String> {
    let Err(errors) = Config::parse(text, "t.yaml") else { panic!("taken: {text}") };
    errors.errors().iter().map(|error| format!("{}: {error}", error.place().line)).collect()
}

/// The messages of a limit in an otherwise right file, without the way to it.
fn of_limit(limit: &str) -> Vec<String> {
    let text = format!("policies:\n  p:\n    limits:\n      - {limit}\n");
    let shorten = |message: &String| message.replace("4: policies.p.limits[0]", "");
    messages(&text).iter().map(shorten).collect()
}

#[test]
fn figures_of_a_limit() {
    let table: [(&str, &[&str]); 30] = [
        (
            "{algorithm: token_bucket, capacity: 100, refill: 10/sek}",
            &[r#".refill: "10/sek": unknown unit "sek" (use us, ms, s, min, h, d, w)"#],
        ),
        (
            "{algorithm: token_bucket, capacity: -1, refill: 1.5/s}",
            &[
                ".capacity: -1: cannot be negative (write 0 or more)",
                r#".refill: "1.5/s": 1.5 is not a whole number (write 3/2s)"#,
            ],
        ),
        (
            "{algorithm: fixed_window, limit: 1.7, window: 0s}",
            &[
                ".limit: 1.7: not a whole number (write 1 or 2)",
                r#".window: "0s": out of range: a duration goes from 1us to 366d (write at least 1us)"#,
            ],
        ),
        (
            "{algorithm: fixed_window, limit: -1, window: -1s}",
            &[
                ".limit: -1: cannot be negative (write 0 or more)",
                r#".window: "-1s": a duration cannot be negative (write e.g. 10s)"#,
            ],
        ),
        (
            "{algorithm: fixed_window, limit: 5, window: 60}",
            &[
                ".window: 60: a duration has a unit (write 60s for seconds, or one of us, ms, s, min, h, d, w)",
            ],
        ),
        (
            "{algorithm: fixed_window, limit: 5, window: 400d}",
            &[r#".window: "400d": out of range: a duration goes from 1us to 366d (write at most 366d)"#],
        ),
        ("{algorithm: gcra, rate: 10/s, burst: -3}", &[".burst: -3: cannot be negative (write 0 or more)"]),
        (
            "{algorithm: gcra, rate: 10, burst: \"3\"}",
            &[
                ".rate: 10: a rate has a period (write 10/s for 10 every second)",
                r#".burst: "3": text, not a number (write 3 without quotes)"#,
            ],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 10_000}",
            &[".burst: 10_000: a whole number is written in digits only (write 10000)"],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 0o17}",
            &[".burst: 0o17: a whole number is written in digits only (write 15)"],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 010}",
            &[".burst: 010: a whole number has no leading zeros (write 10)"],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 0x10}",
            &[".burst: 0x10: a whole number is written in digits only (write 16)"],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 1e3}",
            &[".burst: 1e3: a whole number is written in digits only (write 1000)"],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: .inf}",
            &[r#".burst: ".inf": not a whole number (write digits only, e.g. 100)"#],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: true}",
            &[".burst: true: not a whole number (write digits only, e.g. 100)"],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 1000000000001}",
            &[
                ".burst: 1000000000001: out of range: an amount goes from 0 to 1000000000000 (write a smaller one)",
            ],
        ),
        (
            "{algorithm: gcra, rate: 10/s, burst: 18446744073709551616}",
            &[
                ".burst: 18446744073709551616: out of range: an amount goes from 0 to 1000000000000 (write a smaller one)",
            ],
        ),
        (
            "{algorithm: gcra, rate: [10/s], burst: }",
            &[
                ".rate: a list is no value here (write a rate, e.g. 10/s)",
                ".burst: no value (write a whole number, e.g. 100)",
            ],
        ),
        (
            "{algorithm: leaky_bucket, capacity: 3, leak: 0/s}",
            &[
                r#".leak: "0/s": a leaky bucket has to leak (write more than 0, or take token_bucket for one that never refills)"#,
            ],
        ),
        (
            "{algorithm: sliding_window_log, limit: 65537, window: d}",
            &[
                ".limit: 65537: out of range: a sliding_window_log keeps every admitted cost and goes up to 65536 (take sliding_window_counter)",
            ],
        ),
        (
            "{algorithm: sliding_window_log, limit: 1, window: d, debt: 65537}",
            &[
                ".debt: 65537: out of range: a sliding_window_log keeps every admitted cost and goes up to 65536 (take sliding_window_counter)",
            ],
        ),
        (
            "{algorithm: sliding_window, limit: 1, window: d}",
            &[
                r#".algorithm: "sliding_window": unknown algorithm (did you mean sliding_window_log or sliding_window_counter?)"#,
            ],
        ),
        (
            "{algorithm: fixed_window, limit: 1, window: d, refill: 1/s}",
            &[r#".refill: "1/s": a fixed_window has no refill (it takes limit, window and debt)"#],
        ),
        ("{limit: 1, window: d}", &[": algorithm is missing (write e.g. algorithm: token_bucket)"]),
        (
            "{algorithm: token_bucket}",
            &[
                ": capacity is missing (a token_bucket takes e.g. capacity: 100, refill: 10/s)",
                ": refill is missing (a token_bucket takes e.g. capacity: 100, refill: 10/s)",
            ],
        ),
        (
            "{algorithm: gcra, rate: 1/s, burst: 1, brust: 2}",
            &[".brust: unknown field (did you mean burst?)"],
        ),
        ("{algorithm: gcra, rate: 1/s, rate: 2/s, burst: 1}", &[".rate: already given on line 4 (keep one)"]),
        (
            "{algorithm: gcra, rate: 1/s, burst: 1, name: \"\"}",
            &[
                r#".name: "": a name is 1 to 128 printable ASCII characters, since it is shown in HTTP headers (rename it)"#,
            ],
        ),
        (
            "token_bucket",
            &[
                r#": "token_bucket": text where a mapping belongs (write {algorithm: token_bucket, capacity: 100, refill: 10/s})"#,
            ],
        ),
        ("", &[": no value (write {algorithm: token_bucket, capacity: 100, refill: 10/s})"]),
    ];
    for (limit, expected) in table {
        assert_eq!(of_limit(limit), expected, "{limit}");
    }
}

/// Words of other limiters, by which `per_second: 4` once came to mean one in four seconds.
#[test]
fn words_of_other_limiters() {
    let mend = |field: &str| {
        let messages =
            of_limit(&format!("{{algorithm: token_bucket, capacity: 4, refill: 4/s, {field}: 4}}"));
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages[0].clone()
    };
    assert_eq!(
        mend("per_second"),
        ".per_second: unknown field (write the rate as one figure, N/DURATION: e.g. refill: 10/s)"
    );
    assert_eq!(
        mend("max_burst"),
        ".max_burst: unknown field (write capacity (of gcra: burst): all that may pass at once)"
    );
    assert_eq!(
        mend("interval"),
        ".interval: unknown field (a rate carries its period, e.g. refill: 10/min; the length of a window is window: 1min)"
    );
    assert_eq!(mend("refill_rate"), ".refill_rate: unknown field (write refill, e.g. refill: 10/s)");
    assert_eq!(mend("type"), ".type: unknown field (write algorithm)");
}

/// Each of these was taken at start by some limiter and failed, or limited nothing, when it ran.
#[test]
fn a_limit_of_nothing_is_taken_and_said() {
    for limit in [
        "{algorithm: gcra, rate: 10/s, burst: 0}",
        "{algorithm: token_bucket, capacity: 0, refill: 10/s}",
        "{algorithm: leaky_bucket, capacity: 0, leak: 10/s}",
        "{algorithm: fixed_window, limit: 0, window: 1s}",
        "{algorithm: sliding_window_log, limit: 0, window: 1s}",
        "{algorithm: sliding_window_counter, limit: 0, window: 1s}",
    ] {
        let config = Config::parse(&format!("policies: {{p: {{limits: [{limit}]}}}}"), "t.yaml").unwrap();
        let policy = config.policies().get("p").unwrap();
        assert_eq!(
            limit_in_words(&policy.plan().limits()[0]),
            "nothing passes: every cost above 0 is denied"
        );
        assert_eq!(warnings(&config)[0].severity(), Severity::Warning);
    }
}

#[test]
fn the_frame_around_policies() {
    let right = "policies: {p: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}";
    let table: [(&str, &[&str]); 19] = [
        ("{}", &["1: policies is missing (give at least one: policies: {api: ...})"]),
        ("[]", &["1: a list where a mapping belongs (write policies: {...})"]),
        ("policies:", &["1: policies: no value (write a policy, e.g. api: {limits: [...]})"]),
        ("policies: {}", &["1: policies: no policy (give at least one, e.g. api: {limits: [...]})"]),
        ("policies: {api: }", &["1: policies.api: no value (write {limits: [...]})"]),
        (
            "policies: {api: {}}",
            &["1: policies.api: a policy has one to 8 limits, this has 0 (give limits: [...])"],
        ),
        (
            "policies: {api: {limits: {}}}",
            &[
                "1: policies.api.limits: a mapping where a list belongs (write - {algorithm: token_bucket, capacity: 100, refill: 10/s})",
            ],
        ),
        (
            "policies: {\"caf\u{e9}\": {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}",
            &[
                "1: policies[\"caf\u{e9}\"]: a name is 1 to 128 printable ASCII characters, since it is shown in HTTP headers (rename it)",
            ],
        ),
        ("store: memroy\nRIGHT", &[r#"1: store: "memroy": unknown store (did you mean memory?)"#]),
        (
            "store: http://h:6379\nRIGHT",
            &[
                r#"1: store: "http://h:6379": unknown store (write memory, or an address that begins with redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster://, redis+unix:// or unix://, with valkey for redis as you like)"#,
            ],
        ),
        (
            "store: redis\nRIGHT",
            &[r#"1: store: "redis": no address (write where it is: redis://host:6379/0)"#],
        ),
        (
            "store: valkey\nRIGHT",
            &[r#"1: store: "valkey": no address (write where it is: valkey://host:6379/0)"#],
        ),
        (
            "store: cache:6379\nRIGHT",
            &[
                r#"1: store: "cache:6379": unknown store (write memory, or an address such as redis://host:6379/0)"#,
            ],
        ),
        (
            "redis: {replica: 6/5, on_store_error: maybe}\nRIGHT",
            &[
                r#"1: redis.replica: "6/5": not one of so many instances (write a number of how many, e.g. 2/5, at most 10000/10000)"#,
                r#"1: redis.on_store_error: "maybe": unknown choice (use allow, deny or local)"#,
            ],
        ),
        (
            "policies: {a: {layout: classic, limits: [{algorithm: gcra, rate: 1/s, burst: 2}]}}",
            &[
                "1: policies.a.layout: \"classic\": the classic layout keeps one token_bucket that refills, for every key \
                 (remove it, or give one such limit)",
            ],
        ),
        (
            "policies: {a: {key_prefix: x, limits: [{algorithm: gcra, rate: 1/s, burst: 2}]}}",
            &[
                "1: policies.a.key_prefix: \"x\": only layout: classic names its keys itself (remove it, or give layout: \
                 classic)",
            ],
        ),
        (
            "policies: {a: &p {layout: classic, limits: [{algorithm: token_bucket, capacity: 1, refill: 1/s}]}, b: *p}",
            &[
                "1: policies.b.layout: \"classic\": policy \"a\" keeps its buckets under \"tb:\" too (give one of them another key_prefix)",
            ],
        ),
        (
            "memory: {max_keys: 0, on_full: drop}\nheaders: {family: xratelimit, reset: seconds, foo: 1}\nlimits: []\nRIGHT",
            &[
                "1: memory.max_keys: 0: no key could be held (write 1 or more, or remove the line for no bound)",
                r#"1: memory.on_full: "drop": unknown choice (use shed or refuse_new)"#,
                r#"2: headers.family: "xratelimit": unknown family (did you mean x-ratelimit?)"#,
                r#"2: headers.reset: "seconds": unknown choice (use delta or epoch)"#,
                "2: headers.foo: unknown field (use family or reset)",
                "3: limits: unknown field (give it to a policy: policies: {api: {limits: [...]}})",
            ],
        ),
        ("RIGHT\nRIGHT", &["2: policies: already given on line 1 (keep one)"]),
    ];
    for (text, expected) in table {
        assert_eq!(messages(&text.replace("RIGHT", right)), expected, "{text}");
    }
}

#[test]
fn limits_together_and_overrides() {
    let text = r#"policies:
  a:
    limits:
    - {name: b, algorithm: gcra, rate: 1/s, burst: 1}
    - {algorithm: fixed_window, limit: 5, window: 1h}
    - {algorithm: fixed_window, limit: 5, window: 1h}
    - {algorithm: leaky_bucket, name: b, capacity: 1, leak: 1/s}
    overrides:
      "u:*":
        brust: {burst: 5}
        b: {algorithm: gcra, capacity: 5, rate: 7/m}
        fixed_window:
      x: []
      y:
  c:
    limits: [1, 2, 3, 4, 5, 6, 7, 8, 9]
"#;
    let expected = [
        r#"6: policies.a.limits[2]: two limits are named "fixed_window" (give each a name: ...)"#,
        r#"7: policies.a.limits[3].name: "b": two limits are named "b" (rename one)"#,
        r#"10: policies.a.overrides["u:*"].brust: the policy has no limit of this name (use b, fixed_window, fixed_window or b)"#,
        r#"11: policies.a.overrides["u:*"].b.algorithm: unknown field (remove it: an override gives other figures, the rest stays as the policy has it)"#,
        r#"11: policies.a.overrides["u:*"].b.capacity: 5: a gcra has no capacity (it takes burst, rate and debt)"#,
        r#"11: policies.a.overrides["u:*"].b.rate: "7/m": m could be minutes, months or a thousandth (write min for minutes)"#,
        r#"12: policies.a.overrides["u:*"].fixed_window: no value (write the figures that differ, e.g. {capacity: 1000})"#,
        r#"13: policies.a.overrides.x: a list where a mapping belongs (write the limit's name and its figures, e.g. {burst: {capacity: 1000}})"#,
        r#"14: policies.a.overrides.y: no value (write the limit's name and its figures, e.g. {burst: {capacity: 1000}})"#,
        "16: policies.c.limits: a policy has one to 8 limits, this has 9 (split the policy)",
    ];
    let found = messages(text);
    assert_eq!(found[..10], expected);
    // The nine limits of c that are none.
    assert_eq!(found.len(), 19);
}

#[test]
fn what_an_override_makes_impossible_is_told_there() {
    let text = "policies:
  p:
    limits: [{algorithm: leaky_bucket, capacity: 1, leak: 1/s}, {algorithm: sliding_window_log, limit: 1, window: s}]
    overrides:
      k: {leaky_bucket: {leak: 0/s}}
      l: {sliding_window_log: {limit: 70000}}
";
    let found = messages(text);
    assert!(
        found[0]
            .starts_with(r#"5: policies.p.overrides.k.leaky_bucket.leak: "0/s": a leaky bucket has to leak"#)
    );
    assert!(found[1].starts_with("6: policies.p.overrides.l.sliding_window_log.limit: 70000: out of range"));
    assert_eq!(found.len(), 2);
}

#[test]
fn an_alias_is_wrong_where_its_value_is_written() {
    let text = "policies:
  p:
    limits:
      - {name: a, algorithm: gcra, rate: &r 10/sek, burst: 1}
      - {name: b, algorithm: gcra, rate: *r, burst: 1}
";
    let unit = r#""10/sek": unknown unit "sek" (use us, ms, s, min, h, d, w)"#;
    let expected =
        [format!("4: policies.p.limits[0].rate: {unit}"), format!("4: policies.p.limits[1].rate: {unit}")];
    assert_eq!(messages(text), expected);
}

#[test]
fn errors_say_file_line_and_column() {
    let errors = Config::parse("policies: {}\nstore: disk\n", "conf/t.yaml").unwrap_err();
    assert_eq!(
        errors.to_string(),
        "conf/t.yaml:1: policies: no policy (give at least one, e.g. api: {limits: [...]})\n\
         conf/t.yaml:2: store: \"disk\": unknown store (write memory, or an address such as redis://host:6379/0)"
    );
    let second = &errors.errors()[1];
    assert_eq!((second.place(), second.value()), (Place { line: 2, column: 8 }, Some("\"disk\"")));
    let mend = "write memory, or an address such as redis://host:6379/0";
    assert_eq!((second.path(), second.rule(), second.mend()), ("store", "unknown store", mend));
}

/// Whoever opens stores is asked about their addresses; what is wrong with one has its line like all else.
#[test]
fn an_address_is_judged_where_it_stands_and_not_shown() {
    let refuse: AddressRule = |address| match address {
        "redis://right" => Ok(()),
        _ => Err(Fault::new("no host", "write redis://host:6379")),
    };
    let said = |store: &str| {
        let text = format!("headers: {{family: noone}}\nstore: {store}\npolicies: {{}}\n");
        let Err(LoadError::Invalid(errors)) = Config::read_with(text.as_bytes(), "t.yaml", refuse) else {
            panic!("taken: {store}")
        };
        errors.errors().iter().map(|error| format!("{}: {error}", error.place().line)).collect::<Vec<_>>()
    };
    assert_eq!(said("redis://right").len(), 2);
    let all = said("redis://:s3cret@");
    assert_eq!(all[1], "2: store: no host (write redis://host:6379)");
    assert_eq!(all.len(), 3);
    for store in [
        "http://:s3cret@h",
        "ann:s3cret@h",
        "'http://ann:s3cret-as-long-as-it-does-not-end-before-sixty-characters@h'",
    ] {
        assert!(!said(store).concat().contains("s3cret"), "{store}");
    }
}
