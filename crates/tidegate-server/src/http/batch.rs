//! `POST /v1/check/batch`.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use tidegate::PolicyHandle;
use utoipa::ToSchema;

use super::answer::Answer;
use super::decode::{BatchBody, CheckRequest, decode_batch};
use super::docs::PostProblems;
use super::problem::Problem;
use super::view::View;
use super::{body, respond};
use crate::app::App;

/// The answers to a batch, in its order. Written entry by entry; this is its shape.
#[derive(ToSchema)]
#[schema(as = BatchAnswer)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct BatchAnswer<'a> {
    /// To each check its answer.
    answers: Vec<EntryAnswer<'a>>,
}

/// The answer to one check of a batch: a decision, or why there is none.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = BatchEntry)]
pub(super) enum EntryAnswer<'a> {
    /// As `/v1/check` answers.
    Decided(Answer<'a>),
    /// This check could not be decided; the others are.
    Refused {
        /// Why.
        problem: Problem,
    },
}

/// Check many keys in one request.
///
/// The checks are independent: each is decided on its own, in order, and one that is wrong does not keep the
/// others from being decided.
#[utoipa::path(
    post,
    path = "/v1/check/batch",
    tag = "limits",
    request_body = BatchBody,
    responses((status = 200, description = "The answers, in order", body = BatchAnswer), PostProblems)
)]
pub(super) async fn batch(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let body = body::json(&app, request, body::MOST_BATCH_BYTES).await?;
    let batch = decode_batch(&body)?;
    let checks = batch.checks();
    let mut out = Vec::with_capacity(16 + checks.len() * 256);
    out.extend_from_slice(b"{\"answers\":[");
    let mut last = None;
    for (index, check) in checks.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match check {
            Ok(check) => decide(&app, &check, &mut last, &mut out),
            Err(problem) => write(&mut out, &EntryAnswer::Refused { problem }),
        }
    }
    out.extend_from_slice(b"]}");
    Ok(respond::json(out))
}

/// The policy of the check before, which is often that of the next.
type Last<'a> = Option<(Option<Cow<'a, str>>, PolicyHandle)>;

fn decide<'a>(app: &App, check: &CheckRequest<'a>, last: &mut Last<'a>, out: &mut Vec<u8>) {
    let name = &check.subject.policy;
    let handle = match last {
        Some((known, handle)) if known == name => handle,
        _ => match respond::policy(app, &check.subject) {
            Ok(handle) => &last.insert((name.clone(), handle)).1,
            Err(problem) => return write(out, &EntryAnswer::Refused { problem }),
        },
    };
    let at = app.now();
    let key = &*check.subject.key;
    let view = View::of(handle, key, |handle| handle.check_at(key, check.cost, at));
    write(out, &EntryAnswer::Decided(Answer::from(&view)));
    app.metrics().decided(view.policy().name(), view.decision().outcome(), app.now().micros_since(at));
}

fn write(out: &mut Vec<u8>, answer: &EntryAnswer<'_>) {
    // Strings and integers into memory: cannot fail.
    let _ = serde_json::to_writer(out, answer);
}
