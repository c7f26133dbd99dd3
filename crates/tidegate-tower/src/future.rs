//! The future of a limited call.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tidegate::clock::{Clock, Sleep};
use tower_service::Service;

use crate::answering::{Answering, Verdict};
use crate::asking::{Answer, Question};
use crate::body::{DenialBody, RateLimitBody};
use crate::denial::Reason;
use crate::report::Checked;

pin_project! {
    /// The answer of a [`RateLimit`](crate::RateLimit) to a request of body `B`.
    pub struct ResponseFuture<I, B> where I: Service<Request<B>> {
        answering: Arc<Answering>,
        #[pin]
        stage: Stage<I, B>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<I, B> where I: Service<Request<B>> {
        /// The limiter has been asked.
        Deciding { answer: Answer, clock: Arc<dyn Clock>, shadow: bool, call: Option<Call<I, B>> },
        /// The request is admitted and its turn is still to come.
        Delayed { sleep: Sleep, shown: Option<Box<Checked>>, call: Option<Call<I, B>> },
        /// The inner service has been called.
        Calling { #[pin] future: I::Future, shown: Option<Box<Checked>> },
        /// The request is denied.
        Denied { response: Option<Response<DenialBody>> },
    }
}

/// A call of the inner service that may be made yet. The service is the one that said it was ready.
pub(crate) struct Call<I, B> {
    pub(crate) inner: I,
    pub(crate) request: Parts,
    pub(crate) body: B,
}

impl<I, B> Call<I, B>
where
    I: Service<Request<B>>,
{
    fn make(mut self) -> I::Future {
        self.inner.call(Request::from_parts(self.request, self.body))
    }
}

impl<I, B> ResponseFuture<I, B>
where
    I: Service<Request<B>>,
{
    pub(crate) fn new(answering: &Arc<Answering>, question: Question, call: Call<I, B>) -> Self {
        let verdict = match question {
            Question::Asked { answer, clock, shadow } => {
                let stage = Stage::Deciding { answer, clock, shadow, call: Some(call) };
                return ResponseFuture { answering: Arc::clone(answering), stage };
            }
            Question::Skipped => Verdict::GoesOn { delayed_to: None, shown: None },
            Question::Keyless { status, passes } => {
                answering.deny(&call.request, Reason::MissingKey(status), passes)
            }
            Question::Costless { error, shadow } => {
                answering.deny(&call.request, Reason::UnreadableCost(&error), shadow)
            }
        };
        let stage = match verdict {
            Verdict::GoesOn { shown, .. } => Stage::Calling { future: call.make(), shown },
            Verdict::Denied(response) => Stage::Denied { response: Some(response) },
        };
        ResponseFuture { answering: Arc::clone(answering), stage }
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, B, R> Future for ResponseFuture<I, B>
where
    I: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<RateLimitBody<R>>, I::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Deciding { answer, clock, shadow, call } => {
                    let answer = ready!(answer.as_mut().poll(cx));
                    let mut call = call.take().expect(POLLED_AGAIN);
                    match this.answering.verdict(&mut call.request, answer, *shadow) {
                        Verdict::Denied(response) => Stage::Denied { response: Some(response) },
                        Verdict::GoesOn { delayed_to: None, shown } => {
                            Stage::Calling { future: call.make(), shown }
                        }
                        Verdict::GoesOn { delayed_to: Some(at), shown } => {
                            Stage::Delayed { sleep: clock.sleep_until(at), shown, call: Some(call) }
                        }
                    }
                }
                StageProjection::Delayed { sleep, shown, call } => {
                    ready!(sleep.as_mut().poll(cx));
                    let future = call.take().expect(POLLED_AGAIN).make();
                    Stage::Calling { future, shown: mem::take(shown) }
                }
                StageProjection::Calling { future, shown } => {
                    let mut response = ready!(future.poll(cx))?.map(RateLimitBody::inner);
                    if let Some(checked) = shown {
                        this.answering.show(response.headers_mut(), checked);
                    }
                    return Poll::Ready(Ok(response));
                }
                StageProjection::Denied { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map(RateLimitBody::denial)));
                }
            };
            this.stage.set(next);
        }
    }
}
