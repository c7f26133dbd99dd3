//! The client's address as the key.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use tidegate_fields::client_ip::ClientIp;

use super::KeyExtractor;
use crate::peer::peer_of;

/// See [`peer_ip`] and [`client_ip`].
#[derive(Clone)]
pub struct AddressKey {
    client_ip: ClientIp,
    peer: Arc<PeerOf>,
}

type PeerOf = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;

/// The address of the connection's peer, IPv6 by /64: `192.0.2.1`, `2001:db8:1:2::/64`. No header counts.
///
/// axum has to be told to keep it: serve `app.into_make_service_with_connect_info::<SocketAddr>()`. tonic keeps
/// it by itself, except under TLS (see [`AddressKey::peer_by`]); other servers put a
/// [`PeerAddr`](crate::PeerAddr) into the request's extensions.
pub fn peer_ip() -> AddressKey {
    client_ip(ClientIp::peer())
}

/// The client's address behind trusted proxies; see [`ClientIp`].
///
/// ```
/// use tidegate_tower::client_ip::{ClientIp, Trust};
/// use tidegate_tower::key;
/// let trust = Trust::proxies(["10.0.0.0/8"])?;
/// let extractor = key::client_ip(ClientIp::x_forwarded_for(trust).group_v6(56));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn client_ip(client_ip: ClientIp) -> AddressKey {
    AddressKey { client_ip, peer: Arc::new(peer_of) }
}

impl AddressKey {
    /// Finds the peer's address in a place of one's own.
    #[must_use]
    pub fn peer_by(mut self, peer: impl Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        self.peer = Arc::new(peer);
        self
    }
}

impl KeyExtractor for AddressKey {
    fn key(&self, request: &mut Parts) -> Option<Vec<u8>> {
        let client = self.client_ip.group((self.peer)(request), &request.headers)?;
        Some(client.to_string().into_bytes())
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressKey").field("client_ip", &self.client_ip).finish_non_exhaustive()
    }
}
