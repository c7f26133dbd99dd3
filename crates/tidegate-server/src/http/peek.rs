//! `GET /v1/peek`.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use utoipa::IntoParams;

use super::answer::Answer;
use super::decode::decode_peek;
use super::docs::GetProblems;
use super::problem::Problem;
use super::respond;
use super::view::View;
use crate::app::App;

/// The parameters of a peek, for the document; [`decode_peek`] reads them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct PeekQuery {
    /// The policy; the file's only one if it is left out, else `default`.
    #[param(nullable = false, example = "default")]
    policy: Option<String>,
    /// The client's key, up to 4096 bytes in UTF-8. Either this or `key_b64` has to be given.
    #[param(nullable = false, example = "user:42")]
    key: Option<String>,
    /// In place of `key` for one that is not UTF-8: its bytes in base64, the URL-safe alphabet best.
    #[param(nullable = false)]
    key_b64: Option<String>,
}

/// Look how a key stands, taking nothing.
///
/// Answers as a check of cost 0 does: `allowed` unless the key is in debt.
#[utoipa::path(
    get,
    path = "/v1/peek",
    tag = "limits",
    params(PeekQuery),
    responses((status = 200, description = "How the key stands", body = Answer), GetProblems)
)]
pub(super) async fn peek(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let subject = decode_peek(query.as_deref().unwrap_or(""))?;
    let handle = respond::policy(&app, &subject)?;
    let at = app.now();
    let key = &*subject.key;
    let view = View::of(&handle, key, |handle| handle.peek_at(key, at))
        .await
        .map_err(|error| respond::unavailable(&app, &error))?;
    Ok(respond::decided(&app, &view, at))
}
