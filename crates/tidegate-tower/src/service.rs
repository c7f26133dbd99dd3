//! The limited service.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tidegate::MemoryStore;
use tidegate::store::Store;
use tower_service::Service;

use crate::answering::Answering;
use crate::asking::Asking;
use crate::body::RateLimitBody;
use crate::future::{Call, ResponseFuture};

/// A service behind a rate limit; see [`RateLimitLayer`](crate::RateLimitLayer). All clones share the limit.
pub struct RateLimit<I, S: Store = MemoryStore> {
    inner: I,
    asking: Arc<Asking<S>>,
    answering: Arc<Answering>,
}

impl<I, S: Store> RateLimit<I, S> {
    pub(crate) fn new(inner: I, asking: Arc<Asking<S>>, answering: Arc<Answering>) -> Self {
        RateLimit { inner, asking, answering }
    }

    /// The service that is limited.
    pub fn get_ref(&self) -> &I {
        &self.inner
    }
}

impl<I, S, B, R> Service<Request<B>> for RateLimit<I, S>
where
    I: Service<Request<B>, Response = Response<R>> + Clone,
    S: Store,
{
    type Response = Response<RateLimitBody<R>>;
    type Error = I::Error;
    type Future = ResponseFuture<I, B>;

    /// Ready when the inner service is. Nothing is asked of the limiter, and nothing charged.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<I, B> {
        // It is this one that said it was ready; its clone has yet to.
        let later = self.inner.clone();
        let inner = mem::replace(&mut self.inner, later);
        let (mut request, body) = request.into_parts();
        let question = self.asking.question(&mut request);
        ResponseFuture::new(&self.answering, question, Call { inner, request, body })
    }
}

impl<I: Clone, S: Store> Clone for RateLimit<I, S> {
    fn clone(&self) -> Self {
        let (asking, answering) = (Arc::clone(&self.asking), Arc::clone(&self.answering));
        RateLimit { inner: self.inner.clone(), asking, answering }
    }
}

impl<I: fmt::Debug, S: Store> fmt::Debug for RateLimit<I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}
