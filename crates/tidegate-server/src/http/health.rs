//! Whether the server lives and is ready, for orchestrators.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;

use crate::app::App;

/// Is the process alive?
#[utoipa::path(
    get,
    path = "/livez",
    tag = "operation",
    responses((status = 200, description = "It answers, so it lives", body = String, content_type = "text/plain"))
)]
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// Is new work welcome?
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "About to stop", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    match app.is_ready() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    }
}

/// The same as `/readyz`, under the older name.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operation",
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "About to stop", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn healthz(state: State<Arc<App>>) -> (StatusCode, &'static str) {
    readyz(state).await
}
