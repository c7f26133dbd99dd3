//! `tidegate validate`, run as a program.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn validate(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("validate")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments may not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

const RIGHT: &str = r#"
memory: {max_keys: 1000, on_full: refuse_new}
headers: {family: x-ratelimit, reset: epoch}
policies:
  api:
    limits:
      - {name: burst, algorithm: token_bucket, capacity: 100, refill: 10/s}
      - {algorithm: fixed_window, limit: 10000, window: 1d}
    overrides:
      "user:vip": {burst: {capacity: 1000, refill: 100/s}}
      "acme:*": {}
"#;

#[test]
fn a_right_file_is_told_in_words() {
    let (code, out, err) = validate(&["-"], RIGHT);
    let expected = r#"<stdin> is right
state    in memory, at most 1000 keys; then new ones are refused
headers  X-RateLimit-* (reset in seconds since 1970)

policy api
  burst (token_bucket)  at most 100 at once, then 10 every second (one per 100 ms)
  fixed_window          at most 10000 in each day
  key "user:vip"
    burst                 at most 1000 at once, then 100 every second (one per 10 ms)
  keys "acme:*"
    the same

note: policies.api.limits[0]: at most 110 pass in any second: 100 at once plus a refill of 10
note: policies.api.limits[1]: up to 20000 can pass within a moment, across the edge of two windows; a sliding window does not let that happen
"#;
    assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""));
}

#[test]
fn every_example_is_right() {
    let mut seen = 0;
    for entry in std::fs::read_dir(example("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let (code, out, err) = validate(&[path.to_str().unwrap()], "");
            assert_eq!((code, err.as_str()), (0, ""), "{}", path.display());
            assert!(out.starts_with(&format!("{} is right\n", path.display())));
            seen += 1;
        }
    }
    assert!(seen >= 4);
}

#[test]
fn a_wrong_file_is_told_with_every_line() {
    let wrong = RIGHT.replace("10/s}", "10/sek}").replace("capacity: 1000,", "capacity: -1,");
    let (code, out, err) = validate(&["-"], &wrong);
    let expected = r#"<stdin>:7: policies.api.limits[0].refill: "10/sek": unknown unit "sek" (use us, ms, s, min, h, d, w)
<stdin>:10: policies.api.overrides["user:vip"].burst.capacity: -1: cannot be negative (write 0 or more)
"#;
    assert_eq!((code, out.as_str(), err.as_str()), (1, "", expected));
}

#[test]
fn a_blocked_plan_is_right_and_remarked() {
    let blocked = RIGHT.replace("limit: 10000", "limit: 0");
    let (code, out, _) = validate(&["-"], &blocked);
    assert_eq!(code, 0);
    assert!(out.contains("fixed_window          nothing passes: every cost above 0 is denied"), "{out}");
    assert!(out.contains("warning: policies.api.limits[1]: 0 lets nothing pass"), "{out}");
}

#[test]
fn programs_get_json() {
    let (code, out, _) = validate(&["--format", "json", "-"], RIGHT);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["valid"]), (0, &true.into()));
    assert_eq!(json["memory"], serde_json::json!({ "max_keys": 1000, "on_full": "refuse_new" }));
    assert_eq!(json["headers"], serde_json::json!({ "family": "x-ratelimit", "reset": "epoch" }));
    let policy = &json["policies"][0];
    assert_eq!((&policy["limits"][0]["limit"], &policy["limits"][0]["rate"]), (&100.into(), &"10/s".into()));
    assert_eq!(policy["overrides"][0]["key"], "user:vip");
    assert_eq!(policy["overrides"][0]["limits"][0]["limit"], 1000);
    assert_eq!(policy["overrides"][1]["prefix"], "acme:");
    assert_eq!(json["warnings"][1]["severity"], "note");

    let (code, out, err) = validate(&["--format", "json", "-"], "store: memroy\npolicies: {}\n");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, err.as_str(), &json["valid"], &json["count"]), (1, "", &false.into(), &2.into()));
    let expected = serde_json::json!({
        "line": 1, "column": 8, "path": "store", "value": "\"memroy\"",
        "rule": "unknown store", "mend": "did you mean memory?",
    });
    assert_eq!(json["errors"][0], expected);
}

#[test]
fn what_cannot_be_read_is_another_failure() {
    let (code, out, err) = validate(&["/no/such/file.yaml"], "");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("tidegate: /no/such/file.yaml: "), "{err}");
    assert_eq!(validate(&[], "").0, 2);
    assert_eq!(validate(&["--format", "xml", "-"], "").0, 2);
}

#[test]
fn what_envoy_meets_is_told() {
    let envoy = "envoy:\n  edge: [{key: tenant, policy: api, descriptors: [{key: path, value: /free*, unlimited: true}]}]";
    let text = format!("{RIGHT}{envoy}\n");
    let (code, out, err) = validate(&["-"], &text);
    assert_eq!((code, &*err), (0, ""));
    assert!(
        out.contains("\nenvoy domain edge\n  tenant: api\n  tenant, path = /free*: unlimited\n"),
        "{out}"
    );
    let (_, out, _) = validate(&["--format", "json", "-"], &text);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["envoy"]["edge"][1], "tenant, path = /free*: unlimited");
}
