//! Whose word counts: the client behind its proxies, as a table and as properties.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::num::NonZeroU8;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_fields::client_ip::{ClientIp, Trust};

fn proxies() -> Trust {
    Trust::proxies(["10.0.0.0/8", "fd00::/8"]).unwrap()
}

fn hops(count: u8) -> Trust {
    Trust::hops(NonZeroU8::new(count).unwrap())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

/// Who is found, as text; empty for nobody.
fn found(client_ip: &ClientIp, peer: &str, lines: &[(&'static str, &str)]) -> String {
    let peer = (!peer.is_empty()).then(|| ip(peer));
    client_ip.find(peer, &headers(lines)).map_or(String::new(), |client| client.to_string())
}

#[test]
fn the_peer_alone_counts_unless_told_otherwise() {
    let lies = [
        ("x-forwarded-for", "6.6.6.6"),
        ("forwarded", "for=6.6.6.6"),
        ("x-real-ip", "6.6.6.6"),
        ("cf-connecting-ip", "6.6.6.6"),
    ];
    assert_eq!(found(&ClientIp::default(), "192.0.2.1", &lies), "192.0.2.1");
    assert_eq!(found(&ClientIp::peer(), "::ffff:192.0.2.1", &lies), "192.0.2.1");
    assert_eq!(found(&ClientIp::peer(), "", &lies), "");
}

#[test]
fn x_forwarded_for_is_walked_from_the_right_through_trusted_ranges() {
    let client_ip = ClientIp::x_forwarded_for(proxies());
    for (peer, lines, client) in [
        // Not from a proxy of ours: its word does not count.
        ("203.0.113.5", &["6.6.6.6"][..], "203.0.113.5"),
        ("", &["6.6.6.6"], ""),
        ("10.0.0.1", &["203.0.113.5"], "203.0.113.5"),
        ("10.0.0.1", &["6.6.6.6, 203.0.113.5"], "203.0.113.5"),
        ("10.0.0.1", &["6.6.6.6, 203.0.113.5, 10.0.0.2,10.0.0.3"], "203.0.113.5"),
        // All lines are one list.
        ("10.0.0.1", &["6.6.6.6", "203.0.113.5", "10.0.0.2"], "203.0.113.5"),
        ("10.0.0.1", &["203.0.113.5, 10.0.0.2", "fd00::7"], "203.0.113.5"),
        // Nothing said, or nothing that can be read: the last that is known.
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &[""], "10.0.0.1"),
        ("10.0.0.1", &["203.0.113.5, unknown"], "10.0.0.1"),
        ("10.0.0.1", &["203.0.113.5, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", &["203.0.113.5, , 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", &["203.0.113.5,"], "10.0.0.1"),
        ("10.0.0.1", &["203.0.113.5;10.0.0.2"], "10.0.0.1"),
        // Everybody is ours: the farthest of them asks.
        ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        // Forms.
        ("10.0.0.1", &["203.0.113.5:4711"], "203.0.113.5"),
        ("10.0.0.1", &["[2001:db8::7]:4711, [fd00::2]"], "2001:db8::7"),
        ("10.0.0.1", &["2001:db8::7"], "2001:db8::7"),
        ("10.0.0.1", &["fe80::1%eth0"], "fe80::1"),
        ("10.0.0.1", &["203.0.113.5, ::ffff:10.0.0.2"], "203.0.113.5"),
        ("::ffff:10.0.0.1", &["::ffff:203.0.113.5"], "203.0.113.5"),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        assert_eq!(found(&client_ip, peer, &lines), client, "{peer} {lines:?}");
    }
}

#[test]
fn a_count_of_hops_skips_all_but_one() {
    for (count, peer, line, client) in [
        (1, "192.0.2.1", "6.6.6.6, 203.0.113.5", "203.0.113.5"),
        (2, "192.0.2.1", "6.6.6.6, 203.0.113.5, 192.0.2.2", "203.0.113.5"),
        (2, "192.0.2.1", "203.0.113.5", "203.0.113.5"),
        (3, "192.0.2.1", "203.0.113.5, x, 192.0.2.2", "192.0.2.2"),
        (2, "192.0.2.1", "203.0.113.5, x", "192.0.2.1"),
        // A socket without an address, such as a Unix one.
        (1, "", "203.0.113.5", "203.0.113.5"),
        (1, "", "x", ""),
    ] {
        let client_ip = ClientIp::x_forwarded_for(hops(count));
        assert_eq!(found(&client_ip, peer, &[("x-forwarded-for", line)]), client, "{count} {line}");
    }
}

#[test]
fn forwarded_is_walked_the_same_way() {
    let client_ip = ClientIp::forwarded(proxies());
    for (peer, lines, client) in [
        ("203.0.113.5", &["for=6.6.6.6"][..], "203.0.113.5"),
        ("10.0.0.1", &["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60"),
        (
            "10.0.0.1",
            &["for=192.0.2.43, for=\"[2001:db8:cafe::17]:4711\", for=10.0.0.2"],
            "2001:db8:cafe::17",
        ),
        ("10.0.0.1", &["for=6.6.6.6", "For=192.0.2.60", "FOR=\"[fd00::2]\""], "192.0.2.60"),
        ("10.0.0.1", &["for=192.0.2.60, for=unknown"], "10.0.0.1"),
        ("10.0.0.1", &["for=192.0.2.60, for=_gazonk, for=10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", &["for=192.0.2.60, proto=https"], "10.0.0.1"),
        ("10.0.0.1", &["for=192.0.2.60, by=\"a,for=6.6.6.6\""], "10.0.0.1"),
        // What the client opened does not swallow what the proxy added.
        ("10.0.0.1", &["for=\"x, for=192.0.2.60"], "192.0.2.60"),
        ("10.0.0.1", &["for=\"x\\, for=\"[2001:db8::7]\""], "2001:db8::7"),
        ("10.0.0.1", &["for=\"x", "for=192.0.2.60"], "192.0.2.60"),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| ("forwarded", *line)).collect();
        assert_eq!(found(&client_ip, peer, &lines), client, "{peer} {lines:?}");
    }
}

#[test]
fn a_single_header_counts_from_a_trusted_peer_if_it_is_single() {
    let header = || HeaderName::from_static("cf-connecting-ip");
    let client_ip = ClientIp::single(header(), proxies());
    for (peer, lines, client) in [
        ("10.0.0.1", &["203.0.113.5"][..], "203.0.113.5"),
        ("10.0.0.1", &[" 2001:db8::7 "], "2001:db8::7"),
        // One of ours, for once as a client.
        ("10.0.0.1", &["10.0.0.9"], "10.0.0.9"),
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["203.0.113.5", "203.0.113.5"], "10.0.0.1"),
        ("10.0.0.1", &["203.0.113.5, 203.0.113.6"], "10.0.0.1"),
        ("10.0.0.1", &["x"], "10.0.0.1"),
        ("192.0.2.1", &["203.0.113.5"], "192.0.2.1"),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| ("cf-connecting-ip", *line)).collect();
        assert_eq!(found(&client_ip, peer, &lines), client, "{peer} {lines:?}");
    }
    let by_hops = ClientIp::single(header(), hops(1));
    assert_eq!(found(&by_hops, "192.0.2.1", &[("cf-connecting-ip", "203.0.113.5")]), "203.0.113.5");
}

#[test]
fn exactly_one_kind_of_header_is_read() {
    let lines = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "2.2.2.2"), ("x-real-ip", "3.3.3.3")];
    let real = ClientIp::single(HeaderName::from_static("x-real-ip"), proxies());
    for (client_ip, client, nothing) in [
        (ClientIp::forwarded(proxies()), "1.1.1.1", 0),
        (ClientIp::x_forwarded_for(proxies()), "2.2.2.2", 1),
        (real, "3.3.3.3", 2),
    ] {
        assert_eq!(found(&client_ip, "10.0.0.1", &lines), client);
        let mut others = lines.to_vec();
        others.remove(nothing);
        assert_eq!(found(&client_ip, "10.0.0.1", &others), "10.0.0.1", "never the next header");
    }
}

#[test]
fn addresses_are_grouped() {
    let group = |client_ip: &ClientIp, peer: &str| {
        client_ip.group(Some(ip(peer)), &HeaderMap::new()).unwrap().to_string()
    };
    let client_ip = ClientIp::peer();
    assert_eq!(group(&client_ip, "192.0.2.1"), "192.0.2.1");
    assert_eq!(group(&client_ip, "::ffff:192.0.2.1"), "192.0.2.1");
    assert_eq!(group(&client_ip, "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    let wider = ClientIp::peer().group_v6(48).group_v4(24);
    assert_eq!(group(&wider, "2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
    assert_eq!(group(&wider, "192.0.2.1"), "192.0.2.0/24");
    let each = ClientIp::peer().group_v6(200).group_v4(200);
    assert_eq!(group(&each, "2001:db8::1"), "2001:db8::1");
    assert_eq!(group(&each, "192.0.2.1"), "192.0.2.1");
}

#[test]
fn a_walk_has_an_end() {
    let long = ["10.0.0.2"; 1_000].join(",");
    let line = format!("203.0.113.5,{long}");
    let client_ip = ClientIp::x_forwarded_for(proxies());
    assert_eq!(found(&client_ip, "10.0.0.1", &[("x-forwarded-for", &line)]), "10.0.0.2");
}

/// Any bytes that are legal in a header, mostly such as mean something here.
fn field_bytes() -> impl Strategy<Value = Vec<u8>> {
    let meaningful = prop::sample::select(b",;:=\"\\[] \t%.0123456789abcdeffor_".to_vec());
    let any = prop_oneof![4 => meaningful, 1 => 0x20..0x7f_u8, 1 => 0x80..=0xff_u8];
    vec(any, 0..40)
}

fn value(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).unwrap()
}

/// An entry that a trusted proxy may have written.
fn written() -> impl Strategy<Value = (String, String)> {
    let entry = |xff: &str, forwarded: &str| Just((xff.to_owned(), forwarded.to_owned()));
    prop_oneof![
        entry("10.0.0.7", "for=10.0.0.7"),
        entry("[fd00::9]:80", "for=\"[fd00::9]:80\";by=\"a,\\\"b\""),
        entry("203.0.113.5", "for=203.0.113.5;proto=https"),
        entry("2001:db8::7", "for=\"[2001:db8::7]\""),
        entry("unknown", "for=unknown"),
    ]
}

/// The two kinds of list, with what each hop wrote, the leftmost being of the client itself.
fn kinds(entries: &[(String, String)]) -> [(ClientIp, &'static str, Vec<String>); 2] {
    let of = |pick: fn(&(String, String)) -> &String| entries.iter().map(pick).cloned().collect();
    [
        (ClientIp::x_forwarded_for(proxies()), "x-forwarded-for", of(|entry| &entry.0)),
        (ClientIp::forwarded(proxies()), "forwarded", of(|entry| &entry.1)),
    ]
}

fn client_of(client_ip: &ClientIp, name: &'static str, lines: &[Vec<u8>]) -> Option<IpAddr> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, value(line));
    }
    client_ip.find(Some(ip("10.0.0.1")), &headers)
}

proptest! {
    #[test]
    fn any_bytes_are_survived(lines in vec(field_bytes(), 0..4), trusts_all in any::<bool>()) {
        let trust = || if trusts_all { hops(255) } else { proxies() };
        for (client_ip, name) in [
            (ClientIp::x_forwarded_for(trust()), "x-forwarded-for"),
            (ClientIp::forwarded(trust()), "forwarded"),
            (ClientIp::single(HeaderName::from_static("x-real-ip"), trust()), "x-real-ip"),
        ] {
            prop_assert!(client_of(&client_ip, name, &lines).is_some());
        }
    }

    /// Whatever a client puts before what the proxies write, in their line or in lines of its own, it is taken
    /// for the same client: the one that a proxy saw, or could not name.
    #[test]
    fn what_is_put_on_the_left_changes_nothing(
        claims in vec(field_bytes(), 1..4),
        seen in prop_oneof![
            Just(("203.0.113.5".to_owned(), "for=203.0.113.5".to_owned())),
            Just(("[2001:db8::7]:9".to_owned(), "for=\"[2001:db8::7]:9\"".to_owned())),
            Just(("-".to_owned(), "for=_hidden".to_owned())),
        ],
        through in vec(written(), 0..4),
        same_line in any::<bool>(),
    ) {
        let entries: Vec<_> = std::iter::once(seen).chain(through).collect();
        for (client_ip, name, entries) in kinds(&entries) {
            let honest = entries.join(", ").into_bytes();
            let right = client_of(&client_ip, name, std::slice::from_ref(&honest));
            let mut lines = claims.clone();
            match same_line {
                true => {
                    let last = lines.last_mut().unwrap();
                    last.extend_from_slice(b", ");
                    last.extend_from_slice(&honest);
                }
                false => lines.push(honest),
            }
            prop_assert_eq!(client_of(&client_ip, name, &lines), right, "{}: {:?}", name, lines);
        }
    }

    /// An entry that cannot be read ends the walk, however many hops are trusted.
    #[test]
    fn nothing_is_skipped(left in vec(field_bytes(), 0..3), right in vec(written(), 0..3)) {
        for (_, name, mut entries) in kinds(&right) {
            let client_ip = match name {
                "forwarded" => ClientIp::forwarded(hops(255)),
                _ => ClientIp::x_forwarded_for(hops(255)),
            };
            entries.insert(0, "for=unreadable".to_owned());
            let stopped = client_of(&client_ip, name, &[entries.join(",").into_bytes()]);
            let mut lines = left.clone();
            lines.push(entries.join(",").into_bytes());
            prop_assert_eq!(client_of(&client_ip, name, &lines), stopped);
        }
    }
}
