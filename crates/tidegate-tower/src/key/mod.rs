//! Whom a request counts for: the key it is charged under.
//!
//! A closure is an extractor too; what it returns may be anything that makes bytes.
//!
//! ```
//! use http::request::Parts;
//! use tidegate_tower::key;
//! # fn takes(_: impl tidegate_tower::KeyExtractor) {}
//! # takes(
//! key::joined().part(key::header("x-tenant")).part(key::peer_ip())
//! # );
//! # takes(
//! # {
//! # |request: &Parts| Some(request.uri.path().to_owned())
//! # });
//! ```

mod address;
mod joined;
#[cfg(feature = "axum")]
mod path_param;

use http::HeaderName;
use http::request::Parts;

pub use address::{AddressKey, client_ip, peer_ip};
pub use joined::{JoinedKeys, joined};
#[cfg(feature = "axum")]
pub use path_param::{PathParam, path_param};

/// Finds the key of a request.
pub trait KeyExtractor: Send + Sync + 'static {
    /// The key, any bytes; `None` if the request has none, and then
    /// [`MissingKey`](crate::MissingKey) says what happens.
    ///
    /// The request is lent mutably only because axum's extractors want it so.
    fn key(&self, request: &mut Parts) -> Option<Vec<u8>>;
}

impl<F, K> KeyExtractor for F
where
    F: Fn(&Parts) -> Option<K> + Send + Sync + 'static,
    K: Into<Vec<u8>>,
{
    fn key(&self, request: &mut Parts) -> Option<Vec<u8>> {
        self(request).map(Into::into)
    }
}

/// See [`header`].
#[derive(Debug, Clone)]
pub struct HeaderKey(HeaderName);

/// The value of a header, if the request has exactly one of this name and it is not empty.
///
/// Whoever may choose the value chooses whose bucket pays: use it for keys that are checked further on, such as
/// API keys, or that a proxy sets.
///
/// # Panics
/// If the name is not lower case or not legal in a header, as [`HeaderName::from_static`] does.
pub fn header(name: &'static str) -> HeaderKey {
    HeaderKey(HeaderName::from_static(name))
}

impl KeyExtractor for HeaderKey {
    fn key(&self, request: &mut Parts) -> Option<Vec<u8>> {
        let mut lines = request.headers.get_all(&self.0).iter();
        let value = lines.next().filter(|value| !value.is_empty())?;
        lines.next().is_none().then(|| value.as_bytes().to_vec())
    }
}

/// What `of` makes of the request extension `T`, such as the user that an authentication layer has put there;
/// no key if it is not there.
///
/// ```
/// use tidegate_tower::key;
/// #[derive(Clone)]
/// struct User { id: u64 }
/// let extractor = key::extension(|user: &User| Some(user.id.to_string()));
/// # fn takes(_: impl tidegate_tower::KeyExtractor) {}
/// # takes(extractor);
/// ```
pub fn extension<T, K>(of: impl Fn(&T) -> Option<K> + Send + Sync + 'static) -> impl KeyExtractor
where
    T: Send + Sync + 'static,
    K: Into<Vec<u8>> + 'static,
{
    move |request: &Parts| request.extensions.get::<T>().and_then(&of)
}

/// The same key for every request: one limit over all clients together.
pub fn constant(key: impl Into<Vec<u8>>) -> impl KeyExtractor {
    let key = key.into();
    move |_: &Parts| Some(key.clone())
}
