//! What Redis clients send, any bytes: never a panic, and the same commands however the bytes arrive.
//!
//! The first byte says how long the pieces are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_server::resp::parse::{From, MOST_COMMAND_BYTES, Parsed, Parser};

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, sent)) = bytes.split_first() else { return };
    for from in [From::Client, From::Stranger] {
        let whole = read(sent.chunks(sent.len().max(1)), from);
        let pieces = read(sent.chunks(usize::from(size).max(1)), from);
        assert_eq!(whole, pieces, "{from:?}, in pieces of {size}");
    }
});

/// The commands in what arrives, and what came after the last one.
fn read<'a>(arriving: impl Iterator<Item = &'a [u8]>, from: From) -> (Vec<Vec<Vec<u8>>>, Parsed) {
    let (mut parser, mut held, mut commands) = (Parser::default(), Vec::new(), Vec::new());
    let mut arrived = 0;
    for piece in arriving {
        arrived += piece.len();
        held.extend_from_slice(piece);
        loop {
            match parser.parse(&held, from) {
                Parsed::Command(taken) => {
                    assert!((1..=held.len().min(MOST_COMMAND_BYTES)).contains(&taken), "took {taken}");
                    commands.push(parser.args(&held).from(0).map(<[u8]>::to_vec).collect());
                    held.drain(..taken);
                }
                Parsed::Nothing(taken) => {
                    assert!((1..=held.len()).contains(&taken), "took {taken} for nothing");
                    held.drain(..taken);
                }
                Parsed::Incomplete => break,
                broken @ Parsed::Broken(_) => return (commands, broken),
            }
        }
        // What is kept is bounded by what has arrived, not by what the client declares.
        assert!(parser.heap_bytes() <= 16 * arrived + 1024, "{} bytes for {arrived}", parser.heap_bytes());
    }
    (commands, Parsed::Incomplete)
}
