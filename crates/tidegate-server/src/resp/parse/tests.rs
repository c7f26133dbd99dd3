#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

/// All commands in `bytes`, given whole, and what ended them.
fn all(bytes: &[u8], from: From) -> (Vec<Vec<Vec<u8>>>, Parsed) {
    in_chunks(&[bytes], from)
}

/// The same, given in chunks.
fn in_chunks(chunks: &[&[u8]], from: From) -> (Vec<Vec<Vec<u8>>>, Parsed) {
    let (mut parser, mut held, mut commands) = (Parser::default(), Vec::new(), Vec::new());
    let mut last = Parsed::Incomplete;
    for chunk in chunks {
        held.extend_from_slice(chunk);
        loop {
            last = parser.parse(&held, from);
            match last {
                Parsed::Command(taken) => {
                    commands.push(parser.args(&held).from(0).map(<[u8]>::to_vec).collect());
                    held.drain(..taken);
                }
                Parsed::Nothing(taken) => drop(held.drain(..taken)),
                Parsed::Incomplete => break,
                Parsed::Broken(_) => return (commands, last),
            }
        }
    }
    (commands, last)
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn arrays_and_lines_follow_one_another() {
    let bytes =
        b"*1\r\n$4\r\nPING\r\nping\r\n\r\n  \n*0\r\n*-1\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\necho a\nquit";
    let (commands, last) = all(bytes, From::Client);
    let echo = vec![b"ECHO".to_vec(), Vec::new()];
    assert_eq!(commands, [words("PING"), words("ping"), echo, words("echo a")]);
    assert_eq!(last, Parsed::Incomplete);
}

#[test]
fn lines_are_unquoted_as_in_redis() {
    for (line, expected) in [
        (r#"set "a b" 'c d'"#, vec![&b"set"[..], b"a b", b"c d"]),
        (r#"e "\x41\xff\xzz\n\t\"\q" '\'\n'"#, vec![b"e", b"A\xffxzz\n\t\"q", b"'\\n"]),
        (r#"e "" ''"#, vec![b"e", b"", b""]),
        (r#"pre"fix" x"#, vec![b"prefix", b"x"]),
        ("\x0be\t\x0cf ", vec![b"e", b"f"]),
        ("e \0", vec![b"e", b"\0"]),
    ] {
        let (commands, last) = all(format!("{line}\n").as_bytes(), From::Client);
        assert_eq!(
            (commands.concat(), last),
            (expected.iter().map(|word| word.to_vec()).collect(), Parsed::Incomplete)
        );
    }
}

#[test]
fn what_cannot_be_understood_is_told_in_rediss_words() {
    let long = vec![b'x'; MOST_LINE_BYTES + 1];
    for (bytes, said) in [
        (&b"*abc\r\n"[..], "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*1\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*99999999999999999999999\r\n", "invalid multibulk length"),
        (b"*1000000\r\n", "too big a command, it may have up to 1048576 bytes"),
        (b"*2\r\n$4\r\nPING\r\n:5\r\n", "expected '$', got ':'"),
        (b"*1\r\n\r", "expected '$', got '\\r'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$536870912\r\n", "too big a command, it may have up to 1048576 bytes"),
        (b"*1\r\n$4\r\nPINGS\r\n", "expected a line end behind a bulk string"),
        (b"echo \"a\n", "unbalanced quotes in request"),
        (b"echo 'a'b\n", "unbalanced quotes in request"),
        (b"echo \"a\"b\n", "unbalanced quotes in request"),
        (&long, "too big inline request"),
    ] {
        let (_, last) = all(bytes, From::Client);
        let Parsed::Broken(fault) = last else { panic!("{:?}: {last:?}", bytes.escape_ascii().to_string()) };
        assert_eq!(fault.to_string(), format!("Protocol error: {said}"));
    }
}

#[test]
fn http_is_told_from_commands() {
    for http in ["POST / HTTP/1.1\r\n", "post /\n", "Host: here\r\n", "host:here\n"] {
        assert_eq!(all(http.as_bytes(), From::Client).1, Parsed::Broken(Fault::Http), "{http}");
    }
    for other in ["POSTS\n", "hosts: \n", "post\n"] {
        assert_eq!(all(other.as_bytes(), From::Client).1, Parsed::Incomplete, "{other}");
    }
}

#[test]
fn strangers_are_held_to_small_requests() {
    let ok = b"*10\r\n$16384\r\n";
    assert_eq!(all(ok, From::Stranger).1, Parsed::Incomplete);
    assert_eq!(all(b"*11\r\n", From::Stranger).1, Parsed::Broken(Fault::StrangersArray));
    assert_eq!(all(b"*10\r\n$16385\r\n", From::Stranger).1, Parsed::Broken(Fault::StrangersWord));
    assert_eq!(all(b"*11\r\n$16385\r\n", From::Client).1, Parsed::Incomplete);
}

#[test]
fn what_is_declared_takes_no_memory() {
    let mut parser = Parser::default();
    assert_eq!(parser.parse(b"*174000\r\n$1000000\r\n", From::Client), Parsed::Broken(Fault::TooBig));
    let mut parser = Parser::default();
    assert_eq!(parser.parse(b"*174000\r\n$3\r\nDEL\r\n", From::Client), Parsed::Incomplete);
    assert!(parser.heap_bytes() < 100, "{}", parser.heap_bytes());
}

#[test]
fn a_command_as_big_as_may_be_is_taken_and_its_memory_given_back() {
    let words = (MOST_COMMAND_BYTES - 100) / LEAST_WORD_BYTES;
    let bytes = [format!("*{words}\r\n").into_bytes(), b"$0\r\n\r\n".repeat(words)].concat();
    let mut parser = Parser::default();
    assert_eq!(parser.parse(&bytes, From::Client), Parsed::Command(bytes.len()));
    assert_eq!(parser.args(&bytes).len(), words);
    parser.shrink();
    assert!(parser.heap_bytes() < 2_048, "{}", parser.heap_bytes());
}

/// Bytes that are mostly RESP.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (0..4_usize, proptest::collection::vec(any::<u8>(), 0..6)).prop_map(|(count, word)| {
            let word = [format!("${}\r\n", word.len()).into_bytes(), word, b"\r\n".to_vec()].concat();
            [format!("*{count}\r\n").into_bytes(), word.repeat(count)].concat()
        }),
        2 => "[ a\"'\\\\x4]{0,9}\r?\n".prop_map(String::into_bytes),
        1 => "[*$:]-?[0-9]{0,3}\r\n".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunks_change_nothing(bytes in bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12), stranger: bool) {
        let from = if stranger { From::Stranger } else { From::Client };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = all(&bytes, from);
        prop_assert_eq!(&in_chunks(&chunks, from), &whole);
        if !bytes.is_empty() {
            prop_assert_eq!(&in_chunks(&singly, from), &whole);
        }
    }
}
