//! `tidegate replay`, run as a program.
#![allow(clippy::unwrap_used)]

mod program;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use program::{Files, command, tidegate};
use serde_json::{Value, json};

/// One policy, `api`, with one limit, `limit0`.
fn config(limit: &str) -> String {
    format!("policies: {{api: {{limits: [{{name: limit0, {limit}}}]}}}}")
}

const SECOND: u64 = 1_000_000;

/// A trace of (stamp, key, cost).
fn trace(checks: &[(u64, &str, u64)]) -> String {
    let line = |(at_us, key, cost): &(u64, &str, u64)| json!({"at_us": at_us, "key": key, "cost": cost});
    checks.iter().map(|check| line(check).to_string() + "\n").collect()
}

/// The decisions of a trace under a limit, with more arguments.
fn decisions(limit: &str, trace: &str, arguments: &[&str]) -> Vec<Value> {
    let files = Files::new();
    let config = files.write("tidegate.yaml", config(limit));
    let out = files.path("out.jsonl");
    let arguments = [&["replay", "--config", &config, "--decisions", &out], arguments, &["-"]].concat();
    tidegate(&arguments, trace.as_bytes()).fine();
    files.read("out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// These fields of each decision.
fn only(decisions: &[Value], fields: &[&str]) -> Vec<Value> {
    let pick = |decision: &Value| fields.iter().map(|field| decision[field].clone()).collect();
    decisions.iter().map(pick).collect()
}

#[test]
fn a_decision_has_the_fields_of_the_http_answer_in_microseconds() {
    let limit = "algorithm: token_bucket, capacity: 3, refill: 1/s";
    let lines = decisions(limit, &trace(&[(7, "user:42", 2), (7, "user:42", 2), (7, "user:42", 4)]), &[]);
    let expected = json!([
        {"at_us": 7, "key": "user:42", "cost": 2, "policy": "api", "allowed": true, "outcome": "allowed",
         "bound_by": "limit0", "limit": 3, "remaining": 1, "retry_after_us": 0, "reset_after_us": 2_000_000,
         "delay_us": 0, "limits": [{"name": "limit0", "algorithm": "token_bucket", "limit": 3, "remaining": 1,
         "retry_after_us": 0, "reset_after_us": 2_000_000, "delay_us": 0}]},
        {"at_us": 7, "key": "user:42", "cost": 2, "policy": "api", "allowed": false, "outcome": "denied",
         "bound_by": "limit0", "limit": 3, "remaining": 1, "retry_after_us": 1_000_000, "reset_after_us": 2_000_000,
         "delay_us": 0, "limits": [{"name": "limit0", "algorithm": "token_bucket", "limit": 3, "remaining": 1,
         "retry_after_us": 1_000_000, "reset_after_us": 2_000_000, "delay_us": 0}]},
        {"at_us": 7, "key": "user:42", "cost": 4, "policy": "api", "allowed": false,
         "outcome": "cost_exceeds_capacity", "bound_by": "limit0", "limit": 3, "remaining": 1,
         "retry_after_us": null, "reset_after_us": 2_000_000, "delay_us": 0, "limits": [{"name": "limit0",
         "algorithm": "token_bucket", "limit": 3, "remaining": 1, "retry_after_us": null,
         "reset_after_us": 2_000_000, "delay_us": 0}]},
    ]);
    assert_eq!(Value::from(lines), expected);
}

#[test]
fn idling_saves_up_no_more_than_the_capacity() {
    let mut checks = vec![(0, "a", 1); 5];
    checks.extend(vec![(5 * SECOND, "a", 1); 15]);
    let lines = decisions("algorithm: token_bucket, capacity: 10, refill: 1/s", &trace(&checks), &[]);
    let admitted: Vec<bool> = lines.iter().map(|line| line["allowed"].as_bool().unwrap()).collect();
    assert_eq!(admitted, [vec![true; 15], vec![false; 5]].concat());
    assert_eq!(only(&lines[4..6], &["remaining"]), [json!([5]), json!([9])]);
}

#[test]
fn polled_each_millisecond_seven_a_second_come_at_seven_instants() {
    let mut checks = vec![(0, "a", 10)];
    checks.extend((1..=1_000).map(|ms| (ms * 1_000, "a", 1)));
    let lines = decisions("algorithm: token_bucket, capacity: 10, refill: 7/s", &trace(&checks), &[]);
    let admitted = lines[1..].iter().filter(|line| line["allowed"] == true);
    let instants: Vec<u64> = admitted.map(|line| line["at_us"].as_u64().unwrap() / 1_000).collect();
    assert_eq!(instants, [143, 286, 429, 572, 715, 858, 1_000]);
}

#[test]
fn a_leaky_bucket_tells_each_its_turn() {
    let lines = decisions("algorithm: leaky_bucket, capacity: 3, leak: 1/s", &trace(&[(0, "a", 1); 4]), &[]);
    let expected = [
        json!([true, 0, 0]),
        json!([true, SECOND, 0]),
        json!([true, 2 * SECOND, 0]),
        json!([false, 0, SECOND]),
    ];
    assert_eq!(only(&lines, &["allowed", "delay_us", "retry_after_us"]), expected);
}

#[test]
fn all_limits_or_none_are_charged_and_the_binding_one_is_named() {
    let limits = "algorithm: token_bucket, capacity: 5, refill: 5/10s}, {name: daily, algorithm: fixed_window, limit: 3, window: 1d";
    let lines = decisions(limits, &trace(&[(0, "a", 1); 4]), &[]);
    assert_eq!(
        only(&lines[2..], &["allowed", "bound_by"]),
        [json!([true, "daily"]), json!([false, "daily"])]
    );
    let remaining = |line: &Value| only(line["limits"].as_array().unwrap(), &["name", "remaining"]);
    assert_eq!(remaining(&lines[3]), [json!(["limit0", 2]), json!(["daily", 0])]);
    assert_eq!(lines[3]["retry_after_us"], 86_400 * SECOND);
}

/// goreplay#680, envoy#32810: access logs are written when requests end, and stamped when they began.
#[test]
fn an_access_log_out_of_order_is_put_right() {
    let limit = "algorithm: token_bucket, capacity: 1, refill: 1/2s";
    let stamps = ["2023-11-14T12:00:02Z", "2023-11-14T12:00:00Z", "2023-11-14T12:00:02Z"];
    let log: String = stamps.iter().map(|at| json!({"at": at, "key": "k"}).to_string() + "\n").collect();
    let noon = 1_699_963_200 * SECOND;
    let lines = decisions(limit, &log, &[]);
    let expected = [
        json!([noon, true, 0]),
        json!([noon + 2 * SECOND, true, 0]),
        json!([noon + 2 * SECOND, false, 2 * SECOND]),
    ];
    assert_eq!(only(&lines, &["at_us", "allowed", "retry_after_us"]), expected);

    // As it stands, the first stamp counts for the second line too: nothing is earned, nothing is minted.
    let lines = decisions(limit, &log, &["--keep-order"]);
    assert_eq!(only(&lines, &["allowed"]), [json!([true]), json!([false]), json!([false])]);

    let files = Files::new();
    let config = files.write("tidegate.yaml", config(limit));
    let summary = |more: &[&str]| {
        let arguments = [&["replay", "--config", &config, "--format", "json"], more, &["-"]].concat();
        let json = tidegate(&arguments, log.as_bytes()).fine().json();
        let figures = ["admitted", "denied", "out_of_order", "left_out_of_order"];
        figures.map(|field| json[field].as_u64().unwrap())
    };
    assert_eq!(summary(&[]), [2, 1, 1, 0]);
    assert_eq!(summary(&["--keep-order"]), [1, 2, 1, 1]);
}

#[test]
fn lines_are_reordered_as_far_as_the_window_and_no_farther() {
    let limit = "algorithm: token_bucket, capacity: 1, refill: 1/s";
    let stamps = |more: &[&str], seconds: &[u64]| {
        let checks: Vec<_> = seconds.iter().map(|second| (second * SECOND, "k", 1)).collect();
        let lines = decisions(limit, &trace(&checks), more);
        lines.iter().map(|line| line["at_us"].as_u64().unwrap() / SECOND).collect::<Vec<_>>()
    };
    assert_eq!(stamps(&[], &[700, 100, 699, 700]), [100, 699, 700, 700]);
    // Ten minutes: 100 is out when 701 comes, and 99 comes too late to be put before it.
    assert_eq!(stamps(&[], &[100, 701, 99, 101]), [100, 99, 101, 701]);
    assert_eq!(stamps(&["--reorder", "5s"], &[10, 5, 16, 9, 17]), [5, 10, 9, 16, 17]);
    assert_eq!(stamps(&["--reorder-lines", "1"], &[30, 10, 20]), [10, 20, 30]);
    assert_eq!(stamps(&["--reorder-lines", "0"], &[30, 10, 20]), [30, 10, 20]);
    assert_eq!(stamps(&["--keep-order"], &[30, 10, 20]), [30, 10, 20]);
}

#[test]
fn an_old_stamp_is_charged_and_earns_nothing_however_old_it_is() {
    let limit = "algorithm: token_bucket, capacity: 2, refill: 1/s";
    let mut checks = vec![(100 * SECOND, "a", 2)];
    // A store that drops full buckets would have dropped "a" meanwhile.
    checks.extend((0..50_000).map(|second| ((1_000 + second) * SECOND, "b", 1)));
    checks.extend([(100 * SECOND, "a", 1), (SECOND, "a", 1), (101 * SECOND, "a", 1)]);
    let lines = decisions(limit, &trace(&checks), &["--keep-order"]);
    let expected = [json!([false, SECOND]), json!([false, SECOND]), json!([true, 0])];
    assert_eq!(only(&lines[lines.len() - 3..], &["allowed", "retry_after_us"]), expected);
}

const MIXED: &[u8] = b"{\"at_us\": 2000000, \"key\": \"b\", \"path\": \"/\"}
not json
{\"at_us\": 1000000, \"key\": \"a\"}

{\"at_us\": 1000000, \"key\": \"a\", \"cost\": -1}
{\"at_us\": 1000000, \"key\": \"a\", \"cost\": 0.5}
{\"at_us\": 1000000, \"key\": \"a\", \"cost\": 1000000000001}
{\"at_us\": 1000000, \"key\": \"\xff\"}
{\"at_us\": 1000000, \"key_b64\": \"/wA=\"}
{\"at_us\": 1000000, \"key\": \"a\", \"policy\": \"nope\"}
{\"at_us\": 3000000, \"key\": \"c\"}";

#[test]
fn bad_lines_are_told_counted_and_kept_in_their_place() {
    let files = Files::new();
    let out = files.path("out.jsonl");
    let ran = tidegate(&["replay", "--decisions", &out, "--format", "json", "-"], MIXED);
    let summary = ran.json();
    assert_eq!(summary["lines"], 11);
    assert_eq!(summary["bad_lines"], 7);
    assert_eq!(summary["checks"], 4);
    let told: Vec<&str> = ran.err.lines().collect();
    assert_eq!(told.len(), 7, "{told:?}");
    assert!(told[0].starts_with("standard input: line 2: not a JSON object"), "{}", told[0]);
    assert_eq!(
        told[2],
        "standard input: line 5: cost: -1 is negative (write 0 to 1000000000000), at column 41"
    );
    let decided = files.read("out.jsonl");
    let lines: Vec<Value> = decided.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = |line: &Value| match &line["line"] {
        Value::Null => line["key"].as_str().or(line["key_b64"].as_str()).unwrap().to_owned(),
        number => number.to_string(),
    };
    let places: Vec<String> = lines.iter().map(place).collect();
    assert_eq!(places, ["a", "4", "5", "6", "7", "8", "/wA=", "10", "b", "2", "c"]);
    assert!(lines[1]["error"].as_str().unwrap().contains("an empty line"));
    assert!(lines[7]["error"].as_str().unwrap().contains("no policy is named \"nope\" (there are: default)"));
}

#[test]
fn of_many_bad_lines_the_first_ten_are_told() {
    let ran = tidegate(&["replay", "-"], "?\n".repeat(1_000).as_bytes());
    assert_eq!((ran.code, ran.err.lines().count()), (0, 10));
    assert!(ran.out.contains("bad lines      1000"), "{}", ran.out);
}

#[test]
fn strict_stops_at_the_first_bad_line() {
    let files = Files::new();
    let out = files.path("out.jsonl");
    let ran = tidegate(&["replay", "--strict", "--decisions", &out, "-"], MIXED);
    assert!(ran.err.starts_with("standard input: line 2: "), "{}", ran.err);
    assert_eq!(ran.out, "");
    ran.failed(1, "stopped at the first bad line (--strict)");
    assert_eq!(files.read("out.jsonl").lines().count(), 2);
    let good = trace(&[(0, "a", 1)]);
    tidegate(&["replay", "--strict", "-"], good.as_bytes()).fine();
}

#[test]
fn two_runs_decide_alike_to_the_byte() {
    let files = Files::new();
    let policies = files.write(
        "tidegate.yaml",
        "policies: {a: {limits: [{algorithm: sliding_window_log, limit: 5, window: 1s}]}, \
                    b: {limits: [{name: x, algorithm: leaky_bucket, capacity: 4, leak: 7/s}, \
                                 {name: y, algorithm: sliding_window_counter, limit: 30, window: 10s}]}}",
    );
    // Any sequence will do that goes back and forth over a few keys.
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let lines = (0..20_000_u64).map(|line| {
        let at_us = (line * 7_000 + next(2_000_000)).saturating_sub(next(1_000_000));
        let policy = if next(2) == 0 { "a" } else { "b" };
        json!({"at_us": at_us, "key": format!("k{}", next(40)), "cost": next(4), "policy": policy})
            .to_string()
            + "\n"
    });
    let trace = files.write("trace.jsonl", lines.collect::<String>());
    for more in [&[][..], &["--keep-order"], &["--reorder", "100ms"]] {
        let run = |name: &str| {
            let out = files.path(name);
            let fixed = ["replay", "--config", &policies, "--decisions", &out, &trace];
            let ran = tidegate(&[&fixed[..], more].concat(), b"").fine();
            (ran.out, files.read(name))
        };
        let (first, second) = (run("first"), run("second"));
        assert!(first == second, "{more:?}");
        assert_eq!(first.1.lines().count(), 20_000);
    }
}

#[test]
fn the_summary_is_a_table() {
    let limit = "algorithm: token_bucket, capacity: 2, refill: 1/s";
    let files = Files::new();
    let config = files.write("tidegate.yaml", config(limit));
    let start = 1_700_000_000 * SECOND;
    let mut checks = vec![(start, "user:1", 1); 5];
    checks.extend([(start, "user:2", 3), (start + SECOND, "user:2", 2), (start, "evil\u{1b}[2J", 3)]);
    let log = files.write("access.jsonl", trace(&checks));
    let ran = tidegate(&["replay", "--config", &config, &log], b"").fine();
    let expected = "\
access.jsonl: 8 lines, 2023-11-14T22:13:20Z to 2023-11-14T22:13:21Z (1 s)

checks                               8
admitted                             3  37.5 %
denied                               5  62.5 %
  for now (denied)                   3
  for good (cost_exceeds_capacity)   2
cost asked                          13
cost admitted                        4
distinct keys                        3
states held                          2
bad lines                            0
out of order                         1
  decided where they stood           0

policy  limit   algorithm     checks  admitted  denied by it
api     limit0  token_bucket       8         3             5

most denied keys  checks  denied
user:1                 5       3   60.0 %
evil\\u{1b}[2J          1       1  100.0 %
user:2                 2       1   50.0 %
";
    assert_eq!(ran.out, expected.replace("access.jsonl", &log));
}

#[test]
fn the_summary_is_json_for_programs() {
    let files = Files::new();
    let policies = "policies: {a: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}, default: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}";
    let config = files.write("tidegate.yaml", policies);
    let log = "{\"at_us\":0,\"key\":\"k\",\"policy\":\"a\"}\n{\"at_us\":0,\"key\":\"k\"}\n{\"at_us\":9,\"key_b64\":\"/w==\",\"policy\":\"a\",\"cost\":2}\n";
    let summary =
        tidegate(&["replay", "--config", &config, "--format", "json", "-"], log.as_bytes()).fine().json();
    let policy = |name: &str, checks: u64, denied: u64, asked: u64| {
        json!({"policy": name, "checks": checks, "admitted": 1, "denied": denied, "cost_asked": asked, "cost_admitted": 1,
               "limits": [{"name": "gcra", "algorithm": "gcra", "denied": denied}]})
    };
    let expected = json!({
        "lines": 3, "bad_lines": 0, "out_of_order": 0, "left_out_of_order": 0, "first_at_us": 0, "last_at_us": 9,
        "checks": 3, "admitted": 2, "denied": 1, "denied_by_outcome": {"denied": 0, "cost_exceeds_capacity": 1},
        "cost_asked": 4, "cost_admitted": 2, "distinct_keys": 2, "states_held": 2,
        "policies": [policy("a", 2, 1, 3), policy("default", 1, 0, 1)],
        "most_denied": [{"key_b64": "/w==", "checks": 1, "denied": 1}],
    });
    assert_eq!(summary, expected);
    let all_a =
        tidegate(&["replay", "--config", &config, "--policy", "a", "--format", "json", "-"], log.as_bytes());
    assert_eq!(all_a.fine().json()["policies"][0]["denied"], 2);
}

#[test]
fn an_empty_trace_is_no_fault() {
    let ran = tidegate(&["replay", "-"], b"").fine();
    assert!(ran.out.starts_with("standard input: 0 lines\n"), "{}", ran.out);
}

#[test]
fn decisions_can_go_to_standard_output() {
    let ran = tidegate(&["replay", "--decisions", "-", "-"], trace(&[(0, "a", 1)]).as_bytes());
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1));
    assert!(ran.out.starts_with("{\"at_us\":0,\"key\":\"a\",") && ran.err.contains("admitted"), "{ran:?}");
}

#[test]
fn whoever_reads_no_further_is_not_scolded() {
    let files = Files::new();
    let log = files.write("log", trace(&vec![(0, "a", 1); 50_000]));
    let mut child = command(&["replay", "--decisions", "-", &log]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(first.starts_with('{'));
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let files = Files::new();
    let log = files.write("log", trace(&vec![(0, "a", 1); 10]));
    tidegate(&["replay", "--decisions", &files.path("no/such/out"), &log], b"").failed(1, "no/such/out: ");
    let full = "/dev/full";
    if OpenOptions::new().write(true).open(full).is_ok() {
        let said = "cannot write decisions to /dev/full: No space left on device";
        tidegate(&["replay", "--decisions", full, &log], b"").failed(1, said);
        let full = OpenOptions::new().write(true).open(full).unwrap();
        let ended = command(&["replay", &log]).stdout(Stdio::from(full)).output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&ended.stderr).contains("cannot write to standard output"));
    }
}

#[test]
fn what_is_read_is_not_overwritten_with_decisions_under_any_name() {
    let files = Files::new();
    let traced = trace(&[(0, "a", 1)]);
    let log = files.write("log", &traced);
    let config = files.write("config", config("algorithm: token_bucket, capacity: 5, refill: 1/s"));
    tidegate(&["replay", "--decisions", &log, &log], b"").failed(2, "is the trace itself");
    let roundabout = files.path("./log");
    tidegate(&["replay", "--decisions", &roundabout, &log], b"").failed(2, "is the trace itself");
    let other_name = files.path("other");
    std::fs::hard_link(&log, &other_name).unwrap();
    tidegate(&["replay", "--config", &config, "--decisions", &config, &log], b"")
        .failed(2, "is the configuration itself");
    #[cfg(unix)]
    {
        tidegate(&["replay", "--decisions", &other_name, &log], b"").failed(2, "is the trace itself");
        let mut from_stdin = command(&["replay", "--decisions", &log, "-"]);
        let output = from_stdin.stdin(std::fs::File::open(&log).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        std::os::unix::fs::symlink(&log, files.path("link")).unwrap();
        tidegate(&["replay", "--decisions", &files.path("link"), &log], b"").failed(2, "is the trace itself");
    }
    assert_eq!(files.read("log"), traced);
}

#[test]
fn wrong_usage_is_told_from_what_cannot_be_done() {
    let files = Files::new();
    let log = files.write("log", trace(&[(0, "a", 1)]));
    let wrong = files.write("wrong.yaml", config("algorithm: token_bucket, capacity: 1, refill: 1/sek"));
    tidegate(&["replay", &files.path("none")], b"").failed(1, "cannot open ");
    tidegate(&["replay", &files.path(".")], b"").failed(1, "cannot read the trace: ");
    tidegate(&["replay", "--config", &wrong, &log], b"").failed(2, "unknown unit \"sek\"");
    tidegate(&["replay", "--config", &files.path("none"), &log], b"").failed(2, "none: No such file");
    tidegate(&["replay", "--policy", "api", &log], b"").failed(2, "--policy: no policy is named \"api\"");
    tidegate(&["replay", "--reorder", "10x", &log], b"").failed(2, "unknown unit \"x\"");
    tidegate(&["replay", "--keep-order", "--reorder", "1s", &log], b"").failed(2, "cannot be used with");
    tidegate(&["replay"], b"").failed(2, "<TRACE>");
}

#[test]
fn a_compressed_trace_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.jsonl.gz");
    std::fs::write(&path, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).unwrap();
    let path = path.to_str().unwrap();
    tidegate(&["replay", path], b"").failed(1, &format!("it is compressed by gzip (zcat {path} |"));
    tidegate(&["replay", "-"], b"BZh91AY").failed(1, "it is compressed by bzip2 (bzcat FILE |");
    tidegate(&["compare", path], b"").failed(1, "it is compressed by gzip");
}
