//! The fields of a response, word for word.

#![allow(clippy::unwrap_used)]

use http::HeaderMap;
use tidegate::{Cost, Decision, KeyPattern, Limit, Limiter, Period, Policy, Rate, Timestamp, Units};
use tidegate_fields::{Families, LimitFields, ResetStyle, Standing, retry_after};

/// Half a second into a second, a day's window at an hour before its end.
const NOW: u64 = 1_700_000_000_500_000 / 86_400_000_000 * 86_400_000_000 + 82_800_000_000 + 500_000;

fn now() -> Timestamp {
    Timestamp::from_micros(NOW).unwrap()
}

fn api() -> Policy {
    Policy::builder("api")
        .limit("burst", Limit::token_bucket(100, Rate::per_second(10)))
        .limit("daily", Limit::fixed_window(150, Period::DAY))
        .override_for(
            KeyPattern::exact("vip"),
            [("burst", Limit::token_bucket(1_000, Rate::per_second(100)))],
        )
        .build()
        .unwrap()
}

/// The fields after each cost, in order, as lines.
fn written(policy: Policy, fields: LimitFields, key: &str, costs: &[u32]) -> Vec<String> {
    let limiter = Limiter::new(policy);
    let handle = limiter.policy(limiter.policies().iter().next().unwrap().name()).unwrap();
    let decisions: Vec<Decision> = costs.iter().map(|cost| handle.check_at(key, *cost, now())).collect();
    lines(&handle.policy(), fields, key, decisions.last().unwrap())
}

fn lines(policy: &Policy, fields: LimitFields, key: &str, decision: &Decision) -> Vec<String> {
    let mut headers = HeaderMap::new();
    fields.write(&mut headers, &Standing { policy, key: key.as_bytes(), decision, now: now() });
    headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
}

#[test]
fn an_admission_tells_every_limit() {
    assert_eq!(
        written(api(), LimitFields::default(), "user:42", &[3]),
        [
            r#"ratelimit-policy: "burst";q=100;w=10, "daily";q=150;w=86400"#,
            r#"ratelimit: "burst";r=97;t=1, "daily";r=147;t=3600"#,
            "x-ratelimit-limit: 100",
            "x-ratelimit-remaining: 97",
            "x-ratelimit-reset: 1",
        ]
    );
}

#[test]
fn a_refusal_tells_the_limits_that_refuse_and_when_to_come_back() {
    assert_eq!(
        written(api(), LimitFields::default(), "user:42", &[100, 1]),
        [
            r#"ratelimit-policy: "burst";q=100;w=10, "daily";q=150;w=86400"#,
            r#"ratelimit: "burst";r=0;t=1"#,
            "x-ratelimit-limit: 100",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 10",
            "retry-after: 1",
        ]
    );
}

