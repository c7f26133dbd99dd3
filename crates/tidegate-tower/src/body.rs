//! The body of an answer: the inner service's, or a denial's.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a denial: bytes, or a body of any kind behind [`DenialBody::new`].
pub struct DenialBody(Kind);

enum Kind {
    Whole(Bytes),
    Boxed(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl DenialBody {
    /// Any body.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        DenialBody(Kind::Boxed(Box::pin(RateLimitBody::inner(body))))
    }

    /// No body at all.
    pub fn empty() -> Self {
        Bytes::new().into()
    }
}

impl From<Bytes> for DenialBody {
    fn from(bytes: Bytes) -> Self {
        DenialBody(Kind::Whole(bytes))
    }
}

impl From<Vec<u8>> for DenialBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for DenialBody {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for DenialBody {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

#[cfg(feature = "axum")]
impl From<axum::body::Body> for DenialBody {
    fn from(body: axum::body::Body) -> Self {
        Self::new(body)
    }
}

impl Body for DenialBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Boxed(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Boxed(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for DenialBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => f.debug_tuple("DenialBody").field(bytes).finish(),
            Kind::Boxed(_) => f.debug_struct("DenialBody").finish_non_exhaustive(),
        }
    }
}

pin_project! {
    /// The body of a limited answer: the inner service's `B`, or a denial's.
    #[derive(Debug)]
    pub struct RateLimitBody<B> {
        #[pin]
        body: Either<B>,
    }
}

pin_project! {
    #[project = EitherProjection]
    #[derive(Debug)]
    enum Either<B> {
        Inner { #[pin] body: B },
        Denial { #[pin] body: DenialBody },
    }
}

impl<B> RateLimitBody<B> {
    pub(crate) fn inner(body: B) -> Self {
        RateLimitBody { body: Either::Inner { body } }
    }

    pub(crate) fn denial(body: DenialBody) -> Self {
        RateLimitBody { body: Either::Denial { body } }
    }
}

impl<B> Body for RateLimitBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        Poll::Ready(match self.project().body.project() {
            EitherProjection::Inner { body } => ready!(body.poll_frame(cx)).map(|it| it.map_err(Into::into)),
            EitherProjection::Denial { body } => {
                ready!(body.poll_frame(cx)).map(|it| it.map(|frame| frame.map_data(Into::into)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Inner { body } => body.is_end_stream(),
            Either::Denial { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Inner { body } => body.size_hint(),
            Either::Denial { body } => body.size_hint(),
        }
    }
}
