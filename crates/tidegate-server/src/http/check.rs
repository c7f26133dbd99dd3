//! `POST /v1/check`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;

use super::answer::Answer;
use super::decode::{CheckBody, decode_check};
use super::docs::PostProblems;
use super::problem::Problem;
use super::view::View;
use super::{body, respond};
use crate::app::App;

/// Check a key: may it have `cost` now?
///
/// Answers 200 with the decision whether admitted or not; `allowed` tells. An admitted cost is charged, a denied one is
/// not.
#[utoipa::path(
    post,
    path = "/v1/check",
    tag = "limits",
    request_body = CheckBody,
    responses(
        (status = 200, description = "The decision", body = Answer, headers(
            ("X-RateLimit-Limit" = u64, description = "Capacity, or limit per window, of the binding limit"),
            ("X-RateLimit-Remaining" = u64, description = "What is left of it"),
            ("RateLimit-Policy" = String, description = "Every limit with its quota and window in seconds"),
            ("RateLimit" = String, description = "What is left of them and the seconds until more is"),
        )),
        PostProblems,
    )
)]
pub(super) async fn check(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let body = body::json(&app, request, body::MOST_BYTES).await?;
    let asked = decode_check(&body)?;
    let handle = respond::policy(&app, &asked.subject)?;
    let at = app.now();
    let key = &*asked.subject.key;
    let view = View::of(&handle, key, |handle| handle.check_at(key, asked.cost, at))
        .await
        .map_err(|error| respond::unavailable(&app, &error))?;
    let response = respond::decided(&app, &view, at);
    let took = app.now().micros_since(at);
    app.metrics().decided(view.policy().name(), view.decision().outcome(), took);
    Ok(response)
}
