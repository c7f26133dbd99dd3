//! `POST /v1/credit`, `/v1/penalize` and `/v1/reset`: what changes a key's state by hand, for whoever has the admin token.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, header};

use super::answer::Answer;
use super::decode::{AdjustBody, ResetBody, decode_adjust, decode_reset};
use super::docs::AdminProblems;
use super::problem::{Problem, ProblemKind};
use super::view::View;
use super::{body, respond};
use crate::app::App;

/// Give units back to a key.
///
/// To no more than a full bucket or an empty window. Answers how the key then stands.
#[utoipa::path(
    post,
    path = "/v1/credit",
    tag = "admin",
    request_body = AdjustBody,
    security(("admin" = [])),
    responses((status = 200, description = "How the key stands now", body = Answer), AdminProblems)
)]
pub(super) async fn credit(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    authorize(&app, request.headers())?;
    let body = body::json(&app, request, body::MOST_BYTES).await?;
    let asked = decode_adjust(&body)?;
    let handle = respond::policy(&app, &asked.subject)?;
    let key = &*asked.subject.key;
    let view = View::of(&handle, key, |handle| handle.credit(key, asked.units))
        .await
        .map_err(|error| respond::unavailable(&app, &error))?;
    Ok(respond::plain(&view))
}

/// Charge a key whether the units fit or not.
///
/// It may go into debt, by no more than its limits allow; `cut` tells for each limit what was not charged for that.
/// Answers how the key then stands.
#[utoipa::path(
    post,
    path = "/v1/penalize",
    tag = "admin",
    request_body = AdjustBody,
    security(("admin" = [])),
    responses((status = 200, description = "How the key stands now", body = Answer), AdminProblems)
)]
pub(super) async fn penalize(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    authorize(&app, request.headers())?;
    let body = body::json(&app, request, body::MOST_BYTES).await?;
    let asked = decode_adjust(&body)?;
    let handle = respond::policy(&app, &asked.subject)?;
    let key = &*asked.subject.key;
    let before = handle.policy();
    let penalty =
        handle.penalize(key, asked.units).await.map_err(|error| respond::unavailable(&app, &error))?;
    let view = View::decided((before, handle.policy()), key, penalty.after);
    Ok(respond::plain(&view.with_cuts(penalty.cuts().to_vec())))
}

/// Forget a key.
///
/// Its buckets are full and its windows empty again. Answers how it then stands.
#[utoipa::path(
    post,
    path = "/v1/reset",
    tag = "admin",
    request_body = ResetBody,
    security(("admin" = [])),
    responses((status = 200, description = "How the key stands now", body = Answer), AdminProblems)
)]
pub(super) async fn reset(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    authorize(&app, request.headers())?;
    let body = body::json(&app, request, body::MOST_BYTES).await?;
    let subject = decode_reset(&body)?;
    let handle = respond::policy(&app, &subject)?;
    let key = &*subject.key;
    let view = View::of(&handle, key, |handle| handle.reset(key))
        .await
        .map_err(|error| respond::unavailable(&app, &error))?;
    Ok(respond::plain(&view))
}

/// Lets through whoever shows the admin token.
fn authorize(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(token) = app.admin_token() else {
        let detail = "credit, penalize and reset are off on this server (start it with --admin-token-file FILE or \
                      TIDEGATE_ADMIN_TOKEN)";
        return Err(Problem::new(ProblemKind::AdminOff, detail));
    };
    let refused = |detail| Err(Problem::new(ProblemKind::Unauthorized, detail));
    let Some(shown) = headers.get(header::AUTHORIZATION) else {
        return refused("authorization: missing (send authorization: Bearer ADMIN-TOKEN)");
    };
    match bearer(shown.as_bytes()) {
        Some(shown) if token.matches(shown) => Ok(()),
        Some(_) => refused("authorization: not the admin token (send the one the server was started with)"),
        None => refused("authorization: not a bearer token (send authorization: Bearer ADMIN-TOKEN)"),
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
