//! Hostile and broken files: refused in bounded time and memory, never a panic.

use proptest::prelude::*;

use super::super::*;

fn refused(text: &str) -> String {
    Config::parse(text, "t.yaml").expect_err("a broken file was taken").to_string()
}

#[test]
fn what_is_no_tree_is_one_clear_error() {
    assert_eq!(
        refused(""),
        "t.yaml:1: the file is empty (give at least one policy; to run the built-in one give no file)"
    );
    assert!(refused("# nothing\n---\n").contains("the file is empty"));
    assert_eq!(
        refused("policies: [\n"),
        "t.yaml:1: not valid YAML: unclosed bracket '[' (mend it here or just above)"
    );
    assert_eq!(refused("a: 1\n---\nb: 2"), "t.yaml:3: more than one document (remove what follows the ---)");
    assert!(refused("policies: {a: *b}").contains("t.yaml:1: not valid YAML: reference to unknown value"));
    assert!(refused("policies: &a [*a]").contains("t.yaml:1: not valid YAML: Recursive reference"));
    assert!(refused("policies: !mine {}").contains("t.yaml:1: not valid YAML"));
    assert!(refused("[1]: 2").contains("t.yaml:1: not valid YAML"));
}

#[test]
fn only_utf8_is_read() {
    let errors = parse(b"policies:\n  a\xff: {}\n").unwrap_err();
    assert_eq!(errors.to_string(), "-:2: not UTF-8 (save the file as UTF-8)");
    let utf16: Vec<u8> = "policies: {}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(parse(&[&[0xff, 0xfe], &utf16[..]].concat()).unwrap_err().to_string().contains("not UTF-8"));
    let with_mark = "\u{feff}policies: {a: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}";
    assert!(parse(with_mark.as_bytes()).is_ok());
}

#[test]
fn size_depth_and_aliases_are_bounded() {
    let comment = format!("#{}\npolicies: {{}}", "x".repeat(MAX_FILE_BYTES));
    assert!(refused(&comment).contains("t.yaml:1: larger than 4 MiB"));
    assert!(refused(&"[".repeat(100_000)).starts_with("t.yaml:1: "));
    assert!(refused(&format!("a: {}{}", "[".repeat(40), "]".repeat(40))).contains("nested up to 32 deep"));
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{},", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    let told = refused(&bomb);
    assert!(told.contains("a file has up to 1000000 values"), "{told}");
    let mut merges = "a0: &a0 {x: 1}\n".to_owned();
    for level in 1..60 {
        let below = format!("*a{},", level - 1).repeat(10);
        merges += &format!("a{level}: &a{level} {{<<: [{below}]}}\n");
    }
    assert!(refused(&merges).starts_with("t.yaml:"));
}

#[test]
fn many_errors_are_counted_and_the_first_thousand_kept() {
    let text: String = (0..1_500).map(|index| format!("field{index}: 1\n")).collect();
    let errors = Config::parse(&text, "t.yaml").unwrap_err();
    assert_eq!((errors.errors().len(), errors.count()), (1_000, 1_501));
    assert!(errors.to_string().ends_with("t.yaml: and 501 more"));
}

/// Each of these takes seconds to hours if something is compared with everything.
#[test]
fn many_of_anything_are_read_in_one_go() {
    let limits = |count: usize, overrides: &str| {
        let limits = "{algorithm: gcra, rate: 1/s, burst: 1},".repeat(count);
        format!("policies: {{p: {{limits: [{limits}], overrides: {{{overrides}}}}}}}")
    };
    let unknown: String = (0..10_000).map(|n| format!("k{n}: {{x: {{}}}},")).collect();
    assert!(refused(&limits(10_000, &unknown)).contains("this has 10000"));
    assert!(refused(&limits(1, &unknown)).contains("no limit of this name"));
    let fields: String = (0..20_000).map(|n| format!("f{n}: 1,")).collect();
    assert!(refused(&format!("policies: {{p: {{limits: [{{{fields}}}]}}}}")).contains("unknown field"));
    let distinct: String = (0..10_000).map(|n| format!("k{n}: {{gcra: {{burst: {n}}}}},")).collect();
    let config = Config::parse(&limits(1, &distinct), "t.yaml").unwrap();
    assert_eq!(config.policies().get("p").unwrap().plan_for(b"k9999").limits()[0].capacity().get(), 9_999);
    assert_eq!(warnings(&config).len(), 2);
}

#[test]
fn long_values_are_shown_short() {
    let long = "x".repeat(100_000);
    for text in [
        format!("store: {long}"),
        format!(
            "policies: {{p: {{limits: [{{algorithm: gcra, rate: 1/{long}, burst: 1{long}, {long}: 1}}]}}}}"
        ),
        format!(
            "policies: {{p: {{limits: [{{algorithm: gcra, rate: {long}/s, burst: 0.{}1}}]}}}}",
            "0".repeat(99_999)
        ),
    ] {
        for error in Config::parse(&text, "t.yaml").unwrap_err().errors() {
            assert!(error.to_string().len() < 500, "{error}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_pieces_of_files_are_read_or_refused(pieces in prop::collection::vec(piece(), 0..40)) {
        if let Err(errors) = Config::parse(&pieces.concat(), "t.yaml") {
            prop_assert!(!errors.errors().is_empty());
            for error in errors.errors() {
                prop_assert!(error.place().line >= 1 && !error.rule().is_empty() && !error.mend().is_empty());
            }
        }
    }

    #[test]
    fn a_right_file_with_one_piece_replaced_is_read_or_refused(
        place in 0..RIGHT.len(),
        length in 0_usize..8,
        piece in piece(),
    ) {
        let end = (place + length).min(RIGHT.len());
        let text = [&RIGHT[..place], &piece, &RIGHT[end..]].concat();
        if let Ok(config) = Config::parse(&text, "t.yaml") {
            prop_assert!(!config.policies().is_empty());
            prop_assert!(warnings(&config).iter().all(|warning| !warning.text().is_empty()));
        }
    }
}

const RIGHT: &str = r#"store: memory
memory: {max_keys: 10, on_full: shed}
headers: {family: both}
policies:
  api:
    limits:
      - &b {name: burst, algorithm: token_bucket, capacity: 100, refill: 10/s}
      - {algorithm: sliding_window_log, limit: 10, window: 1d, debt: 3}
    overrides:
      "user:*": {burst: {capacity: 1000}}
"#;

fn piece() -> impl Strategy<Value = String> {
    let words = [
        "policies:",
        "limits:",
        "overrides:",
        "api:",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        "algorithm: token_bucket",
        "capacity: 100",
        "refill: 10/s",
        "limit: 5",
        "window: 1d",
        "&a ",
        "*a",
        "<<: ",
        "\"",
        "'",
        "|",
        ">",
        "? ",
        "!!int ",
        "---",
        "#",
        "\t",
        "-1",
        "1.5",
        "1e400",
        ".nan",
        "~",
        "\u{0}",
        "\u{85}",
        "\u{2028}",
        "%YAML 1.1\n",
    ];
    prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,6}"]
}
