//! The seeds of the fuzz target `client_ip`, and some that are wrong, as ordinary tests.
#![allow(clippy::unwrap_used)]

mod laws;

#[test]
fn the_laws_hold_of_all_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/client_ip");
    let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|seed| seed.unwrap().path()).collect();
    assert!(seeds.len() >= 5, "{folder}");
    for seed in seeds {
        let bytes = std::fs::read(seed).unwrap();
        // Whole, and broken off anywhere.
        (0..=bytes.len()).for_each(|end| laws::hold(&bytes[..end]));
        (0..bytes.len()).for_each(|start| laws::hold(&bytes[start..]));
    }
}

#[test]
fn the_laws_hold_of_what_is_wrong() {
    for text in [
        "",
        "\n",
        ",",
        ", ,\n,",
        "\"",
        "for=\"",
        "for=\"\\",
        "for=\"\\\"\n\"",
        "[",
        "[::1",
        "::1]:",
        "%",
        "\t",
    ] {
        laws::hold(text.as_bytes());
        laws::hold(format!("192.0.2.1\n{text}").as_bytes());
        laws::hold(format!("{text}, for=192.0.2.1").as_bytes());
    }
    laws::hold(&[0xff, b',', 0x80]);
    laws::hold("10.0.0.2, ".repeat(5_000).as_bytes());
    laws::hold("for=10.0.0.2;".repeat(5_000).as_bytes());
}
