//! What holds of a client's address whatever the headers are: tried on seeds by tests, on anything by fuzz/.

use std::net::IpAddr;
use std::num::NonZeroU8;

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_fields::client_ip::{Cidr, ClientIp, Trust};

const PROXIES: [&str; 2] = ["10.0.0.0/8", "fd00::/8"];
const TRUSTED: &str = "10.0.0.1";
const STRANGER: &str = "203.0.113.5";
const FORGED: &str = "6.6.6.6";
const HEADERS: [&str; 3] = ["x-forwarded-for", "forwarded", "x-real-ip"];

/// Panics unless all holds of headers with these lines.
pub fn hold(bytes: &[u8]) {
    let values = bytes.split(|byte| *byte == b'\n').map(HeaderValue::from_bytes);
    let lines: Vec<HeaderValue> = values.filter_map(Result::ok).take(100).collect();
    for header in HEADERS {
        whose_word_counts(header, &lines);
        what_a_client_writes_first_changes_nothing(header, &lines);
    }
    lines_are_one_list(&lines);
}

/// Nobody's word counts from a stranger, and a peer alone is itself.
fn whose_word_counts(header: &'static str, lines: &[HeaderValue]) {
    let told = headers(header, lines);
    let stranger = Some(address(STRANGER));
    assert_eq!(ClientIp::peer().find(stranger, &told), stranger);
    assert_eq!(reader(header, proxies()).find(stranger, &told), stranger, "{header}: {lines:?}");
    assert_eq!(reader(header, proxies()).find(None, &told), None, "{header}: {lines:?}");
    for trust in [proxies(), Trust::hops(NonZeroU8::MIN)] {
        let reader = reader(header, trust);
        let found = reader.find(Some(address(TRUSTED)), &told).expect("the peer is known");
        assert_eq!(found, found.to_canonical());
        let group = reader.group(Some(address(TRUSTED)), &told).expect("the peer is known");
        assert!(group.contains(found), "{found} is not in {group}");
        assert_eq!(group.to_string().parse::<Cidr>().as_ref(), Ok(&group));
    }
}

/// The walk from the right ended at a client: what stands further left is the client's own.
fn what_a_client_writes_first_changes_nothing(header: &'static str, lines: &[HeaderValue]) {
    let reader = reader(header, proxies());
    let found = reader.find(Some(address(TRUSTED)), &headers(header, lines));
    let trusted: Vec<Cidr> = PROXIES.iter().filter_map(|range| range.parse().ok()).collect();
    if header == "x-real-ip" || found.is_none_or(|it| trusted.iter().any(|range| range.contains(it))) {
        return;
    }
    let claim = if header == "forwarded" { format!("for=\"[::1], for={FORGED}") } else { FORGED.to_owned() };
    let mut forged = vec![HeaderValue::from_str(&claim).expect("visible")];
    forged.extend_from_slice(lines);
    assert_eq!(reader.find(Some(address(TRUSTED)), &headers(header, &forged)), found, "{forged:?}");
    if let [first, rest @ ..] = lines {
        let joined = [claim.as_bytes(), b",", first.as_bytes()].concat();
        let mut forged = vec![HeaderValue::from_bytes(&joined).expect("both are")];
        forged.extend_from_slice(rest);
        assert_eq!(reader.find(Some(address(TRUSTED)), &headers(header, &forged)), found, "{forged:?}");
    }
}

/// Lines of a list are one list.
fn lines_are_one_list(lines: &[HeaderValue]) {
    let joined = lines.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
    let Ok(joined) = HeaderValue::from_bytes(&joined) else { return };
    for trust in [proxies(), Trust::hops(NonZeroU8::MAX)] {
        let (reader, peer) = (reader(HEADERS[0], trust), Some(address(TRUSTED)));
        let (apart, together) =
            (headers(HEADERS[0], lines), headers(HEADERS[0], std::slice::from_ref(&joined)));
        assert_eq!(reader.find(peer, &apart), reader.find(peer, &together), "{lines:?}");
    }
}

fn reader(header: &'static str, trust: Trust) -> ClientIp {
    match header {
        "x-forwarded-for" => ClientIp::x_forwarded_for(trust),
        "forwarded" => ClientIp::forwarded(trust),
        _ => ClientIp::single(HeaderName::from_static(header), trust),
    }
}

fn proxies() -> Trust {
    Trust::proxies(PROXIES).expect("ranges")
}

fn headers(name: &'static str, lines: &[HeaderValue]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, line.clone());
    }
    headers
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}
