//! What right files mean.

use tidegate::{Algorithm, KeyPattern, OnFull};

use super::super::*;

fn read(text: &str) -> Config {
    Config::parse(text, "t.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Each limit of the plan for `key`: capacity and rate or window.
fn figures(config: &Config, key: &str) -> Vec<String> {
    let policy = config.policies().iter().next().unwrap();
    let plan = policy.plan_for(key.as_bytes());
    plan.limits()
        .iter()
        .map(|limit| {
            let pace = limit.rate().map(show_rate).or(limit.window().map(show_period)).unwrap();
            format!("{} {} {pace}", limit.algorithm(), limit.capacity())
        })
        .collect()
}

#[test]
fn the_file_of_the_reference_means_what_it_says() {
    let config = read(
        r#"
policies:
  api:
    limits:
      - {name: burst, algorithm: token_bucket, capacity: 100, refill: 10/s}
      - {name: daily, algorithm: fixed_window, limit: 10000, window: 1d}
    overrides:
      "user:vip": {burst: {capacity: 1000, refill: 100/s}}
      "acme:*": {daily: {limit: 5}}
"#,
    );
    let policy = config.policies().get("api").unwrap();
    assert_eq!(policy.limit_names().collect::<Vec<_>>(), ["burst", "daily"]);
    assert_eq!(figures(&config, "user:42"), ["token_bucket 100 10/s", "fixed_window 10000 1d"]);
    assert_eq!(figures(&config, "user:vip"), ["token_bucket 1000 100/s", "fixed_window 10000 1d"]);
    assert_eq!(figures(&config, "acme:7"), ["token_bucket 100 10/s", "fixed_window 5 1d"]);
    assert_eq!(*config.store(), StoreSettings::default());
    assert_eq!(config.headers(), HeaderSettings::default());
}

#[test]
fn every_algorithm_takes_its_own_words() {
    let config = read(
        "
policies:
  all:
    limits:
      - {algorithm: token_bucket, capacity: 1, refill: 0/s}
      - {algorithm: gcra, rate: 3/7s, burst: 2}
      - {algorithm: leaky_bucket, capacity: 3, leak: 1/30d}
      - {algorithm: fixed_window, limit: 4, window: 7d}
      - {algorithm: sliding_window_log, limit: 65536, window: h}
      - {algorithm: sliding_window_counter, limit: 1000000000000, window: 366d}
",
    );
    let expected = [
        "token_bucket 1 0/s",
        "gcra 2 3/7s",
        "leaky_bucket 3 1/30d",
        "fixed_window 4 1w",
        "sliding_window_log 65536 1h",
        "sliding_window_counter 1000000000000 366d",
    ];
    assert_eq!(figures(&config, "k"), expected);
    let names: Vec<_> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    assert_eq!(config.policies().get("all").unwrap().limit_names().collect::<Vec<_>>(), names);
}

#[test]
fn an_override_changes_only_what_it_gives() {
    let config = read(
        r"
policies:
  p:
    limits:
      - {name: a, algorithm: token_bucket, capacity: 10, refill: 1/s, debt: 3}
      - {name: b, algorithm: gcra, burst: 10, rate: 1/s}
    overrides:
      faster: {a: {refill: 2/s}}
      larger: {a: {capacity: 20}, b: {burst: 20}}
      debtor: {a: {debt: 0}}
      plain: {}
      '*': {b: {burst: 7}}
      odd\*: {b: {burst: 8}}
",
    );
    let policy = config.policies().get("p").unwrap();
    let debts = |key: &str| {
        let limits = policy.plan_for(key.as_bytes()).limits();
        limits.iter().map(|limit| limit.debt().get()).collect::<Vec<_>>()
    };
    assert_eq!(figures(&config, "faster"), ["token_bucket 10 2/s", "gcra 10 1/s"]);
    assert_eq!(figures(&config, "larger"), ["token_bucket 20 1/s", "gcra 20 1/s"]);
    assert_eq!(figures(&config, "plain"), ["token_bucket 10 1/s", "gcra 10 1/s"]);
    assert_eq!(figures(&config, "anybody"), ["token_bucket 10 1/s", "gcra 7 1/s"]);
    assert_eq!(figures(&config, "odd*"), ["token_bucket 10 1/s", "gcra 8 1/s"]);
    // A debt given stays; one not given follows the capacity.
    assert_eq!((debts("larger"), debts("debtor")), (vec![3, 20], vec![0, 10]));
    let patterns: Vec<_> = policy.overrides().map(|(pattern, _)| pattern.clone()).collect();
    assert_eq!(patterns[4..], [KeyPattern::prefix(""), KeyPattern::exact("odd*")]);
}

#[test]
fn settings_are_read_and_have_defaults() {
    let policies = "policies: {p: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}";
    let config = read(&format!(
        "store: memory\nmemory: {{max_keys: 5, on_full: refuse_new}}\nheaders: {{family: x-ratelimit, reset: epoch}}\n{policies}"
    ));
    assert_eq!((config.store().max_keys(), config.store().on_full()), (Some(5), OnFull::RefuseNew));
    assert_eq!(*config.store().kind(), StoreKind::Memory);
    let expected = HeaderSettings { family: HeaderFamily::XRateLimit, reset: ResetStyle::Epoch };
    assert_eq!(config.headers(), expected);
    assert_eq!(read(&format!("headers: {{family: ietf}}\n{policies}")).headers().family, HeaderFamily::Ietf);
    assert_eq!(read(&format!("headers: {{family: none}}\n{policies}")).headers().family, HeaderFamily::None);
}

#[test]
fn without_a_file_there_is_one_bucket() {
    let default = Config::default();
    let written = read(
        "policies: {default: {limits: [{name: default, algorithm: token_bucket, capacity: 100, refill: 10/s}]}}",
    );
    assert_eq!(default, written);
}

#[test]
fn json_is_legal() {
    let json = serde_json::json!({
        "memory": {"max_keys": 10},
        "policies": {"p": {
            "limits": [{"algorithm": "fixed_window", "limit": 5, "window": "1min"}],
            "overrides": {"k": {"fixed_window": {"limit": 6}}},
        }},
    });
    for text in [json.to_string(), format!("{json:#}")] {
        let config = read(&text);
        assert_eq!(figures(&config, "k"), ["fixed_window 6 1min"]);
        assert_eq!(config.store().max_keys(), Some(10));
    }
}

#[test]
fn anchors_aliases_and_merges_work() {
    let config = read(
        "
policies:
  a:
    limits:
      - &bucket {name: x, algorithm: token_bucket, capacity: &size 10, refill: 1/s}
      - {<<: *bucket, name: y, refill: 5/s}
      - {algorithm: fixed_window, limit: *size, window: 1h}
",
    );
    assert_eq!(figures(&config, "k"), ["token_bucket 10 1/s", "token_bucket 10 5/s", "fixed_window 10 1h"]);
}

#[test]
fn names_and_keys_that_look_like_numbers_stay_as_written() {
    let config = read(
        "policies: {1e3: {limits: [{name: 007, algorithm: gcra, rate: 1/s, burst: 1}], overrides: {0x10: {007: {burst: 2}}}}}",
    );
    assert_eq!(config.policies().get("1e3").unwrap().limit_name(0), "007");
    assert_eq!(figures(&config, "0x10"), ["gcra 2 1/s"]);
    assert_eq!(figures(&config, "16"), ["gcra 1 1/s"]);
}

#[test]
fn says_what_may_surprise() {
    let config = read(
        r#"
policies:
  api:
    limits:
      - {name: burst, algorithm: token_bucket, capacity: 100, refill: 10/s}
      - {name: once, algorithm: gcra, burst: 3, rate: 0/s}
      - {name: weekly, algorithm: fixed_window, limit: 7, window: 1w}
      - {name: log, algorithm: sliding_window_log, limit: 7, window: 1w}
      - {name: count, algorithm: sliding_window_counter, limit: 7, window: 1d}
      - {name: blocked, algorithm: fixed_window, limit: 0, window: 1d}
    overrides:
      "acme:*": {burst: {capacity: 1000}}
      "acme:eu:*": {log: {limit: 9}}
      "acme:eu:1": {log: {limit: 0}, burst: {capacity: 5}}
      "acme:us": {burst: {capacity: 5}}
"#,
    );
    let found: Vec<String> = warnings(&config).iter().map(ToString::to_string).collect();
    let expected = [
        "note: policies.api.limits[0]: at most 110 pass in any second: 100 at once plus a refill of 10",
        "note: policies.api.limits[1]: never refills: 3 is all a key ever gets",
        "note: policies.api.limits[2]: up to 14 can pass within a moment, across the edge of two windows; a sliding window does not let that happen",
        "note: policies.api.limits[2]: windows begin at whole multiples of 1w since 1970, UTC, so on a Thursday",
        "note: policies.api.limits[4]: exact when traffic is even; up to 13 in some day when it is not",
        "warning: policies.api.limits[5]: 0 lets nothing pass: every cost above 0 is denied",
        "warning: policies.api.overrides[\"acme:eu:*\"]: the burst of \"acme:*\" does not count here, only the closest pattern does (repeat it if it is meant)",
        "note: policies.api.overrides[\"acme:eu:1\"].log: 0 lets nothing pass: these keys are blocked",
    ];
    assert_eq!(found, expected);

    let all = read(
        "policies: {p: {limits: [{algorithm: sliding_window_log, limit: 1, window: s}], overrides: {'*': {sliding_window_log: {limit: 2}}}}}",
    );
    let found: Vec<String> = warnings(&all).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["warning: policies.p.overrides[\"*\"]: matches every key: the policy's own figures are never used"]
    );
}

#[test]
fn what_is_said_of_a_shared_store_means_nothing_in_memory() {
    let text = "redis: {prefix: p}\n\
        policies:\n\
        \x20 api: {layout: classic, limits: [{algorithm: token_bucket, capacity: 5, refill: 1/s}]}\n\
        \x20 login: {on_store_error: deny, limits: [{algorithm: sliding_window_log, limit: 5, window: 1d}]}\n";
    let told = |config: &Config| {
        let warned: Vec<_> =
            warnings(config).into_iter().filter(|it| it.severity() == Severity::Warning).collect();
        assert!(warned.iter().all(|it| it.text().starts_with("without effect, for state is kept in memory")));
        warned.iter().map(|it| it.path().to_owned()).collect::<Vec<_>>()
    };
    let config = Config::parse(text, "t.yaml").unwrap();
    assert_eq!(told(&config), ["policies.api.layout", "policies.login.on_store_error", "redis"]);
    assert_eq!(told(&config.kept_in(StoreKind::Shared("redis://h".to_owned()))), [""; 0]);
    let shared = Config::parse(&format!("store: redis://h\n{text}"), "t.yaml").unwrap();
    assert_eq!(told(&shared), [""; 0]);
    assert_eq!(told(&shared.kept_in(StoreKind::Memory)).len(), 3);
    let plain = text
        .split_once('\n')
        .unwrap()
        .1
        .replace("layout: classic, ", "")
        .replace("on_store_error: deny, ", "");
    assert_eq!(told(&Config::parse(&plain, "t.yaml").unwrap()), [""; 0]);
}

#[test]
fn a_shared_store_and_what_is_answered_without_it() {
    let config = Config::parse(
        "store: redis+cluster://a,b\n\
         redis: {prefix: p, timeout: 20ms, on_store_error: allow, replica: 2/5, partition: all, on_damaged: start_anew}\n\
         policies:\n\
        \x20 api: {layout: classic, key_prefix: 'b:', limits: [{algorithm: token_bucket, capacity: 5, refill: 1/s}]}\n\
        \x20 login: {on_store_error: deny, limits: [{algorithm: fixed_window, limit: 5, window: 1d}]}\n",
        "t.yaml",
    )
    .unwrap();
    let store = config.store();
    assert_eq!(*store.kind(), StoreKind::Shared("redis+cluster://a,b".to_owned()));
    let expected = SharedStore {
        prefix: Some("p".to_owned()),
        timeout: Some(std::time::Duration::from_millis(20)),
        on_store_error: OnOutage::Allow,
        on_store_error_of: [("login".to_owned(), OnOutage::Deny)].into(),
        replica: Some("2/5".to_owned()),
        partition: Some("all".to_owned()),
        on_damaged: OnDamage::StartAnew,
        classic: [("api".to_owned(), "b:".to_owned())].into(),
    };
    assert_eq!(*store.shared(), expected);
    assert!(!format!("{config:?}").contains("cluster://"), "it may hold a password");
}
