//! `tidegate compare`, run as a program.
#![allow(clippy::unwrap_used)]

mod program;

use program::{Files, tidegate};
use serde_json::{Value, json};

/// The figures of each algorithm, in their order.
fn compared(arguments: &[&str], figure: &str) -> Vec<Value> {
    let json = tidegate(&[&["compare", "--format", "json"], arguments].concat(), b"").fine().json();
    json["algorithms"].as_array().unwrap().iter().map(|figures| figures[figure].clone()).collect()
}

const ALGORITHMS: [&str; 6] =
    ["token_bucket", "gcra", "leaky_bucket", "fixed_window", "sliding_window_log", "sliding_window_counter"];

#[test]
fn a_burst_over_a_windows_edge_gets_twice_the_limit_from_the_fixed_window_alone() {
    for (rate, limit) in [("10/s", 10), ("100/min", 100), ("1000/1h", 1_000)] {
        let most = compared(&["--scenario", "window-edge", "--rate", rate], "most_in_a_window");
        let most: Vec<u64> = most.iter().map(|most| most.as_u64().unwrap()).collect();
        assert_eq!((most[3], most[4]), (2 * limit, limit), "{rate}");
        // What was saved, and a tenth of a window's earnings, from the first check until the edge and on to the last.
        assert!((limit..=limit + limit / 5).contains(&most[0]), "{rate}: {most:?}");
        assert_eq!((most[0], most[0]), (most[1], most[2]));
        assert!((limit..=limit + limit / 10).contains(&most[5]), "{rate}: {most:?}");
    }
    assert_eq!(compared(&["--scenario", "window-edge"], "algorithm"), ALGORITHMS);
    assert_eq!(compared(&["--scenario", "window-edge"], "admitted"), [11, 11, 11, 20, 10, 10]);
}

#[test]
fn a_steady_client_at_the_rate_is_denied_nothing_but_by_the_counters_estimate() {
    let first_denied = compared(&["--scenario", "steady"], "first_denied_at_us");
    let start = 1_700_000_000_000_000_u64;
    let after: Vec<u64> = first_denied.iter().map(|at| at.as_u64().unwrap() - start).collect();
    // The rate doubles after four seconds; buckets have ten saved by then.
    assert_eq!(after, [4_950_000, 4_950_000, 4_950_000, 4_500_000, 4_050_000, 1_000_000]);
    assert_eq!(compared(&["--scenario", "steady"], "admitted"), [89, 89, 89, 80, 80, 73]);
    assert_eq!(compared(&["--scenario", "steady"], "longest_streak"), [1, 1, 1, 10, 1, 2]);
}

#[test]
fn idling_saves_up_the_burst_and_no_more() {
    let arguments = ["--scenario", "burst-after-idle", "--rate", "10/s", "--burst", "20"];
    let most = compared(&arguments, "most_in_a_window");
    // 20 at once, and in the two seconds of a window at most 20 more.
    assert!(most.iter().all(|most| (20..40).contains(&most.as_u64().unwrap())), "{most:?}");
    let delays = compared(&arguments, "longest_delay_us");
    assert_eq!(delays, [0, 0, 1_900_000, 0, 0, 0].map(Value::from));
}

#[test]
fn a_noisy_neighbour_takes_nothing_from_a_quiet_one() {
    let ran = tidegate(&["compare", "--scenario", "noisy-neighbour"], b"").fine();
    let shares = ran.out.split("\n\n").find(|part| part.starts_with("admitted to")).unwrap();
    let expected = "\
admitted to             noisy (asked 400)  quiet (asked 20)
token_bucket                           49                20
gcra                                   49                20
leaky_bucket                           49                20
fixed_window                           40                20
sliding_window_log                     40                20
sliding_window_counter                 37                20";
    assert_eq!(shares, expected);
}

