//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;
use http::header;

use crate::app::App;
use crate::metrics::{CONTENT_TYPE, render};

/// Everything counted, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses((status = 200, description = "Prometheus text format", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], render(app.metrics(), app.limiter()))
}
