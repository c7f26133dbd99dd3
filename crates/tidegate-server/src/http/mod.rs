//! The HTTP door: decode, ask the limiter, encode, on the same task.

mod admin;
mod answer;
mod batch;
mod body;
mod check;
pub mod decode;
mod docs;
mod door;
mod health;
mod metrics;
mod peek;
mod policies;
pub mod problem;
mod ratelimit;
mod respond;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Router, middleware};
use http::{HeaderValue, Method, Uri, header};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::forward_auth;
use crate::view;
pub(crate) use door::Door;
use problem::{Problem, ProblemKind};
pub(crate) use respond::{limit_fields, policy_named, unavailable};

/// Every route of the server, ready to be served.
pub fn router(app: Arc<App>) -> Router {
    let (router, document) = documented().split_for_parts();
    let document = docs::openapi(document);
    router
        .route("/openapi.json", get(move || docs::document(document.clone())))
        .route("/docs", get(docs::page))
        .route("/docs/page.js", get(docs::script))
        .route("/docs/page.css", get(docs::style))
        .route("/v1/forward-auth/{*asked}", any(forward_auth::ask))
        .route("/json", post(ratelimit::json))
        .route("/healthcheck", get(ratelimit::healthcheck))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::map_response_with_state(Arc::clone(&app), last_of_a_drain))
        .with_state(app)
}

/// During a drain each answer is its connection's last: a client that sends the next request on another connection
/// finds another server, one that sends it on this may find it closed.
async fn last_of_a_drain(State(app): State<Arc<App>>, mut response: Response) -> Response {
    if !app.is_ready() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The OpenAPI document, as `/openapi.json` serves it.
pub fn openapi_json() -> String {
    docs::openapi(documented().split_for_parts().1)
}

fn documented() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(docs::Document::openapi())
        .routes(routes!(check::check))
        .routes(routes!(batch::batch))
        .routes(routes!(peek::peek))
        .routes(routes!(policies::policies))
        .routes(routes!(admin::credit))
        .routes(routes!(admin::penalize))
        .routes(routes!(admin::reset))
        .routes(routes!(metrics::metrics))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::healthz))
}

async fn not_found(uri: Uri) -> Problem {
    let path = decode::shown(uri.path());
    Problem::new(ProblemKind::NotFound, format!("{path}: nothing is at this path (see /docs)"))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let (method, path) = (decode::shown(method.as_str()), decode::shown(uri.path()));
    let detail =
        format!("{method} {path}: the path does not take this method (the header Allow tells which)");
    Problem::new(ProblemKind::MethodNotAllowed, detail)
}
