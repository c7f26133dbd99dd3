//! Whom a request counts for.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};

use http::Request;
use http::request::Parts;
use tidegate_tower::client_ip::{ClientIp, Trust};
use tidegate_tower::{KeyExtractor, PeerAddr, key};

fn request(headers: &[(&str, &str)]) -> Parts {
    let builder = headers.iter().fold(Request::builder(), |it, (name, value)| it.header(*name, *value));
    builder.body(()).unwrap().into_parts().0
}

fn from(peer: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = request(headers);
    request.extensions.insert(PeerAddr(SocketAddr::new(peer.parse().unwrap(), 4711)));
    request
}

/// The key as text; empty for none.
fn of(extractor: &impl KeyExtractor, mut request: Parts) -> String {
    extractor.key(&mut request).map_or(String::new(), |key| String::from_utf8(key).unwrap())
}

#[test]
fn a_header_is_a_key_if_it_is_there_once_and_not_empty() {
    let extractor = key::header("x-api-key");
    assert_eq!(of(&extractor, request(&[("x-api-key", "k1")])), "k1");
    assert_eq!(of(&extractor, request(&[("X-API-Key", " spaced out ")])), " spaced out ");
    assert_eq!(of(&extractor, request(&[])), "");
    assert_eq!(extractor.key(&mut request(&[("x-api-key", "")])), None);
    assert_eq!(extractor.key(&mut request(&[("x-api-key", "a"), ("x-api-key", "b")])), None);
    let bytes = http::HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    let mut opaque = request(&[]);
    opaque.headers.insert("x-api-key", bytes);
    assert_eq!(extractor.key(&mut opaque), Some(vec![0xff, 0xfe]));
}

#[test]
fn the_peer_is_a_key_and_no_header_changes_it() {
    let lies = [("x-forwarded-for", "6.6.6.6"), ("forwarded", "for=6.6.6.6"), ("x-real-ip", "6.6.6.6")];
    assert_eq!(of(&key::peer_ip(), from("192.0.2.1", &lies)), "192.0.2.1");
    assert_eq!(of(&key::peer_ip(), from("::ffff:192.0.2.1", &[])), "192.0.2.1");
    assert_eq!(of(&key::peer_ip(), from("2001:db8:1:2:3::4", &[])), "2001:db8:1:2::/64");
    assert_eq!(of(&key::peer_ip(), request(&lies)), "", "no peer, no key");
}

#[test]
fn a_client_behind_trusted_proxies_is_a_key() {
    let behind = || ClientIp::x_forwarded_for(Trust::proxies(["10.0.0.0/8"]).unwrap());
    let list = [("x-forwarded-for", "6.6.6.6, 2001:db8:1:2:3::4"), ("x-forwarded-for", "10.0.0.2")];
    assert_eq!(of(&key::client_ip(behind()), from("10.0.0.1", &list)), "2001:db8:1:2::/64");
    assert_eq!(of(&key::client_ip(behind().group_v6(48)), from("10.0.0.1", &list)), "2001:db8:1::/48");
    assert_eq!(of(&key::client_ip(behind()), from("192.0.2.1", &list)), "192.0.2.1");
}

#[test]
fn the_peer_may_be_known_elsewhere() {
    #[derive(Clone)]
    struct Tls(IpAddr);
    let extractor = key::peer_ip().peer_by(|request| request.extensions.get::<Tls>().map(|tls| tls.0));
    let mut known = request(&[]);
    known.extensions.insert(Tls("192.0.2.9".parse().unwrap()));
    assert_eq!(of(&extractor, known), "192.0.2.9");
    assert_eq!(of(&extractor, from("192.0.2.1", &[])), "");
}

#[test]
fn axum_and_tonic_tell_the_peer() {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
    use tonic::transport::server::TcpConnectInfo;
    let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 1);
    let mut by_axum = request(&[]);
    by_axum.extensions.insert(MockConnectInfo(address("192.0.2.3")));
    assert_eq!(of(&key::peer_ip(), by_axum.clone()), "192.0.2.3");
    by_axum.extensions.insert(ConnectInfo(address("192.0.2.2")));
    assert_eq!(of(&key::peer_ip(), by_axum), "192.0.2.2");
    let mut by_tonic = request(&[]);
    by_tonic.extensions.insert(TcpConnectInfo { local_addr: None, remote_addr: Some(address("192.0.2.4")) });
    assert_eq!(of(&key::peer_ip(), by_tonic), "192.0.2.4");
}

#[test]
fn an_extension_a_closure_and_a_constant_are_keys() {
    #[derive(Clone)]
    struct User(u64);
    let user = key::extension(|user: &User| (user.0 > 0).then(|| user.0.to_string()));
    let mut known = request(&[]);
    known.extensions.insert(User(42));
    assert_eq!(of(&user, known.clone()), "42");
    known.extensions.insert(User(0));
    assert_eq!(of(&user, known), "");
    assert_eq!(of(&user, request(&[])), "");

    let method = |request: &Parts| Some(request.method.to_string());
    assert_eq!(of(&method, request(&[])), "GET");
    assert_eq!(of(&key::constant("all"), request(&[])), "all");
}

#[test]
fn joined_parts_never_meet() {
    let extractor = key::joined().part(key::header("a")).part(key::header("b"));
    let of = |a: &str, b: &str| of(&extractor, request(&[("a", a), ("b", b)]));
    assert_eq!(of("acme", "1.2.3.4"), "4:acme7:1.2.3.4");
    let parts = ["x", ":", "1:x", "x1:", "1:x1:x", "11", "1", "x1:x"];
    let mut keys: Vec<String> = parts.iter().flat_map(|a| parts.iter().map(|b| of(a, b))).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), parts.len() * parts.len());
    assert_eq!(extractor.key(&mut request(&[("a", "x")])), None, "one part is missing");
}