#[test]
fn a_trace_is_compared_like_a_scenario() {
    let files = Files::new();
    let at = |tenth: u64, n: u64| 1_700_000_000_000_000 + tenth * 100_000 + n;
    let line = |at_us: u64| json!({"at_us": at_us, "key": "k", "policy": "any"}).to_string() + "\n";
    // Out of order and over an edge.
    let log: String = (0..10).flat_map(|n| [line(at(10, n)), line(at(9, n))]).collect();
    let log = files.write("log.jsonl", log + "bad\n");
    let ran = tidegate(&["compare", "--rate", "10/s", "--format", "json", &log], b"");
    assert!(ran.err.contains("line 21: not a JSON object") && ran.err.contains("1 bad line"), "{}", ran.err);
    let figures = ran.json();
    let admitted: Vec<&Value> =
        figures["algorithms"].as_array().unwrap().iter().map(|it| &it["admitted"]).collect();
    assert_eq!(admitted, [11, 11, 11, 20, 10, 10]);
    assert_eq!(figures["checks"], 20);
}

#[test]
fn the_picture_names_all_six_and_its_axes() {
    let files = Files::new();
    let picture = files.path("out.svg");
    tidegate(&["compare", "--scenario", "steady", "--plot", &picture], b"").fine();
    let svg = files.read("out.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for said in
        ALGORITHMS.into_iter().chain(["units", "seconds since the first check", "asked for", "admitted"])
    {
        assert!(svg.contains(&format!(">{said}<")), "{said}");
    }
}

#[test]
fn a_key_cannot_break_out_of_the_picture() {
    let files = Files::new();
    let picture = files.path("out.svg");
    let keys = ["<script>alert(1)</script>", "a&b\u{1b}", "]]>"];
    let log: String = keys.map(|key| json!({"at_us": 0, "key": key}).to_string() + "\n").concat();
    let log = files.write("<b>&log", log);
    tidegate(&["compare", "--plot", &picture, &log], b"").fine();
    let svg = files.read("out.svg");
    assert!(svg.contains("admitted to &lt;script&gt;alert(1)&lt;/script&gt;"), "{svg}");
    assert!(svg.contains("a&amp;b\\u{1b}") && !svg.contains("<b>") && !svg.contains('\u{1b}'));
}

#[test]
fn an_empty_trace_and_a_huge_limit_are_drawn_too() {
    let files = Files::new();
    let picture = files.path("out.svg");
    let empty = files.write("empty", "");
    let ran = tidegate(&["compare", "--plot", &picture, &empty], b"").fine();
    assert!(ran.out.contains("0 checks"), "{}", ran.out);
    let most = "1000000000000/s";
    for scenario in ["steady", "burst-after-idle", "window-edge", "noisy-neighbour"] {
        let ran =
            tidegate(&["compare", "--rate", most, "--scenario", scenario, "--plot", &picture], b"").fine();
        assert!(
            ran.out.contains("sliding_window_log is left out: 1000000000000 is out of range"),
            "{}",
            ran.out
        );
        tidegate(&["compare", "--rate", "1/366d", "--scenario", scenario, "--plot", &picture], b"").fine();
        tidegate(&["compare", "--rate", "1/us", "--scenario", scenario, "--plot", &picture], b"").fine();
    }
}

#[test]
fn what_makes_no_limit_or_no_picture_is_wrong_usage() {
    let files = Files::new();
    let png = files.path("out.png");
    tidegate(&["compare", "--rate", "0/s"], b"").failed(2, "--rate is nothing");
    tidegate(&["compare", "--rate", "10/sek"], b"").failed(2, "unknown unit \"sek\"");
    tidegate(&["compare", "--burst", "0"], b"").failed(2, "--burst is nothing");
    tidegate(&["compare", "--window", "150ms"], b"").failed(2, "not a whole number of units (try 100ms)");
    tidegate(&["compare", "--plot", &png], b"").failed(2, "pictures are written as SVG");
    tidegate(&["compare", "--scenario", "steady", "-"], b"").failed(2, "cannot be used with");
    tidegate(&["compare", "--plot", &files.path("no/such.svg")], b"").failed(1, "cannot write ");
    tidegate(&["compare", &files.path("none")], b"").failed(1, "cannot open ");
}