#[test]
fn a_key_with_figures_of_its_own_is_told_those() {
    let lines = written(api(), LimitFields::default(), "vip", &[150]);
    assert_eq!(lines[0], r#"ratelimit-policy: "burst";q=1000;w=10, "daily";q=150;w=86400"#);
    assert_eq!(lines[1], r#"ratelimit: "burst";r=850;t=1, "daily";r=0;t=3600"#);
    assert_eq!(lines[2], "x-ratelimit-limit: 150");
}

#[test]
fn waiting_that_cannot_help_is_not_advised() {
    let lines = written(api(), LimitFields::default(), "user:42", &[101]);
    assert_eq!(lines[1], r#"ratelimit: "burst";r=100"#);
    assert!(!lines.iter().any(|line| line.starts_with("retry-after")), "{lines:?}");
}

#[test]
fn what_never_refills_has_no_window_and_no_reset() {
    let policy = Policy::single("once", Limit::token_bucket(3, Rate::ZERO)).unwrap();
    assert_eq!(
        written(policy, LimitFields::default(), "a", &[3, 1]),
        [
            r#"ratelimit-policy: "once";q=3"#,
            r#"ratelimit: "once";r=0"#,
            "x-ratelimit-limit: 3",
            "x-ratelimit-remaining: 0",
        ]
    );
}

#[test]
fn a_blocked_plan_has_a_window_of_one_second_since_zero_is_none() {
    let policy = Policy::single("blocked", Limit::token_bucket(0, Rate::per_second(1))).unwrap();
    let lines = written(policy, LimitFields::default(), "a", &[1]);
    assert_eq!(lines[0], r#"ratelimit-policy: "blocked";q=0;w=1"#);
    assert_eq!(lines[1], r#"ratelimit: "blocked";r=0"#);
}

#[test]
fn families_are_a_choice() {
    let of = |families| written(api(), LimitFields { families, ..Default::default() }, "a", &[100, 1]);
    let names = |families| -> Vec<String> {
        of(families).iter().map(|line| line.split(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(Families::None), ["retry-after"]);
    assert_eq!(
        names(Families::XRateLimit),
        ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"]
    );
    assert_eq!(names(Families::Ietf), ["ratelimit-policy", "ratelimit", "retry-after"]);
}

#[test]
fn an_epoch_reset_is_rounded_up_once() {
    let fields = LimitFields { reset: ResetStyle::Epoch, ..Default::default() };
    // 0.3 s to full from half a second into the second: within it.
    let lines = written(api(), fields, "a", &[3]);
    assert_eq!(lines[4], format!("x-ratelimit-reset: {}", NOW / 1_000_000 + 1));
    // 1.0 s to full: half a second into the one after, rounded up.
    let lines = written(api(), fields, "a", &[10]);
    assert_eq!(lines[4], format!("x-ratelimit-reset: {}", NOW / 1_000_000 + 2));
}

#[test]
fn retry_after_is_never_zero_and_never_early() {
    let policy = Policy::single("api", Limit::token_bucket(10, Rate::per_second(10))).unwrap();
    let handle = Limiter::new(policy).policy("api").unwrap();
    assert_eq!(retry_after(&handle.check_at("a", 10, now())), None);
    assert_eq!(retry_after(&handle.check_at("a", 1, now())).unwrap(), "1"); // 0.1 s
    assert_eq!(retry_after(&handle.check_at("a", 10, now())).unwrap(), "1"); // 1.0 s
    handle.penalize_at("a", 1_u32, now());
    assert_eq!(retry_after(&handle.check_at("a", 10, now())).unwrap(), "2"); // 1.1 s
}

#[test]
fn a_store_that_is_full_says_no_more_than_the_limit() {
    let lines = lines(&api(), LimitFields::default(), "a", &Decision::overloaded(Units::new(100).unwrap()));
    assert_eq!(
        lines,
        [
            r#"ratelimit-policy: "burst";q=100;w=10, "daily";q=150;w=86400"#,
            r#"ratelimit: "burst";r=0"#,
            "x-ratelimit-limit: 100",
            "x-ratelimit-remaining: 0",
        ]
    );
}

#[test]
fn names_are_escaped_and_integers_keep_to_fifteen_digits() {
    let slowest = Rate::new(1, Period::MAX);
    let policy = Policy::single(r#"a "b" \c"#, Limit::token_bucket(Units::MAX, slowest)).unwrap();
    let handle = Limiter::new(policy).policy(r#"a "b" \c"#).unwrap();
    let decision = handle.check_at("a", Cost::MAX, now());
    let lines = lines(&handle.policy(), LimitFields::default(), "a", &decision);
    assert_eq!(lines[0], r#"ratelimit-policy: "a \"b\" \\c";q=1000000000000;w=999999999999999"#);
    assert_eq!(lines[1], r#"ratelimit: "a \"b\" \\c";r=0;t=31622400"#);
    assert_eq!(lines[4], "x-ratelimit-reset: 31622400000000000000");
}

#[test]
fn fields_that_are_there_are_replaced_not_doubled() {
    let limiter = Limiter::new(api());
    let handle = limiter.policy("api").unwrap();
    let (policy, decision) = (handle.policy(), handle.check_at("a", 1, now()));
    let standing = Standing { policy: &policy, key: b"a", decision: &decision, now: now() };
    let mut headers = HeaderMap::new();
    headers.append("ratelimit", "\"other\";r=1".parse().unwrap());
    headers.append("ratelimit", "\"more\";r=2".parse().unwrap());
    assert!(LimitFields::default().are_in(&headers));
    LimitFields::default().write(&mut headers, &standing);
    LimitFields::default().write(&mut headers, &standing);
    assert_eq!(headers.len(), headers.keys_len());
    assert_eq!(headers["ratelimit"], r#""burst";r=99;t=1, "daily";r=149;t=3600"#);
}
