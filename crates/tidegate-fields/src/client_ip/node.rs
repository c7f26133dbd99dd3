//! One hop's address as headers write it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`, blanks around it
/// ignored, a zone dropped, IPv4 in IPv6 folded. `None` for anything else.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t']);
    if text.starts_with('[') {
        return bracketed(text);
    }
    if let Ok(v4) = text.parse::<Ipv4Addr>() {
        return Some(v4.into());
    }
    match text.split_once(':') {
        Some((v4, port)) if is_port(port) && v4.contains('.') => v4.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        _ => v6(text),
    }
}

/// Reads `[2001:db8::1]`, with or without a port.
pub(super) fn bracketed(text: &str) -> Option<IpAddr> {
    let (inside, port) = text.strip_prefix('[')?.split_once(']')?;
    match port.strip_prefix(':') {
        None if port.is_empty() => v6(inside),
        Some(port) if is_port(port) => v6(inside),
        _ => None,
    }
}

fn v6(text: &str) -> Option<IpAddr> {
    let address = match text.split_once('%') {
        Some((_, "")) => return None,
        Some((address, _zone)) => address,
        None => text,
    };
    address.parse::<Ipv6Addr>().ok().map(|v6| IpAddr::V6(v6).to_canonical())
}

pub(super) fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_that_proxies_write() {
        for (text, read) in [
            ("192.0.2.1", "192.0.2.1"),
            (" \t192.0.2.1 ", "192.0.2.1"),
            ("192.0.2.1:65535", "192.0.2.1"),
            ("2001:DB8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%25eth0]:443", "fe80::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("[::ffff:c000:201]:443", "192.0.2.1"),
            ("::", "::"),
            ("1::80", "1::80"),
        ] {
            assert_eq!(address(text.as_bytes()), Some(read.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn reads_nothing_else() {
        for text in [
            "",
            " ",
            "unknown",
            "_hidden",
            "localhost",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.01",
            "0xc0000201",
            "3221225985",
            "192.0.2.1:",
            "192.0.2.1:x",
            "192.0.2.1:123456",
            "192.0.2.1/24",
            "192.0.2.1 192.0.2.2",
            "192.0.2.1%eth0",
            "[192.0.2.1]",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]443",
            "[2001:db8::1]:",
            "[2001:db8::1]:-1",
            "[]",
            "fe80::1%",
            "\"192.0.2.1\"",
            "192.0.2.1;",
            "::1::",
            "٣.1.1.1",
            "[[::1]]",
        ] {
            assert_eq!(address(text.as_bytes()), None, "{text}");
        }
        assert_eq!(address(b"192.0.2.\xff"), None);
    }
}
