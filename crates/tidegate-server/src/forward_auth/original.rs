//! The request that a proxy asks about, from whatever words the proxy tells it in.

use std::borrow::Cow;
use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, HeaderName, header};

use super::Peer;
use super::path::{Target, readings};
use crate::config::{Match, TrustedProxies};
use crate::http::decode::shown;
use crate::http::problem::Problem;

const URI_HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-original-uri"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-envoy-original-path"),
];
const METHOD_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-method"), HeaderName::from_static("x-original-method")];
const HOST_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-host"), HeaderName::from_static("x-original-host")];

/// The request that a proxy asks about. What the proxy did not tell is `None`, and asking for it a problem: a
/// rule that cannot be judged must not let everything through.
#[derive(Debug)]
pub(super) struct Original<'r> {
    method: Option<&'r [u8]>,
    target: Option<Target<'r>>,
    host: Option<Cow<'r, [u8]>>,
    headers: &'r HeaderMap,
    client: Option<String>,
}

/// The path and query that follow the rule's name, for proxies that put what they ask about behind it.
pub(super) fn own_target(request: &Parts, path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let query = request.uri.query().map_or_else(String::new, |query| format!("?{query}"));
    Some(format!("{path}{query}"))
}

impl<'r> Original<'r> {
    /// Reads what the proxy tells of the original request: in headers, or, given `own`, by asking with the
    /// original's own method, path and host.
    ///
    /// # Errors
    /// Headers of a proxy that is not trusted, and headers that contradict each other.
    pub fn read(request: &'r Parts, own: Option<&'r str>, proxies: &TrustedProxies) -> Result<Self, Problem> {
        let peer = request.extensions.get::<Peer>().map(|peer| peer.0);
        let headers = &request.headers;
        refuse_strangers(headers, peer, proxies)?;
        let own_uri = own.map(str::as_bytes);
        let own_method = own.map(|_| request.method.as_str().as_bytes());
        let own_host = own
            .and_then(|_| request.uri.host().map(str::as_bytes))
            .or_else(|| own.and_then(|_| headers.get(header::HOST)).map(|host| host.as_bytes()));
        let method = agreed(headers, &METHOD_HEADERS)?;
        let host = agreed(headers, &HOST_HEADERS)?;
        let uri = agreed(headers, &URI_HEADERS)?;
        if let (Some(own), Some(told)) = (own_uri, uri)
            && own != told
        {
            return Err(contradiction("the path asked at and the headers"));
        }
        Ok(Original {
            method: method.or(own_method),
            target: uri.or(own_uri).map(Target::of),
            host: host.or(own_host).map(bare_host),
            headers,
            client: proxies.client_ip.group(peer, headers).map(|client| client.to_string()),
        })
    }

    /// Whether the request is one of those meant.
    ///
    /// # Errors
    /// What is compared with is not told.
    pub fn fits(&self, matches: &Match) -> Result<bool, Problem> {
        let Match { methods, paths, hosts, headers } = matches;
        if !methods.is_empty() {
            let method = self.method()?;
            if !methods.iter().any(|it| it.as_str().as_bytes() == method) {
                return Ok(false);
            }
        }
        if !paths.is_empty() {
            let readings = readings(self.target()?.path);
            if !readings.iter().any(|path| paths.iter().any(|it| it.fits(path))) {
                return Ok(false);
            }
        }
        if !hosts.is_empty() {
            let host = self.host()?;
            if !hosts.iter().any(|it| it.fits(host)) {
                return Ok(false);
            }
        }
        Ok(headers.iter().all(|(name, patterns)| {
            let mut lines = self.headers.get_all(name).iter();
            lines.any(|line| patterns.iter().any(|it| it.fits(line.as_bytes())))
        }))
    }

