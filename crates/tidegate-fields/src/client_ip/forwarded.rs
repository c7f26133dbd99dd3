//! `Forwarded` (RFC 7239), read from the right.
//!
//! A client may send anything in this header, an opened quote too; the trusted hop's own element comes after it.
//! So elements are cut off from the right: what stands further left is never looked at to find their bounds.

use std::net::{IpAddr, Ipv4Addr};

use super::node;

/// The elements of one line, the last first, blanks and all.
pub(super) fn elements_from_right(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let Some(comma) = last_comma_outside_quotes(line) else { return rest.take() };
        rest = Some(&line[..comma]);
        Some(&line[comma + 1..])
    })
}

fn last_comma_outside_quotes(line: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            // In a quoted string a backslash takes the meaning from a quote, unless one is taken from it.
            b'"' if quoted && backslashes_before(line, at) % 2 == 1 => {}
            b'"' => quoted = !quoted,
            b',' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

fn backslashes_before(line: &[u8], at: usize) -> usize {
    line[..at].iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// The address in an element's `for`. `None` if there is none, it is given twice, is `unknown` or obfuscated, or
/// the element is not well formed.
pub(super) fn client(element: &[u8]) -> Option<IpAddr> {
    let mut rest = std::str::from_utf8(element).ok()?;
    let mut client = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if let Some(after) = rest.strip_prefix(';') {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return client?;
        }
        let (name, value, after) = pair(rest)?;
        if name.eq_ignore_ascii_case("for") && client.replace(node_address(&value)).is_some() {
            return None;
        }
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(';') {
            return None;
        }
    }
}

/// Reads `name=value`; the rest follows.
fn pair(text: &str) -> Option<(&str, String, &str)> {
    let (name, text) = token(text)?;
    let text = text.strip_prefix('=')?;
    match text.strip_prefix('"') {
        Some(quoted) => unquoted(quoted).map(|(value, rest)| (name, value, rest)),
        None => token(text).map(|(value, rest)| (name, value.to_owned(), rest)),
    }
}

fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Reads a quoted string after its opening quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(characters.next()?.1),
            (_, character) => value.push(character),
        }
    }
}

/// Reads a node: IPv6 in brackets, IPv4 bare, either with a port, which may be obfuscated.
fn node_address(node: &str) -> Option<IpAddr> {
    let end = match node.starts_with('[') {
        true => node.find(']')? + 1,
        false => node.find(':').unwrap_or(node.len()),
    };
    let (address, port) = node.split_at(end);
    if !port.is_empty() && !is_node_port(port.strip_prefix(':')?) {
        return None;
    }
    match address.starts_with('[') {
        true => node::bracketed(address),
        false => address.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

fn is_node_port(text: &str) -> bool {
    let hidden = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    node::is_port(text) || text.strip_prefix('_').is_some_and(|rest| !rest.is_empty() && hidden(rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_client_of_an_element() {
        for (element, read) in [
            ("for=192.0.2.60", "192.0.2.60"),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("proto=https; FOR=192.0.2.60 ;by=_x", "192.0.2.60"),
            (" For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=\"[2001:db8:cafe::17]\"", "2001:db8:cafe::17"),
            ("for=\"192.0.2.60:80\"", "192.0.2.60"),
            ("for=\"192.0.2.60:_p1\"", "192.0.2.60"),
            ("for=\"[2001:db8::1]:_p1\"", "2001:db8::1"),
            ("for=\"[::ffff:192.0.2.60]\"", "192.0.2.60"),
            ("for=\"\\1\\92.0.2.60\"", "192.0.2.60"),
            (";;for=192.0.2.60;", "192.0.2.60"),
            ("by=\"a;for=6.6.6.6,\\\"\";for=192.0.2.60", "192.0.2.60"),
        ] {
            assert_eq!(client(element.as_bytes()), Some(read.parse().unwrap()), "{element}");
        }
    }

    #[test]
    fn what_is_hidden_or_malformed_cannot_be_read() {
        for element in [
            "",
            " ",
            ";",
            "for",
            "for=",
            "=192.0.2.60",
            "for=unknown",
            "for=\"unknown:80\"",
            "for=_hidden",
            "for=\"_SEVKISEK\"",
            "proto=https",
            "for=192.0.2.60;for=192.0.2.61",
            "for=_a;for=192.0.2.61",
            "for=2001:db8::1",
            "for=\"2001:db8::1\"",
            "for=[2001:db8::1]",
            "for=192.0.2.60:80",
            "for = 192.0.2.60",
            "for=\"192.0.2.60",
            "for=192.0.2.60\"",
            "for=\"192.0.2.60\"x",
            "for=192.0.2.60 by=x",
            "for=\"192.0.2.60\\",
            "for=\"192.0.2.60:\"",
            "for=\"192.0.2.60:_\"",
            "for=\"[2001:db8::1]:_a:_b\"",
            "for=\"[2001:db8::1]:80:_b\"",
            "for=\"192.0.2.60:80:_b\"",
            "for=\"192.0.2.60:80:80\"",
            "for=\"[2001:db8::1\"",
            "for=é",
        ] {
            assert_eq!(client(element.as_bytes()), None, "{element}");
        }
        assert_eq!(client(b"for=192.0.2.60\xff"), None);
    }

    #[test]
    fn elements_are_cut_off_from_the_right() {
        let cut = |line: &'static str| -> Vec<&str> {
            elements_from_right(line.as_bytes()).map(|it| std::str::from_utf8(it).unwrap()).collect()
        };
        assert_eq!(cut("for=a, for=b"), [" for=b", "for=a"]);
        assert_eq!(cut("for=a,for=\"b,c\""), ["for=\"b,c\"", "for=a"]);
        assert_eq!(cut("for=a,for=\"b\\\",c\""), ["for=\"b\\\",c\"", "for=a"]);
        assert_eq!(cut("for=a,for=\"b\\\\\",for=c"), ["for=c", "for=\"b\\\\\"", "for=a"]);
        // An opened quote further left changes nothing for what follows it.
        assert_eq!(cut("for=\", for=b")[0], " for=b");
        assert_eq!(cut("for=\"\\, for=\"[::1]\"")[0], " for=\"[::1]\"");
        assert_eq!(cut(""), [""]);
        assert_eq!(cut(","), ["", ""]);
    }
}
