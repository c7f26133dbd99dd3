//! Where a request's peer address is found.

use std::net::{IpAddr, SocketAddr};

use http::request::Parts;

/// The address of the connection's peer, as a request extension, for servers that no feature of this crate
/// knows: put it there when the connection is accepted.
///
/// ```
/// # use std::net::SocketAddr;
/// use tidegate_tower::PeerAddr;
/// # let peer: SocketAddr = "192.0.2.1:4711".parse().expect("an address");
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddr(peer));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// The peer's address, from whichever extension the server at hand puts it in. None of these can be set by a
/// client.
pub(crate) fn peer_of(request: &Parts) -> Option<IpAddr> {
    let known = request.extensions.get::<PeerAddr>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let known = known.or_else(|| by_axum(request));
    #[cfg(feature = "tonic")]
    let known = known.or_else(|| by_tonic(request));
    known.map(|peer| peer.ip())
}

#[cfg(feature = "axum")]
fn by_axum(request: &Parts) -> Option<SocketAddr> {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
    let told = request.extensions.get::<ConnectInfo<SocketAddr>>().map(|told| told.0);
    told.or_else(|| request.extensions.get::<MockConnectInfo<SocketAddr>>().map(|told| told.0))
}

#[cfg(feature = "tonic")]
fn by_tonic(request: &Parts) -> Option<SocketAddr> {
    request.extensions.get::<tonic::transport::server::TcpConnectInfo>()?.remote_addr()
}
