#![allow(clippy::unwrap_used)]
use std::time::Duration;

use super::*;

fn no_policy(name: Option<&str>) -> Result<usize, BadLine> {
    match name {
        None => Ok(0),
        Some(name) => Err(BadLine::new(format!("policy: {name:?}"))),
    }
}

/// The keys of checks and the numbers of bad lines, in the order decided.
fn order(trace: Trace<&[u8], impl FnMut(Option<&str>) -> Result<usize, BadLine>>) -> Vec<String> {
    let entries = trace.map(|entry| match entry.unwrap() {
        Entry::Check(check) => String::from_utf8(check.key.into()).unwrap(),
        Entry::Bad { line, .. } => format!("bad {line}"),
    });
    entries.collect()
}

const MIXED: &[u8] = br#"{
{"at_us": 300, "key": "c"}
{"at_us": 100, "key": "a"}
{"at_us": 100, "key": "x", "policy": "none"}
{"at_us": 200, "key": "b"}
"#;

#[test]
fn bad_lines_stand_beside_the_line_before_them() {
    let mut trace = Trace::new(MIXED, Order::default(), no_policy);
    let entries: Vec<Entry> = trace.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(entries.len(), 5);
    assert_eq!(trace.counts(), Counts { lines: 5, bad: 2, out_of_order: 2, left_out_of_order: 0 });
    let complaints: Vec<String> = trace.complaints().collect();
    assert_eq!(
        complaints,
        ["line 1: not JSON: EOF while parsing an object, at column 1", "line 4: policy: \"none\""]
    );
    assert_eq!(order(Trace::new(MIXED, Order::default(), no_policy)), ["bad 1", "a", "bad 4", "b", "c"]);
    assert_eq!(order(Trace::new(MIXED, Order::Kept, no_policy)), ["bad 1", "c", "a", "bad 4", "b"]);
}

#[test]
fn strict_reads_nothing_after_the_first_bad_line() {
    let text = b"{\"at_us\": 2, \"key\": \"b\"}\n{\"at_us\": 1, \"key\": \"a\"}\nbad\n{\"at_us\": 1, \"key\": \"c\"}\n";
    let mut trace = Trace::new(&text[..], Order::default(), no_policy).strict(true);
    let entries: Vec<Entry> = trace.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!((entries.len(), trace.counts().lines), (3, 3));
}

#[test]
fn of_many_bad_lines_ten_are_told_and_all_counted() {
    let text = "?\n".repeat(25);
    let mut trace = Trace::new(text.as_bytes(), Order::default(), no_policy);
    assert_eq!(trace.by_ref().count(), 25);
    assert_eq!(trace.counts().bad, 25);
    assert_eq!(trace.complaints().count(), 10);
}

#[test]
fn what_is_due_comes_before_the_trace_is_read_on() {
    let text =
        b"{\"at_us\": 0, \"key\": \"a\"}\n{\"at_us\": 101, \"key\": \"b\"}\n{\"at_us\": 0, \"key\": \"c\"}\n";
    let window = Order::ByStamp { window: Duration::from_micros(100), lines: 10 };
    let mut trace = Trace::new(&text[..], window, no_policy);
    assert_eq!(&*trace.next().unwrap().unwrap().check().unwrap().key, b"a");
    assert_eq!(trace.counts().lines, 2);
    assert_eq!(order(trace), ["c", "b"]);
}

#[test]
fn an_input_that_fails_is_told_and_ends_the_trace() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let mut trace = Trace::new(io::BufReader::new(Broken), Order::default(), no_policy);
    assert_eq!(trace.next().unwrap().unwrap_err().to_string(), "the disk is gone");
    assert!(trace.next().is_none());
}
