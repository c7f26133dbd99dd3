//! From a request of a connection to its response.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use http::{Method, Request};
use hyper::body::Incoming;
use tower_service::Service as _;

use super::{check, last_of_a_drain, router};
use crate::app::App;
use crate::forward_auth;

/// The one path that is asked again and again.
const CHECK: &str = "/v1/check";

/// Answers the requests of all connections.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    app: Arc<App>,
    router: Router,
}

impl Door {
    pub fn new(app: Arc<App>) -> Self {
        Door { router: router(Arc::clone(&app)), app }
    }

    /// Answers one request of the client at `peer`.
    pub fn call(
        &self,
        mut request: Request<Incoming>,
        peer: Option<IpAddr>,
    ) -> impl Future<Output = Result<Response, Infallible>> + use<> {
        // The same handler that the router would find: finding it costs more than it takes to decide.
        if request.uri().path() == CHECK && request.method() == Method::POST {
            let app = Arc::clone(&self.app);
            return Either::Left(async move {
                let asked = check::check(State(Arc::clone(&app)), request.map(Body::new));
                Ok(last_of_a_drain(State(app), asked.await.into_response()).await)
            });
        }
        forward_auth::tell_peer(&mut request, peer);
        Either::Right(self.router.clone().call(request.map(Body::new)))
    }
}
