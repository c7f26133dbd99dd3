//! The seeds of the fuzz target `store_address` as an ordinary test.
#![allow(clippy::unwrap_used)]

mod laws;

#[test]
fn the_laws_hold_of_all_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/store_address");
    let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|seed| seed.unwrap().path()).collect();
    assert!(seeds.len() >= 8, "{folder}");
    for seed in seeds {
        let text = std::fs::read_to_string(seed).unwrap();
        // Whole, broken off anywhere, and with anything in the way.
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (before, after) = text.split_at(at);
            laws::hold(before);
            laws::hold(after);
            for odd in ["@", ":", "/", "?", "&", "%", "#", ",", "[", "]", " ", "\u{e9}", "***"] {
                laws::hold(&format!("{before}{odd}{after}"));
            }
        }
    }
}
