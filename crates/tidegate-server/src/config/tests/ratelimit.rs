//! Files written for envoyproxy/ratelimit: what they mean, what is refused, and what becomes of them converted.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::super::ratelimit::{RatelimitFiles, Translated, parse, to_yaml};
use super::super::*;

const SHOP: &str = r#"
domain: shop
descriptors:
  # Each address, and fewer for one of them.
  - key: remote_address
    rate_limit: {unit: Second, requests_per_unit: 50}
  - key: remote_address
    value: 192.0.2.7
    rate_limit: {unit: minute, requests_per_unit: 10, name: noisy}
  - key: remote_address
    value: 198.51.100.*
    share_threshold: true
    rate_limit: {unit: HOUR, requests_per_unit: 1_000}
  - key: partner
    value: 42
    descriptors:
      - key: path
        value: /orders/*
        shadow_mode: yes
        rate_limit: {unit: day, requests_per_unit: 0x10}
      - key: path
        rate_limit: {unlimited: true}
      - key: search
        quota_mode: true
        detailed_metric: true
        rate_limit:
          unit: week
          requests_per_unit: 7
          name: search
          replaces: [{name: noisy}, {name: other}]
  - {key: closed, rate_limit: {unit: month, requests_per_unit: 0}}
  - {key: idle, value: ~, rate_limit: null, descriptors: null, metadata: {anything: [goes, {at: all}]}}
"#;

fn translated(text: &str) -> Translated {
    parse(text.as_bytes(), "shop.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> Vec<String> {
    match parse(text.as_bytes(), "shop.yaml") {
        Ok(_) => panic!("taken: {text}"),
        Err(errors) => errors.errors().iter().map(ToString::to_string).collect(),
    }
}

/// The same as a file of ours.
fn converted(files: &Translated) -> Config {
    let text = to_yaml(files, "shop.yaml");
    Config::parse(&text, "t.yaml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

#[test]
fn what_a_file_means() {
    let files = translated(SHOP);
    let (domain, level) = files.rules.domains().next().unwrap();
    let always = ", charged whether it fits or not";
    let words = [
        format!("remote_address: shop.remote_address{always}"),
        format!("remote_address = 192.0.2.7: shop.remote_address_192.0.2.7{always}, named noisy"),
        format!("remote_address = 198.51.100.* (all as one): shop.remote_address_198.51.100.*{always}"),
        format!("partner = 42, path = /orders/*: shop.partner_42.path_/orders/*{always}, never refused"),
        "partner = 42, path: unlimited".to_owned(),
        format!(
            "partner = 42, search: shop.partner_42.search{always}, refused only with all others of its kind, named search, instead of noisy and other"
        ),
        format!("closed: shop.closed{always}"),
    ];
    assert_eq!((domain, descriptors_in_words(level)), ("shop", words.to_vec()));
    let limits: Vec<String> = files
        .policies
        .iter()
        .map(|policy| format!("{}: {}", policy.limit_name(0), limit_in_words(&policy.plan().limits()[0])))
        .collect();
    let expected = [
        "second: at most 50 in each second",
        "noisy: at most 10 in each minute",
        "hour: at most 1000 in each hour",
        "day: at most 16 in each day",
        "search: at most 7 in each week",
        "month: nothing passes: every cost above 0 is denied",
    ];
    assert_eq!(limits, expected);
    let remarks: Vec<String> = files.remarks.iter().map(ToString::to_string).collect();
    let about = "is about envoyproxy/ratelimit's metrics, and has no effect here";
    assert_eq!(
        remarks,
        [
            format!("note: shop.yaml:25: descriptors[3].descriptors[2].detailed_metric: {about}"),
            format!("note: shop.yaml:32: descriptors[5].metadata: {about}"),
        ]
    );
}

#[test]
fn converted_it_means_the_same() {
    let odd = "domain: \"a\\u2028: b'\"\ndescriptors: [{key: 'null', value: 'true'}, {key: \"\\ttab\\\"\", rate_limit: {unit: year, requests_per_unit: 4294967295, name: é}}]";
    for text in
        [SHOP, odd, "domain: none\n", "domain: d\ndescriptors: [{key: a, rate_limit: {unlimited: on}}]"]
    {
        let files = translated(text);
        let config = converted(&files);
        assert_eq!(config.envoy(), &files.rules, "{}", to_yaml(&files, "x"));
        for policy in &files.policies {
            assert_eq!(config.policies().get(policy.name()).map(|it| &**it), Some(policy));
        }
    }
}

#[test]
fn what_the_other_program_refuses_is_refused() {
    let of = |descriptor: &str| errors(&format!("domain: d\ndescriptors: [{descriptor}]"));
    let limit = "rate_limit: {unit: day, requests_per_unit: 1";
    for (descriptor, said) in [
        ("{value: a}", "descriptors[0]: key is missing (write e.g. key: remote_address)"),
        ("{key: ''}", "descriptors[0]: key is missing (write e.g. key: remote_address)"),
        (
            "{key: a, value: b}, {key: a, value: b}",
            "descriptors[1]: two descriptors make \"a_b\" (put what is below them together)",
        ),
        (
            "{key: a_b}, {key: a, value: b}",
            "descriptors[1]: two descriptors make \"a_b\" (put what is below them together)",
        ),
        (
            "{key: a, rate_limit: {unit: fortnight, requests_per_unit: 1}}",
            "descriptors[0].rate_limit.unit: \"fortnight\": no such unit (use second, minute, hour, day, week, month or year)",
        ),
        (
            "{key: a, rate_limit: {requests_per_unit: 1}}",
            "descriptors[0].rate_limit: unit is missing (write e.g. unit: minute, or unlimited: true)",
        ),
        (
            "{key: a, rate_limit: {unlimited: true, unit: minute}}",
            "descriptors[0].rate_limit.unit: \"minute\": a unit beside unlimited (remove one of them)",
        ),
        (
            &format!("{{key: a, {limit}, name: n, replaces: [{{name: n}}]}}}}"),
            "descriptors[0].rate_limit.replaces[0].name: \"n\": it would replace itself (name others)",
        ),
        (
            &format!("{{key: a, {limit}, replaces: [{{name: ''}}]}}}}"),
            "descriptors[0].rate_limit.replaces[0].name: \"\": a name is missing (write e.g. {name: base})",
        ),
        (
            &format!("{{key: a, {limit}, replaces: [{{}}]}}}}"),
            "descriptors[0].rate_limit.replaces[0]: a name is missing (write e.g. {name: base})",
        ),
        (
            "{key: a, value: b, share_threshold: true}",
            "descriptors[0]: share_threshold is for values with a * (give a value with a *, or remove it)",
        ),
        ("{key: a, rate_limits: {}}", "descriptors[0].rate_limits: unknown field (did you mean rate_limit?)"),
        (
            "{key: a, rate_limit: {unit: day, requests_per_unit: 4294967296}}",
            "descriptors[0].rate_limit.requests_per_unit: 4294967296: no whole number from 0 to 4294967295 (write e.g. 20)",
        ),
        (
            "{key: 'a*'}",
            "descriptors[0].key: \"a*\": a * in a key (put the * into the value, or leave the value out for any)",
        ),
    ] {
        assert_eq!(of(descriptor), [said], "{descriptor}");
    }
    for domain in ["descriptors: []", "domain: ''", "domain: ~"] {
        assert_eq!(errors(domain), ["domain is missing (name it as Envoy's filter does)"], "{domain}");
    }
    assert!(errors("- domain: d")[0].contains("a list where a mapping belongs"));
    assert!(errors("domain: d\ndescriptors: [a]")[0].contains("where a mapping belongs"));
}

#[test]
fn numbers_are_read_as_there() {
    for (written, meant) in [
        ("20", 20),
        ("1_000", 1_000),
        ("0x1F", 31),
        ("010", 8),
        ("0o17", 15),
        ("0b11", 3),
        ("+5", 5),
        ("0", 0),
    ] {
        let text = format!(
            "domain: d\ndescriptors: [{{key: a, rate_limit: {{unit: day, requests_per_unit: {written}}}}}]"
        );
        let files = translated(&text);
        assert_eq!(files.policies[0].plan().limits()[0].capacity().get(), meant, "{written}");
    }
    for wrong in ["-1", "1.5", "1e3", "''", "ten", "--1", "+-1", "0x", "08", "4294967296"] {
        let text = format!(
            "domain: d\ndescriptors: [{{key: a, rate_limit: {{unit: day, requests_per_unit: {wrong}}}}}]"
        );
        assert_eq!(errors(&text).len(), 1, "{wrong}");
    }
}

#[test]
fn what_is_taken_and_means_nothing_is_told() {
    let text = "domain: d\nname: x\ndescriptors: [{key: a, unlimited: true, rate_limit: {unit: day, shadow_mode: true}}]";
    let remarks: Vec<String> = translated(text).remarks.iter().map(ToString::to_string).collect();
    let idle = "has no effect here, nor has it in envoyproxy/ratelimit";
    assert_eq!(
        remarks,
        [
            format!("warning: shop.yaml:3: descriptors[0].rate_limit.shadow_mode: {idle}"),
            format!("warning: shop.yaml:3: descriptors[0].unlimited: {idle}"),
            format!("warning: shop.yaml:2: name: {idle}"),
            "warning: shop.yaml:3: descriptors[0].rate_limit: without requests_per_unit it is 0, and all is refused".to_owned(),
        ]
    );
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn a_folder_is_read_in_order_beside_a_file_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let files = RatelimitFiles::at(folder.path());
    let load = |files: &RatelimitFiles| Source::default().with_ratelimit(Some(files.clone())).load();
    let said = |files: &RatelimitFiles| load(files).unwrap_err().to_string();
    let at = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(
        said(&files),
        format!(
            "{}: no .yaml file is in this folder (name the folder that holds them)",
            folder.path().display()
        )
    );
    let limit = |key: &str| format!("{{key: {key}, rate_limit: {{unit: day, requests_per_unit: 1}}}}");
    write(folder.path(), "b.yaml", &format!("domain: two\ndescriptors: [{}]", limit("k")));
    write(folder.path(), "a.yml", &format!("domain: one\ndescriptors: [{}]", limit("k")));
    write(folder.path(), ".hidden.yaml", "nonsense");
    write(folder.path(), "notes.txt", "nonsense");
    let config = load(&files).unwrap();
    let names: Vec<&str> = config.policies().iter().map(|policy| policy.name()).collect();
    assert_eq!(names, ["default", "one.k", "two.k"]);
    assert_eq!(config.envoy().domains().map(|(name, _)| name).collect::<Vec<_>>(), ["one", "two"]);

    write(folder.path(), "c.yaml", &format!("domain: one\ndescriptors: [{}]", limit("m")));
    assert_eq!(
        said(&files),
        format!(
            "{}:1: domain: \"one\": the domain is in {} too (put both into one file, or give --envoy-merge-domains)",
            at("c.yaml"),
            at("a.yml")
        )
    );
    let merged = load(&files.clone().merged(true)).unwrap();
    assert_eq!(merged.envoy().domains().next().unwrap().1.nodes().len(), 2);
    write(folder.path(), "c.yaml", &format!("domain: one\ndescriptors: [{}]", limit("k")));
    assert!(said(&files.merged(true)).contains("two descriptors make \"k\""));

    let own = folder.path().join("own");
    fs::write(
        &own,
        "policies: {one.k: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}\nenvoy: {two: []}",
    )
    .unwrap();
    let both = Source::file(Some(own)).with_ratelimit(Some(RatelimitFiles::at(at("a.yml"))));
    let config = both.load().unwrap();
    assert!(config.policies().get("one.k~2").is_some(), "a name in use is not taken");
    let clash = both.with_ratelimit(Some(RatelimitFiles::at(at("b.yaml"))));
    assert!(
        clash.load().unwrap_err().to_string().contains("the domain \"two\" is in the configuration file too")
    );
}

proptest! {
    /// Whatever is taken can be converted, and means the same.
    #[test]
    fn any_tree_survives_conversion(keys in prop::collection::vec(("[a-c]", "[ -~é\u{85}\u{2028}\n]{0,4}", any::<[bool; 4]>()), 1..12)) {
        let descriptors: Vec<serde_json::Value> = keys.iter().map(|(key, value, [limit, share, shadow, deep])| {
            let mut one = serde_json::json!({"key": key, "value": value, "shadow_mode": shadow, "share_threshold": *share && value.contains('*')});
            if *limit {
                one["rate_limit"] = serde_json::json!({"unit": "day", "requests_per_unit": 3, "name": value});
            }
            if *deep {
                one["descriptors"] = serde_json::json!([{"key": format!("k{}", value.replace('*', "")), "rate_limit": {"unlimited": true}}]);
            }
            one
        }).collect();
        let text = serde_json::json!({"domain": "d", "descriptors": descriptors}).to_string();
        if let Ok(files) = parse(text.as_bytes(), "t") {
            let config = converted(&files);
            prop_assert_eq!(config.envoy(), &files.rules);
        }
    }
}
