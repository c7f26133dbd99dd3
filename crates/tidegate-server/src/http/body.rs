//! Bodies of requests as they come in: JSON, of bounded size, in bounded time.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tidegate::Wait;

use super::decode::shown;
use super::problem::{Problem, ProblemKind};
use crate::app::App;
use crate::gathered::Gathered;

/// A body of one check or adjustment has at most this many bytes.
pub(super) const MOST_BYTES: usize = 64 << 10;
/// A batch's body has at most this many.
pub(super) const MOST_BATCH_BYTES: usize = 1 << 20;

/// A body has to be there so long after its head.
const WITHIN: Duration = Duration::from_secs(30);

/// Takes the whole body of a POST, of at most `most` bytes.
pub(super) async fn json(app: &App, request: Request, most: usize) -> Result<Bytes, Problem> {
    require_json(request.headers())?;
    any(app, request, most).await
}

/// The same, whatever its media type.
pub(super) async fn any(app: &App, request: Request, most: usize) -> Result<Bytes, Problem> {
    let body = request.into_body();
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let mut arriving = std::pin::pin!(collect(body, most));
    // Most bodies come in one packet with their head, and then need no timer.
    if let Poll::Ready(body) = poll_fn(|context| Poll::Ready(arriving.as_mut().poll(context))).await {
        return body;
    }
    let deadline = app.now().saturating_add(Wait::from(WITHIN));
    tokio::select! {
        body = arriving => body,
        () = app.limiter().clock().sleep_until(deadline) => {
            let detail = format!("the body did not arrive within {} seconds (send it faster)", WITHIN.as_secs());
            Err(Problem::new(ProblemKind::BodyTooSlow, detail))
        }
    }
}

/// A page of another site can post forms and plain text here, but JSON only if it is allowed to: it is not.
fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail: String| Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
    let Some(media_type) = headers.get(header::CONTENT_TYPE) else {
        return refused("content-type: missing (send content-type: application/json)".to_owned());
    };
    let media_type = media_type.to_str().unwrap_or("(not ASCII)");
    let essence = media_type.split_once(';').map_or(media_type, |(essence, _)| essence).trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let shown = shown(media_type);
        return refused(format!("content-type: {shown}: not JSON (send content-type: application/json)"));
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            refused("content-encoding: bodies are taken as they are (send it without)".to_owned())
        }
        _ => Ok(()),
    }
}

/// Gathers a body. What it takes is bounded by what has arrived, whatever was declared.
async fn collect(mut body: Body, most: usize) -> Result<Bytes, Problem> {
    let mut gathered = Gathered::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let detail = format!("the body broke off: {error} (send the whole of it)");
            Problem::new(ProblemKind::InvalidRequest, detail)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if gathered.as_slice().len() + data.len() > most {
            return Err(too_large(most));
        }
        gathered.push(data);
    }
    Ok(gathered.into_bytes())
}

fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {} KiB (send less, or several)", most >> 10);
    Problem::new(ProblemKind::BodyTooLarge, detail)
}
