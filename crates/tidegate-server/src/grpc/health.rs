//! `grpc.health.v1.Health`: whether new work is welcome, for the server and each service.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::RATE_LIMIT_SERVICE;
use crate::app::App;

/// The server itself, the service, and the name that envoyproxy/ratelimit gives it.
const SERVICES: [&str; 3] = ["", RATE_LIMIT_SERVICE, "ratelimit"];

#[derive(Debug, Clone)]
pub(super) struct HealthService {
    pub app: Arc<App>,
    /// Whether the door closes: what would last for ever is to end.
    pub closing: watch::Receiver<bool>,
}

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = Watch;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        match SERVICES.contains(&&**service) {
            true => Ok(Response::new(response(serving(self.app.is_ready())))),
            false => Err(Status::not_found(format!("{service:?}: no service has this name"))),
        }
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Watch>, Status> {
        let known = SERVICES.contains(&&*request.get_ref().service);
        let ready = WatchStream::new(self.app.watch_ready());
        let closing = WatchStream::new(self.closing.clone());
        Ok(Response::new(Watch { known, told: None, ready, closing }))
    }
}

/// Tells the status at once, and again when it changes. A service that there is not may yet come, so it is told of
/// rather than refused. Ends when the door closes, which its client then knows of.
#[derive(Debug)]
pub(super) struct Watch {
    known: bool,
    told: Option<i32>,
    ready: WatchStream<bool>,
    closing: WatchStream<bool>,
}

impl Stream for Watch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while let Poll::Ready(next) = Pin::new(&mut self.ready).poll_next(cx) {
            let Some(ready) = next else { return Poll::Ready(None) };
            let status = if self.known { serving(ready) } else { SERVICE_UNKNOWN };
            if self.told.replace(status) != Some(status) {
                return Poll::Ready(Some(Ok(response(status))));
            }
        }
        loop {
            match Pin::new(&mut self.closing).poll_next(cx) {
                Poll::Ready(Some(false)) => {}
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// `ServingStatus` of the library leaves this one out.
const SERVICE_UNKNOWN: i32 = 3;

fn serving(ready: bool) -> i32 {
    match ready {
        true => ServingStatus::Serving as i32,
        false => ServingStatus::NotServing as i32,
    }
}

fn response(status: i32) -> HealthCheckResponse {
    HealthCheckResponse { status }
}
