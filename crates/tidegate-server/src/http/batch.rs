//! `POST /v1/check/batch`.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use tidegate::store::StoreError;
use tidegate::{Asked, Decision, Policy, Timestamp};
use utoipa::ToSchema;

use super::answer::Answer;
use super::decode::{BatchBody, CheckRequest, decode_batch};
use super::docs::PostProblems;
use super::problem::Problem;
use super::view::View;
use super::{body, respond};
use crate::app::App;
use crate::store::{AnyStore, Handle};

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
    /// This check could not be decided, by its own fault or the store's; the others are.
    Refused {
        /// Why, with the status that it would have been answered with alone.
        problem: Problem,
    },
}

/// Check many keys in one request.
///
/// The checks are independent: each is decided on its own, in order and all at one instant. One that is wrong, or that
/// the store has no answer to, does not keep the others from being decided: there is a problem in its place, with a
/// status of its own.
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
    let mut policies = Policies::default();
    let entries: Vec<Entry<'_>> = batch.checks().map(|check| policies.find(&app, check?)).collect();
    let asked: Vec<Asked<'_, AnyStore>> =
        entries.iter().flatten().map(|(place, check)| policies.ask(*place, check)).collect();
    let at = app.now();
    let told = Telling { app: &app, policies: &policies, entries: &entries, at };
    Ok(match app.limiter().check_batch_at(&asked, at).now() {
        Ok(decisions) => told.answered(decisions.iter().map(Ok)),
        Err(later) => told.answered(later.await.iter().map(Result::as_ref)),
    })
}

/// A batch that has been decided, about to be told.
struct Telling<'a, 'b> {
    app: &'a App,
    policies: &'a Policies<'b>,
    entries: &'a [Entry<'b>],
    /// When it was asked.
    at: Timestamp,
}

impl Telling<'_, '_> {
    /// The response, given what was answered to the checks that could be asked, in order.
    fn answered<'d>(
        self,
        mut answers: impl Iterator<Item = Result<&'d Decision, &'d StoreError>>,
    ) -> Response {
        let Telling { app, policies, entries, at } = self;
        let mut out = Vec::with_capacity(16 + entries.len() * 256);
        let mut decided = 0;
        out.extend_from_slice(b"{\"answers\":[");
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let problem = match entry {
                Ok((place, check)) => match answers.next() {
                    Some(Ok(decision)) => {
                        let view = policies.view(*place, &check.subject.key, *decision);
                        write(&mut out, &EntryAnswer::Decided(Answer::from(&view)));
                        app.metrics().counted(view.policy().name(), decision.outcome());
                        decided += 1;
                        continue;
                    }
                    Some(Err(error)) => respond::unavailable(app, error),
                    // There is an answer to each check that was asked.
                    None => break,
                },
                Err(problem) => problem.clone(),
            };
            write(&mut out, &EntryAnswer::Refused { problem });
        }
        out.extend_from_slice(b"]}");
        app.metrics().took(app.now().micros_since(at), decided);
        respond::json(out)
    }
}

/// A check and the place of its policy among those looked up, or why it cannot be decided.
type Entry<'a> = Result<(usize, CheckRequest<'a>), Problem>;

/// The policies of a batch, in the order they were first needed; most batches have but one.
#[derive(Default)]
struct Policies<'a>(Vec<Known<'a>>);

struct Known<'a> {
    name: Option<Cow<'a, str>>,
    handle: Handle,
    /// As it was before the checks.
    policy: Arc<Policy>,
}

impl<'a> Policies<'a> {
    fn find(&mut self, app: &App, check: CheckRequest<'a>) -> Entry<'a> {
        let name = &check.subject.policy;
        // A file may have many policies, but a batch that goes from one to another and back is rare.
        if self.0.last().is_none_or(|last| last.name != *name) {
            let handle = respond::policy(app, &check.subject)?;
            self.0.push(Known { name: name.clone(), policy: handle.policy(), handle });
        }
        Ok((self.0.len() - 1, check))
    }

    fn ask<'b>(&'b self, place: usize, check: &'b CheckRequest<'_>) -> Asked<'b, AnyStore> {
        Asked { policy: &self.0[place].handle, key: &check.subject.key, cost: check.cost }
    }

    fn view<'k>(&self, place: usize, key: &'k [u8], decision: Decision) -> View<'k> {
        let Known { handle, policy, .. } = &self.0[place];
        View::decided((Arc::clone(policy), handle.policy()), key, decision)
    }
}

fn write(out: &mut Vec<u8>, answer: &EntryAnswer<'_>) {
    // Strings and integers into memory: cannot fail.
    let _ = serde_json::to_writer(out, answer);
}
