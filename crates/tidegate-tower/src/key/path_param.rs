//! A parameter of the route's path as the key.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use super::KeyExtractor;

/// See [`path_param`].
#[derive(Debug, Clone)]
pub struct PathParam(String);

/// The part of the path that the axum route calls so, percent decoded: `tenant` of `/{tenant}/orders`.
///
/// The layer has to be put on by `Router::layer`, `Router::route_layer` or `MethodRouter::layer`: around a whole
/// router no route is chosen yet, and the key is missing.
pub fn path_param(name: impl Into<String>) -> PathParam {
    PathParam(name.into())
}

impl KeyExtractor for PathParam {
    fn key(&self, request: &mut Parts) -> Option<Vec<u8>> {
        // This future waits for nothing: it looks the parameters up in the extensions.
        let mut extracting = pin!(RawPathParams::from_request_parts(request, &()));
        let extracted = extracting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(params)) = extracted else { return None };
        params.iter().find(|(name, _)| *name == self.0).map(|(_, value)| value.into())
    }
}
