//! What envoyproxy/ratelimit serves over HTTP, for those who ask there: `POST /json` and `/healthcheck`.
//!
//! The JSON is protobuf's mapping of the messages that Envoy sends over gRPC.

mod decode;
mod encode;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tidegate::store::StoreErrorKind;

use super::body;
use super::problem::Problem;
use crate::app::App;
use crate::envoy::{self, Refused};

/// As `ShouldRateLimit`: 200 if the request may go ahead, 429 if not, 400 for a question without an answer.
pub(super) async fn json(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    // Any media type will do, as there; but a page of another site can send only what it is allowed to.
    let body = match request.headers().contains_key(header::ORIGIN) {
        true => body::json(&app, request, body::MOST_BATCH_BYTES).await?,
        false => body::any(&app, request, body::MOST_BATCH_BYTES).await?,
    };
    let message = match decode::message(&body) {
        Ok(message) => message,
        Err(error) => return Ok(plain(StatusCode::BAD_REQUEST, error)),
    };
    let asked = match message.request() {
        Ok(asked) => asked,
        Err(refused) => return Ok(plain(status(&refused), refused.to_string())),
    };
    Ok(match envoy::decide(&app, &asked).await {
        Ok(answer) => {
            let status = if answer.over { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
            let mut response = (status, encode::message(&answer).to_string()).into_response();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(refused) => plain(status(&refused), refused.to_string()),
    })
}

/// `OK` while new work is welcome, else 500, as there.
pub(super) async fn healthcheck(State(app): State<Arc<App>>) -> Response {
    match app.is_ready() {
        true => "OK".into_response(),
        false => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn status(refused: &Refused) -> StatusCode {
    match refused {
        Refused::NoDomain | Refused::NoDescriptors | Refused::NoRules | Refused::Unit { .. } => {
            StatusCode::BAD_REQUEST
        }
        Refused::Unanswered(StoreErrorKind::Damaged | StoreErrorKind::Unfit) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Refused::NoPolicy { .. } | Refused::NoRoom | Refused::Unanswered(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

fn plain(status: StatusCode, text: String) -> Response {
    (status, format!("{text}\n")).into_response()
}