    /// The method.
    pub fn method(&self) -> Result<&'r [u8], Problem> {
        self.method.ok_or_else(|| untold("the method", "X-Forwarded-Method or X-Original-Method"))
    }

    /// The path and query.
    pub fn target(&self) -> Result<&Target<'r>, Problem> {
        self.target.as_ref().ok_or_else(|| untold("the URI", "X-Forwarded-Uri or X-Original-URI"))
    }

    /// The host in lower case, without its port.
    pub fn host(&self) -> Result<&[u8], Problem> {
        self.host.as_deref().ok_or_else(|| untold("the host", "X-Forwarded-Host or X-Original-Host"))
    }

    /// The client's address, or the range of them that counts as one client.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// All lines of a header.
    pub fn lines(&self, name: &HeaderName) -> impl Iterator<Item = &'r [u8]> + use<'r> {
        self.headers.get_all(name.clone()).iter().map(|value| value.as_bytes())
    }

    /// A header that is a whole number; as much as fits if it is more.
    pub fn number(&self, name: &HeaderName) -> Option<u64> {
        let mut lines = self.lines(name);
        let line = lines.next().filter(|line| !line.is_empty())?;
        if lines.next().is_some() || !line.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // Digits only: what does not fit is too large.
        Some(std::str::from_utf8(line).ok()?.parse().unwrap_or(u64::MAX))
    }
}

/// Refuses what somebody says of another's request who is not trusted to: passed over, it would let through
/// whatever the rule is for.
fn refuse_strangers(
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    proxies: &TrustedProxies,
) -> Result<(), Problem> {
    if proxies.believe(peer) {
        return Ok(());
    }
    let mut telling = URI_HEADERS.into_iter().chain(METHOD_HEADERS).chain(HOST_HEADERS);
    match telling.find(|name| headers.contains_key(name)) {
        None => Ok(()),
        Some(name) => {
            let peer = peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_canonical().to_string());
            let detail =
                format!("told by {peer}, which is not trusted (add it to trusted_proxies.addresses)");
            tracing::debug!("{name}: {detail}");
            Err(Problem::of_field(name.as_str(), detail))
        }
    }
}

/// The one value that all of these headers tell which are there. A client may send one that its proxy does not
/// set: then they contradict each other.
fn agreed<'r>(headers: &'r HeaderMap, names: &[HeaderName]) -> Result<Option<&'r [u8]>, Problem> {
    let mut agreed = None;
    for name in names {
        for line in headers.get_all(name) {
            let line = line.as_bytes();
            if agreed.is_some_and(|other| other != line) {
                return Err(contradiction(&format!("{name} and its like")));
            }
            agreed = Some(line);
        }
    }
    Ok(agreed.filter(|value| !value.is_empty()))
}

fn contradiction(who: &str) -> Problem {
    let who = shown(who);
    let detail = "tell different things (let the proxy set one and remove the others from what clients send)";
    Problem::new(crate::http::problem::ProblemKind::InvalidRequest, format!("{who} {detail}"))
}

fn untold(what: &str, headers: &str) -> Problem {
    let detail = format!(
        "the rule needs {what} of the original request, which is not told (let the proxy set {headers})"
    );
    Problem::new(crate::http::problem::ProblemKind::InvalidRequest, detail)
}

/// A host without its port, in lower case; of several, that of the last proxy.
fn bare_host(host: &[u8]) -> Cow<'_, [u8]> {
    let host = host.rsplit(|byte| *byte == b',').next().unwrap_or(host).trim_ascii();
    let end = match host.first() {
        Some(b'[') => host.iter().position(|byte| *byte == b']').map_or(host.len(), |at| at + 1),
        _ => host.iter().position(|byte| *byte == b':').unwrap_or(host.len()),
    };
    let host = &host[..end];
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) { host.to_ascii_lowercase().into() } else { host.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_bare() {
        for (told, bare) in [
            ("Api.Example.com:8443", "api.example.com"),
            ("api.example.com.", "api.example.com"),
            ("a.example, b.example:80", "b.example"),
            ("[2001:DB8::1]:443", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("", ""),
        ] {
            assert_eq!(&*bare_host(told.as_bytes()), bare.as_bytes(), "{told}");
        }
    }
}
