//! Who the client is, by address: the peer of the connection, unless proxies that are trusted say who stands
//! behind them.
//!
//! Whoever sends a request writes its headers, so a header is believed only as far as somebody trusted added to
//! it. Exactly one kind of header is read, and only what the trusted hops themselves wrote, from the right:
//! whatever a client puts before that never counts.
//!
//! ```
//! use http::HeaderMap;
//! use tidegate_fields::client_ip::{ClientIp, Trust};
//!
//! let client_ip = ClientIp::x_forwarded_for(Trust::proxies(["10.0.0.0/8"])?);
//! let mut headers = HeaderMap::new();
//! headers.insert("x-forwarded-for", "6.6.6.6, 203.0.113.9, 10.0.0.7".parse()?);
//!
//! let behind_proxy = client_ip.find(Some("10.0.0.1".parse()?), &headers);
//! assert_eq!(behind_proxy, Some("203.0.113.9".parse()?)); // 6.6.6.6 is the client's own claim
//! let direct = client_ip.find(Some("198.51.100.4".parse()?), &headers);
//! assert_eq!(direct, Some("198.51.100.4".parse()?)); // no proxy of ours: what it says does not count
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cidr;
mod forwarded;
mod node;

use std::net::IpAddr;
use std::num::NonZeroU8;

use http::{HeaderMap, HeaderName, HeaderValue};

pub use cidr::{Cidr, CidrError};

/// A walk along the hops ends after this many. More proxies than that stand in no row, and a list as long is
/// somebody's attempt to make work.
const MOST_HOPS: usize = 64;

/// How a client's address is found, and how addresses are grouped into one client. See the
/// [module](self) for what is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIp {
    source: Source,
    v4_prefix: u8,
    v6_prefix: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Peer,
    XForwardedFor(Trust),
    Forwarded(Trust),
    Single(HeaderName, Trust),
}

/// Which hops before this one are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust(Trusted);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Trusted {
    Proxies(Vec<Cidr>),
    Hops(NonZeroU8),
}

impl Trust {
    /// Believes the proxies whose addresses lie in these ranges, such as `10.0.0.0/8` or `2001:db8::7`.
    ///
    /// # Errors
    /// The first that is no range.
    pub fn proxies<'a>(ranges: impl IntoIterator<Item = &'a str>) -> Result<Self, CidrError> {
        let ranges: Result<Vec<Cidr>, CidrError> = ranges.into_iter().map(str::parse).collect();
        Ok(Trust(Trusted::Proxies(ranges?)))
    }

    /// Believes exactly this many hops, whoever they are: 1 is the peer of the connection.
    ///
    /// Only for a server that cannot be reached around its proxies: whoever can is believed as if it were one.
    pub fn hops(count: NonZeroU8) -> Self {
        Trust(Trusted::Hops(count))
    }

    /// Whether the `nth` hop before this one, at `address`, is believed.
    fn believes(&self, nth: usize, address: Option<IpAddr>) -> bool {
        match &self.0 {
            Trusted::Hops(count) => nth <= usize::from(count.get()),
            Trusted::Proxies(ranges) => {
                address.is_some_and(|address| ranges.iter().any(|range| range.contains(address)))
            }
        }
    }
}

impl Default for ClientIp {
    fn default() -> Self {
        Self::peer()
    }
}

impl ClientIp {
    /// The peer of the connection, whatever any header says.
    pub fn peer() -> Self {
        Self::by(Source::Peer)
    }

    /// `X-Forwarded-For`: all its lines joined, walked from the right for as long as the hop that wrote an entry
    /// is trusted. The first that is not is the client. At an entry that cannot be read the walk stops, and the
    /// hop that wrote it is taken for the client.
    pub fn x_forwarded_for(trust: Trust) -> Self {
        Self::by(Source::XForwardedFor(trust))
    }

    /// `Forwarded` (RFC 7239), walked as [`x_forwarded_for`](Self::x_forwarded_for) is. `unknown` and
    /// obfuscated nodes cannot be read.
    pub fn forwarded(trust: Trust) -> Self {
        Self::by(Source::Forwarded(trust))
    }

    /// A header that holds one address and is set by the trusted peer itself, such as `X-Real-IP` or
    /// `CF-Connecting-IP`. Given twice, or holding anything else, it does not count, and the peer is the client.
    ///
    /// The proxy has to overwrite what clients send in this header; most do only if told to.
    pub fn single(header: HeaderName, trust: Trust) -> Self {
        Self::by(Source::Single(header, trust))
    }

    /// Counts IPv6 addresses that agree in their first `bits` as one client: 64 unless said otherwise, since
    /// that is the least a single customer is given. More than 128 counts as 128.
    #[must_use]
    pub fn group_v6(mut self, bits: u8) -> Self {
        self.v6_prefix = bits.min(128);
        self
    }

    /// Counts IPv4 addresses that agree in their first `bits` as one client: 32 unless said otherwise, each by
    /// itself. More than 32 counts as 32.
    #[must_use]
    pub fn group_v4(mut self, bits: u8) -> Self {
        self.v4_prefix = bits.min(32);
        self
    }

    /// The client's address; IPv4 in IPv6 is folded to IPv4. `None` only if the peer is not known and nobody
    /// trusted says more.
    pub fn find(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let peer = peer.map(|peer| peer.to_canonical());
        match &self.source {
            Source::Peer => peer,
            Source::XForwardedFor(trust) => {
                let lines = headers.get_all("x-forwarded-for").iter().rev();
                let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
                walk(trust, peer, entries.map(node::address))
            }
            Source::Forwarded(trust) => {
                let lines = headers.get_all(http::header::FORWARDED).iter().rev();
                let elements = lines.flat_map(|line| forwarded::elements_from_right(line.as_bytes()));
                walk(trust, peer, elements.map(forwarded::client))
            }
            Source::Single(header, trust) => {
                let entry = only(headers, header).and_then(|value| node::address(value.as_bytes()));
                walk(trust, peer, std::iter::once(entry))
            }
        }
    }

    /// The range of addresses that count as one client: what [`find`](Self::find) found, grouped. Its text is
    /// the key to limit by.
    pub fn group(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<Cidr> {
        let address = self.find(peer, headers)?;
        let bits = if address.is_ipv4() { self.v4_prefix } else { self.v6_prefix };
        Some(Cidr::around(address, bits))
    }

    fn by(source: Source) -> Self {
        ClientIp { source, v4_prefix: 32, v6_prefix: 64 }
    }
}

/// Goes from the peer along what each hop says of the one before it, for as long as the hop is believed and what
/// it says can be read.
fn walk(trust: &Trust, peer: Option<IpAddr>, said: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
    let mut client = peer;
    let mut said = said.take(MOST_HOPS);
    let mut nth = 1;
    while trust.believes(nth, client) {
        let Some(Some(before)) = said.next() else { break };
        client = Some(before);
        nth += 1;
    }
    client
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?;
    lines.next().is_none().then_some(first)
}
